/* layer: one multi-head attention layer: how it is made, and the programs of its steps. */
#include "core/attention/layer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/attention/layer_parts.h"
#include "core/base/size.h"

enum {
  TILE_FLOATS = 65536, /* of input rows in one tile: a quarter of a MiB */
  TILE_ROWS_MIN = 8,
};

/* Returns NULL if the layer has no such matrix, or with an error. */
static struct gemm *pack_matrix(const struct layer_matrix *m, size_t out, size_t in, size_t groups,
                                enum gemm_engine engine, struct error *e) {
  if (!m->weight || e->status) return NULL;
  return gemm_new(out, in, groups, m->weight, m->bias, engine, e);
}

/* Returns NULL if there is no vector, or with an error. */
static float *copy_vector(const float *vector, size_t size, struct error *e) {
  float *copy = vector ? malloc(size * sizeof *copy + 1) : NULL;
  if (copy)
    memcpy(copy, vector, size * sizeof *copy);
  else if (vector)
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a layer");
  return copy;
}

/* Packs the matrices between the heads of queries and keys and the operands of a score. */
static void pack_score(struct layer *l, const struct layer_matrix matrix[ROLE_COUNT],
                       enum gemm_engine any, struct error *e) {
  /* They are a part of attention, which is not quantized. */
  const enum gemm_engine engine = gemm_is_quantized(any) ? GEMM_UNIFORM : any;
  const struct layer_shape *s = &l->shape;
  l->compare_size = s->head_size;
  if (s->score == SCORE_ADDITIVE) {
    l->compare_size = s->score_size;
    l->compare[ROLE_QUERY] =
        pack_matrix(&matrix[ROLE_SCORE_QUERY], s->score_size, s->head_size, 1, engine, e);
    l->compare[ROLE_KEY] =
        pack_matrix(&matrix[ROLE_SCORE_KEY], s->score_size, s->key_head_size, 1, engine, e);
    l->vector = copy_vector(matrix[ROLE_SCORE_VECTOR].weight, l->compare_size, e);
    for (size_t i = 0; l->vector && i < l->compare_size; i++)
      l->score_bound += fabs((double)l->vector[i]);
  }
  if (s->score == SCORE_BILINEAR) {
    l->compare_size = s->key_head_size;
    l->compare[ROLE_QUERY] =
        pack_matrix(&matrix[ROLE_SCORE_WEIGHT], s->key_head_size, s->head_size, 1, engine, e);
  }
}

/* --- programs --- */

_Static_assert(offsetof(struct layer_run, run) == 0, "a run is the first member of its struct");

unsigned layer_list_steps(const struct layer_place *at, struct layer_step step[STEP_COUNT],
                          const struct step **list) {
  static const struct step *const kind[STEP_COUNT] = {
      [STEP_LOOK] = &step_look,   [STEP_QUERY] = &step_rows,      [STEP_KEY] = &step_rows,
      [STEP_VALUE] = &step_rows,  [STEP_ATTEND] = &step_attend,   [STEP_TRACE] = &step_trace,
      [STEP_OUTPUT] = &step_rows, [STEP_MEASURE] = &step_measure, [STEP_SUM] = &step_sum};
  static const unsigned role[STEP_COUNT] = {[STEP_QUERY] = ROLE_QUERY,
                                            [STEP_KEY] = ROLE_KEY,
                                            [STEP_VALUE] = ROLE_VALUE,
                                            [STEP_OUTPUT] = ROLE_OUTPUT};
  const unsigned steps = at->measures ? STEP_COUNT : STEP_MEASURE;
  for (unsigned i = 0; i < STEP_COUNT; i++) {
    step[i] = (struct layer_step){.step = *kind[i], .at = *at};
    if (kind[i] != &step_rows) continue;
    /* Keys and values join the queries: none of them waits for another. */
    step[i].role = role[i];
    step[i].step.joins = role[i] == ROLE_KEY || role[i] == ROLE_VALUE;
    step[i].step.columns = rows_columns(at->layer, role[i]);
    step[i].side_by_side = rows_side_by_side(at->layer, role[i]);
  }
  for (unsigned i = 0; i < steps; i++) list[i] = &step[i].step;
  return steps;
}

/* --- a layer --- */

struct layer *layer_new(const struct layer_shape *shape,
                        const struct layer_matrix matrix[ROLE_COUNT], enum gemm_engine engine,
                        struct error *e) {
  struct layer *l = calloc(1, sizeof *l);
  if (!l) {
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a layer");
    return NULL;
  }
  l->shape = *shape;
  l->kernel = gemm_kernel(engine);
  for (unsigned role = 0; role < ROLE_PROJECTIONS; role++) {
    const size_t in = role_in(l, role), out = role_heads(l, role) * role_head_size(l, role);
    const size_t fit = TILE_FLOATS / size_max(in, 1);
    l->tile_rows[role] = size_max(TILE_ROWS_MIN, size_min(GATHERED_ROWS, fit));
    l->matrix[role] =
        pack_matrix(&matrix[role], out, in, shape->grouped ? role_heads(l, role) : 1, engine, e);
  }
  pack_score(l, matrix, engine, e);
  for (unsigned role = ROLE_QUERY; role <= ROLE_KEY; role++)
    l->norm[role] = copy_vector(matrix[ROLE_NORM_QUERY + role].weight, shape->head_size, e);
  rotary_make(l, e);
  relative_make(l, matrix[ROLE_RELATIVE].weight, e);
  disentangled_make(l, matrix, engine, e);
  if (e->status) {
    layer_free(l);
    return NULL;
  }
  l->queries = l->kernel->attend_queries(l->compare_size, shape->value_head_size);
  for (unsigned role = 0; role < ROLE_PROJECTIONS; role++)
    l->rows_independent[role] =
        (!l->matrix[role] || gemm_rows_independent(l->matrix[role])) &&
        (role > ROLE_KEY || !l->compare[role] || gemm_rows_independent(l->compare[role]));
  const struct layer_place alone = {.layer = l,
                                    .call_at = offsetof(struct layer_run, call),
                                    .first = true,
                                    .measures = true,
                                    .where = ""};
  const unsigned steps = layer_list_steps(&alone, l->step, l->list);
  l->plain = (struct program){.step = l->list, .steps = STEP_MEASURE, .bytes = layer_bytes(l)};
  l->measured = (struct program){.step = l->list, .steps = steps, .bytes = layer_bytes(l)};
  return l;
}

void layer_free(struct layer *l) {
  if (!l) return;
  for (unsigned role = 0; role < ROLE_PROJECTIONS; role++) gemm_free(l->matrix[role]);
  gemm_free(l->compare[ROLE_QUERY]);
  gemm_free(l->compare[ROLE_KEY]);
  free(l->vector);
  free(l->norm[ROLE_QUERY]);
  free(l->norm[ROLE_KEY]);
  free(l->rotary);
  relative_free(l->relative);
  disentangled_free(l->disentangled);
  free(l);
}

const char *layer_engine(const struct layer *l) {
  for (unsigned role = 0; role < ROLE_PROJECTIONS; role++)
    if (l->matrix[role]) return gemm_engine_name(l->matrix[role]);
  return l->compare[ROLE_QUERY] ? gemm_engine_name(l->compare[ROLE_QUERY]) : "none";
}

size_t layer_bytes(const struct layer *l) {
  size_t bytes = disentangled_bytes(l);
  for (unsigned role = 0; role < ROLE_PROJECTIONS; role++)
    if (l->matrix[role]) bytes += gemm_bytes(l->matrix[role]);
  for (unsigned role = 0; role <= ROLE_KEY; role++)
    if (l->compare[role]) bytes += gemm_bytes(l->compare[role]);
  return bytes;
}

unsigned layer_forms(const struct layer *l) {
  unsigned forms = 0;
  for (unsigned role = 0; role < ROLE_PROJECTIONS; role++)
    if (l->matrix[role] && !gemm_quantizes(l->matrix[role]))
      forms |= 1U << gemm_form(l->matrix[role]);
  return forms;
}

size_t layer_scratch_bytes(const struct layer *l) {
  size_t floats = l->kernel->attend_scratch(l->compare_size, l->shape.value_head_size) +
                  lineage_floats(l) + size_round_up(l->queries, 16); /* a random number each */
  for (unsigned role = 0; role < ROLE_PROJECTIONS; role++)
    floats = size_max(floats, strip_floats(l, role));
  floats = size_max(floats, measure_scratch_floats(l));
  return floats * sizeof(float);
}
