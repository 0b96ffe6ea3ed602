/* whole_random: draws whole models. */
#include "config/model/whole_random.h"

#include <stdlib.h>

#include "config/layer/random.h"

enum { LAYER_ROLES = 64, FACTOR_ROLES = 32 };

/* What is drawn for a role stays, although roles came between them: norms of heads, which no random
 * model has. */
enum { ROLES_BETWEEN = 2 };

_Static_assert((int)WHOLE_ROLES - (int)ROLES_BETWEEN <= (int)FACTOR_ROLES,
               "no two tensors have the same numbers");

/* Which parts a model has. */
static bool has_part(const struct whole_plan *p, enum whole_role role) {
  switch (role) {
  case WHOLE_NORM_QUERY:
  case WHOLE_NORM_KEY:
    return false;
  case WHOLE_GATE:
    return p->said.gated == TOGGLE_ON;
  case WHOLE_POSITION:
    return p->form.embedding.positions == POSITIONS_LEARNED;
  case WHOLE_RELATIVE:
    return p->form.self.relative_buckets > 0;
  case WHOLE_NORM_LAST:
    return p->form.place == NORM_PRE;
  default:
    return role <= WHOLE_TOKEN;
  }
}

static void list_part(struct whole_plan *p, enum whole_role role, size_t layer) {
  struct layout_matrix *m = whole_plan_part(p, role, layer);
  size_t out, in;
  if (!has_part(p, role)) return;
  whole_plan_size(p, role, &out, &in);
  const bool norm = whole_role_is_norm(role);
  *m = (struct layout_matrix){.found = true,
                              .weight = {.rows = out, .columns = in},
                              .bias = {.rows = 1, .columns = norm ? in : out}};
  m->has_bias = norm ? p->form.norm == NORM_LAYER : role < WHOLE_LAYER_ROLES;
}

enum status whole_random_list(struct whole_plan *p, struct error *e) {
  p->layer = calloc(p->form.layers, sizeof *p->layer);
  if (!p->layer) return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a list of tensors");
  for (size_t i = 0; i < p->form.layers; i++)
    for (enum whole_role role = 0; role < WHOLE_LAYER_ROLES; role++) list_part(p, role, i);
  for (enum whole_role role = WHOLE_LAYER_ROLES; role < WHOLE_ROLES; role++) list_part(p, role, 0);
  return STATUS_OK;
}

void whole_random_draw(const struct whole_plan *p, enum whole_role role, size_t layer, bool bias,
                       float *out) {
  const struct layout_matrix *m = whole_plan_part(p, role, layer);
  const bool of_layer = role < WHOLE_LAYER_ROLES;
  const uint32_t id =
      (uint32_t)(of_layer ? LAYER_ROLES * (layer + 1) + role : role - ROLES_BETWEEN);
  const uint64_t seed = p->source.seed;
  if (bias) {
    random_bias(seed, id, m->bias.columns, out);
  } else if (whole_role_is_norm(role)) {
    random_bias(seed, id + FACTOR_ROLES, m->weight.columns, out);
    for (size_t i = 0; i < m->weight.columns; i++) out[i] += 1;
  } else {
    random_weight(seed, id, m->weight.rows, m->weight.columns, out);
  }
}
