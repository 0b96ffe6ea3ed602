/* whole_random: the parts of a random model, and their numbers. */
#include "config/build/whole_random.h"

#include <stdlib.h>

#include "config/build/layer/random.h"

enum { LAYER_ROLES = 64, FACTOR_ROLES = 32, DECODER_ROLES = 1 << 20 };

/* These numbers never change: a seed means the same model for ever. A role without a number, 0
 * except for queries, occurs in no random model. */
static const unsigned char number[WHOLE_ROLES] = {[WHOLE_QUERY] = 0,
                                                  [WHOLE_KEY] = 1,
                                                  [WHOLE_VALUE] = 2,
                                                  [WHOLE_OUTPUT] = 3,
                                                  [WHOLE_UP] = 4,
                                                  [WHOLE_GATE] = 5,
                                                  [WHOLE_DOWN] = 6,
                                                  [WHOLE_NORM_SELF] = 7,
                                                  [WHOLE_NORM_FORWARD] = 8,
                                                  [WHOLE_TOKEN] = 9,
                                                  [WHOLE_POSITION] = 11,
                                                  [WHOLE_NORM_LAST] = 13,
                                                  [WHOLE_RELATIVE] = 15,
                                                  [WHOLE_CROSS_QUERY] = 16,
                                                  [WHOLE_CROSS_KEY] = 17,
                                                  [WHOLE_CROSS_VALUE] = 18,
                                                  [WHOLE_CROSS_OUTPUT] = 19,
                                                  [WHOLE_NORM_CROSS] = 20,
                                                  [WHOLE_CLASS_FIRST] = 21,
                                                  [WHOLE_CLASSES] = 22};

/* Does a random stack have this part? */
static bool has_part(const struct whole_plan *p, const struct whole_stack *s,
                     enum whole_role role) {
  switch (role) {
  case WHOLE_GATE:
    return p->said.gated == TOGGLE_ON;
  case WHOLE_POSITION:
    return s->form.embedding.positions == POSITIONS_LEARNED;
  case WHOLE_RELATIVE:
    return s->form.self.relative_buckets > 0;
  case WHOLE_NORM_LAST:
    return s->form.place == NORM_PRE;
  case WHOLE_CLASS_FIRST:
  case WHOLE_CLASSES:
    return s->form.classifier.count > 0;
  case WHOLE_CROSS_QUERY:
  case WHOLE_CROSS_KEY:
  case WHOLE_CROSS_VALUE:
  case WHOLE_CROSS_OUTPUT:
  case WHOLE_NORM_CROSS:
    return s->form.cross.heads > 0;
  default:
    return role == WHOLE_QUERY || role == WHOLE_TOKEN || (number[role] && role < WHOLE_LAYER_ROLES);
  }
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
  m->has_bias =
      norm ? s->form.norm == NORM_LAYER
           : role < WHOLE_LAYER_ROLES || role == WHOLE_CLASS_FIRST || role == WHOLE_CLASSES;
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
  const uint32_t id = (uint32_t)(within + number[at->role] + (cross ? DECODER_ROLES : 0));
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
