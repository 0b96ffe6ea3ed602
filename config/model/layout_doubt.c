/* layout_doubt: doubts by names. */
#include "config/model/layout_doubt.h"

#include <stdio.h>
#include <string.h>

/* --- tensors that are named outright --- */

static void doubt_habits(const struct layout_family *f, const char *name,
                         const struct definition *said, struct notes *n) {
  const struct definition_customs *c = &f->customs;
  const struct {
    bool doubtful;
    const char *habit;
  } habits[] = {
      {f->joint == LAYOUT_CONV1D, "whose matrices are [in, out], but are taken as [out, in] here"},
      {c->unscaled && said->scaled && !(said->scale > 0),
       "whose scores are not scaled: scale decides"},
      {c->causal && said->causal == TOGGLE_UNSAID, "which is causal: causal decides"},
      {c->rope && said->rope == TOGGLE_UNSAID, "which turns queries and keys: rope decides"},
      {c->relative && said->relative == TOGGLE_UNSAID,
       "which adds relative positions: relative_bias decides"},
  };
  for (size_t i = 0; i < sizeof habits / sizeof *habits; i++)
    if (habits[i].doubtful)
      notes_add(n, "tensor \"%.100s\" has a name of layout %s, %s", name, f->layout,
                habits[i].habit);
}

/* --- decoders --- */

static bool is_beside_cross(const struct layout *l, const struct checkpoint *file) {
  static const char own[] = "attention.";
  char name[2 * LAYOUT_ADDRESS_SIZE];
  const char *stem = l->place.family->stem[ROLE_QUERY];
  const size_t length = strlen(l->place.address), tail = sizeof own - 1;
  if (strcmp(l->name, "bert") != 0 || length < tail) return false;
  snprintf(name, sizeof name, "%.*scross%s%s.weight", (int)(length - tail), l->place.address, own,
           stem);
  return checkpoint_find(file, name) != NULL;
}

void layout_doubt(const struct layout *l, const struct checkpoint *file,
                  const struct definition *said, struct notes *n) {
  struct layout_place p;
  if (l->place.family) {
    if (said->causal == TOGGLE_UNSAID && is_beside_cross(l, file))
      notes_add(n,
                "cross attention stands beside \"%.100s\", as in decoders, but this is not "
                "causal: causal decides",
                l->place.address);
    return;
  }
  for (enum role role = 0; role < ROLE_PROJECTIONS; role++) {
    const struct layout_matrix *m = &l->matrix[role];
    if (!m->found || !layout_place_of_tensor(&p, m->weight.tensor->name)) continue;
    doubt_habits(p.family, m->weight.tensor->name, said, n);
    return;
  }
}
