/* layout: finds the layer that a definition means, and its tensors. */
#include "config/layout.h"

#include <string.h>

#include "config/layout_take.h"

static bool has_any(const struct definition *d) {
  for (enum role role = 0; role < ROLE_COUNT; role++)
    if (definition_has(d, role)) return true;
  return false;
}

/* As many heads of keys as the rows make, where they are of the size that queries have. */
static size_t kv_heads_of(const struct layout *l, size_t heads) {
  const size_t query = layout_out(&l->matrix[ROLE_QUERY]), key = layout_out(&l->matrix[ROLE_KEY]);
  if (!l->place.family || !l->place.family->shared || heads == 0 || query % heads != 0) return 0;
  const size_t size = query / heads;
  return key % size == 0 ? key / size : 0;
}

enum status layout_find(struct layout *l, const struct checkpoint *file, struct definition *d,
                        struct error *e) {
  static const struct customs none = {0};
  size_t heads = 0;
  memset(l, 0, sizeof *l);
  l->name = "none";
  if (file && has_any(d)) {
    if (!d->tensors && place_find(&l->place, file, d, e)) return e->status;
    l->name = d->tensors ? "tensors" : l->place.family->layout;
  }
  if (definition_settle(d, l->place.family ? &l->place.family->customs : &none, e))
    return e->status;
  if (file && strcmp(l->name, "none") != 0 && layout_take(l, file, d, &heads, e)) return e->status;
  return definition_settle_heads(d, heads, kv_heads_of(l, d->heads ? d->heads : heads), e);
}
