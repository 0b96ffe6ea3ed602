/* layout: finds the layer that a definition means, and its tensors. */
#include "config/model/layout.h"

#include <string.h>

#include "config/model/layout_beside.h"
#include "config/model/layout_take.h"

static bool needs_tensors(const struct definition *d) {
  for (enum role role = 0; role < ROLE_COUNT; role++)
    if (definition_has(d, role)) return true;
  return false;
}

/* As many heads of keys as the rows make, where they are of the size that queries have. */
static size_t kv_heads_by_rows(const struct layout *l, size_t heads) {
  const size_t query = layout_matrix_out(&l->matrix[ROLE_QUERY]),
               key = layout_matrix_out(&l->matrix[ROLE_KEY]);
  if (!l->place.family || !l->place.family->shared || heads == 0 || query % heads != 0) return 0;
  const size_t size = query / heads;
  return key % size == 0 ? key / size : 0;
}

/* Settles by what is usual at the place, if there is one. */
static enum status settle_customs(const struct layout *l, const struct checkpoint *file,
                                  struct definition *d, struct error *e) {
  struct definition_customs customs = {0};
  if (l->place.family) {
    customs = l->place.family->customs;
    if (layout_sees_all(&l->place, file)) customs.causal = false;
  }
  return definition_settle(d, &customs, e);
}

static enum status find_tensors(struct layout *l, const struct checkpoint *file,
                                const struct definition *d, bool rope_said, size_t *heads,
                                struct error *e) {
  if (layout_take(l, file, d, heads, e) || !l->place.family || layout_look_beside(l, file, d, e))
    return e->status;
  if (l->frequencies && d->rope == TOGGLE_OFF && !rope_said)
    error_set(e, STATUS_CONFIG,
              "tensor \"%.100s\": queries and keys are turned there: rope must say so, or be false",
              l->frequencies->name);
  return e->status;
}

enum status layout_find(struct layout *l, const struct checkpoint *file, struct definition *d,
                        struct error *e) {
  const bool rope_said = d->rope != TOGGLE_UNSAID;
  size_t heads = 0;
  memset(l, 0, sizeof *l);
  l->name = "none";
  if (file && needs_tensors(d)) {
    if (!d->tensors && layout_place_find(&l->place, file, d, e)) return e->status;
    l->name = d->tensors ? "tensors" : l->place.family->layout;
  }
  if (settle_customs(l, file, d, e)) return e->status;
  if (strcmp(l->name, "none") != 0 && find_tensors(l, file, d, rope_said, &heads, e))
    return e->status;
  return definition_settle_heads(d, heads, kv_heads_by_rows(l, d->heads ? d->heads : heads), e);
}
