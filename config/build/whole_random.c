/* whole_random: the parts of a random model, and their numbers. */
#include "config/build/whole_random.h"

#include <stdlib.h>

#include "config/build/layer/random.h"

enum { LAYER_ROLES = 64, FACTOR_ROLES = 32, DECODER_ROLES = 1 << 20 };

static bool has_part(const struct whole_plan *p, const struct whole_stack *s,
                     enum whole_role role) {
  const bool has[WHOLE_ROLES] = {
#define WHOLE_LAYER(id, kind, block, number, random, ...) [WHOLE_##id] = random,
#define WHOLE_STACK(id, kind, block, number, random, ...) [WHOLE_##id] = random,
#include "config/family/whole_roles.def"
  };
  return has[role];
}

static void list_part(const struct whole_plan *p, struct whole_stack *s, enum whole_role role,
                      size_t layer) {
  struct layout_matrix *m = whole_plan_part(s, role, layer);
  size_t out, in;
  if (!has_part(p, s, role)) return;
  whole_plan_size(s, role, &out, &in);
  const bool norm = whole_role_is_norm(role);
  *m = (struct layout_matrix){.found = true,
                              .weight = {.rows = out, .columns = in},
                              .bias = {.rows = 1, .columns = norm ? in : out}};
  m->has_bias = norm ? s->form.norm == NORM_LAYER : whole_roles[role].kind == WHOLE_IS_MATRIX;
}

enum status whole_random_list(const struct whole_plan *p, struct whole_stack *s, struct error *e) {
  s->layer = calloc(s->form.layers, sizeof *s->layer);
  if (!s->layer) return error_no_memory(e);
  for (size_t i = 0; i < s->form.layers; i++)
    for (enum whole_role role = 0; role < WHOLE_LAYER_ROLES; role++) list_part(p, s, role, i);
  for (enum whole_role role = WHOLE_LAYER_ROLES; role < WHOLE_ROLES; role++)
    list_part(p, s, role, 0);
  return STATUS_OK;
}

void whole_random_fill(const struct whole_plan *p, const struct whole_stack *s,
                       const struct whole_place *at, bool bias, float *out) {
  const struct layout_matrix *m = whole_plan_part(s, at->role, at->layer);
  const bool shared = whole_plan_is_lent(p, &p->stack[WHOLE_ENCODER], at->role);
  const bool cross = s != whole_plan_reader(p) && !shared;
  const size_t within = at->role < WHOLE_LAYER_ROLES ? LAYER_ROLES * (at->layer + 1) : 0;
  const uint32_t id =
      (uint32_t)(within + whole_roles[at->role].number + (cross ? DECODER_ROLES : 0));
  const uint64_t seed = p->source.seed;
  if (bias) {
    random_bias(seed, id, m->bias.columns, out);
  } else if (whole_role_is_norm(at->role)) {
    random_bias(seed, id + FACTOR_ROLES, m->weight.columns, out);
    for (size_t i = 0; i < m->weight.columns; i++) out[i] += 1;
  } else {
    random_weight(seed, id, m->weight.rows, m->weight.columns, out);
  }
}
