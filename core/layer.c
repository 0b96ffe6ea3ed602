/* layer: one multi-head attention layer: how it is made, and how a call is prepared for it. */
#include "core/layer.h"

#include <stdlib.h>
#include <string.h>

#include "core/layer_parts.h"
#include "core/size.h"

enum {
  TILE_FLOATS = 65536, /* of input rows in one tile: a quarter of a MiB */
  TILE_ROWS_MIN = 8,
};

struct layer *layer_new(const struct layer_shape *shape,
                        const struct layer_matrix matrix[ROLE_COUNT], enum gemm_engine engine,
                        struct error *e) {
  struct layer *l = calloc(1, sizeof *l);
  if (!l) {
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a layer");
    return NULL;
  }
  l->shape = *shape;
  l->kernel = kernel_best();
  l->queries = l->kernel->attend_queries(shape->head_size, shape->value_head_size);
  for (unsigned role = 0; role < ROLE_PROJECTIONS; role++) {
    const size_t in = role_in(l, role);
    const size_t fit = TILE_FLOATS / size_max(in, 1);
    l->tile_rows[role] = size_max(TILE_ROWS_MIN, size_min(TILE_ROWS_MAX, fit));
    l->rows_independent[role] = true;
    if (!matrix[role].weight) continue;
    const size_t out = role_heads(l, role) * role_head_size(l, role);
    l->matrix[role] = gemm_new(out, in, matrix[role].weight, matrix[role].bias, engine, e);
    if (!l->matrix[role]) {
      layer_free(l);
      return NULL;
    }
    l->rows_independent[role] = gemm_rows_independent(l->matrix[role]);
  }
  return l;
}

void layer_free(struct layer *l) {
  if (!l) return;
  for (unsigned role = 0; role < ROLE_PROJECTIONS; role++) gemm_free(l->matrix[role]);
  free(l);
}

const char *layer_engine(const struct layer *l) {
  for (unsigned role = 0; role < ROLE_PROJECTIONS; role++)
    if (l->matrix[role]) return gemm_engine_name(l->matrix[role]);
  return "none";
}

size_t layer_scratch_bytes(const struct layer *l) {
  size_t floats = l->kernel->attend_scratch(l->shape.head_size, l->shape.value_head_size);
  for (unsigned role = 0; role < ROLE_PROJECTIONS; role++) {
    const size_t stripe = l->matrix[role] ? gemm_stripe(l->matrix[role]) : 0;
    const size_t row = size_round_up(role_in(l, role), 16) + size_round_up(stripe, 16);
    floats = size_max(floats, l->tile_rows[role] * row);
  }
  floats = size_max(floats, measure_scratch_floats(l));
  return floats * sizeof(float);
}

/* --- preparing a call --- */

/* About: as if every pair were visible, which is known only later. */
static double call_work(const struct layer *l, const struct call *c) {
  double work = 0;
  for (unsigned role = 0; role < ROLE_PROJECTIONS; role++) {
    const double rows = (double)(role == ROLE_KEY || role == ROLE_VALUE ? c->k_rows : c->q_rows);
    const double out = (double)(role_heads(l, role) * role_head_size(l, role));
    work += 2.0 * rows * out * (l->matrix[role] ? (double)role_in(l, role) : 1.0);
  }
  for (size_t i = 0; i < c->items; i++)
    work += pair_work(l) * (double)l->shape.heads * (double)c->item[i].q * (double)c->item[i].k;
  return work + measure_work(l, c);
}

static enum status take_answer(const struct layer *l, struct call *c, struct arena *a,
                               struct error *e) {
  size_t count, total = 0;
  const size_t heads = c->want == WEIGHTS_AVERAGE ? 1 : l->shape.heads;
  for (size_t i = 0; i < c->items && c->want != WEIGHTS_NONE; i++) {
    c->item[i].weights_at = total;
    if (!size_mul(c->item[i].q, c->item[i].k, &count) || !size_mul(count, heads, &count) ||
        !size_add(total, count, &total))
      return error_limit(e, "max_answer_bytes", "the attention weights are too many to count");
  }
  c->weight_count = total;
  if (c->want != WEIGHTS_NONE) c->weights = arena_alloc(a, total, sizeof(float), e);
  if (!size_mul(c->q_rows, l->shape.output_size, &count))
    return error_limit(e, "max_answer_bytes", "the outputs are too many to count");
  c->outputs = arena_alloc(a, count, sizeof(float), e);
  return e->status;
}

static enum status take_space(const struct layer *l, struct call *c, struct arena *a,
                              struct error *e) {
  struct call_space *s = c->space;
  size_t count;
  for (unsigned role = ROLE_QUERY; role <= ROLE_VALUE; role++) {
    const size_t rows = role == ROLE_QUERY ? c->q_rows : c->k_rows;
    if (!size_mul(rows, role_heads(l, role) * role_head_size(l, role), &count))
      return error_set(e, STATUS_TOO_LARGE, "the projections are too many to count");
    s->projected[role] = arena_alloc(a, count, sizeof(float), e);
    if (!s->projected[role]) return e->status;
  }
  if (!size_mul(c->q_rows, role_in(l, ROLE_OUTPUT), &count))
    return error_set(e, STATUS_TOO_LARGE, "the context is too large to count");
  s->context = arena_alloc(a, count, sizeof(float), e);
  s->tops = arena_alloc(a, c->items, sizeof *s->tops, e);
  if (!s->context || !s->tops) return e->status;
  memset(s->tops, 0, c->items * sizeof *s->tops);
  return STATUS_OK;
}

enum status layer_prepare(const struct layer *l, struct call *c, struct arena *a, struct error *e) {
  c->space = arena_alloc(a, 1, sizeof *c->space, e);
  if (!c->space) return e->status;
  *c->space = (struct call_space){0};
  c->next = NULL;
  atomic_init(&c->cancelled, false);
  atomic_init(&c->fault, 0);
  if (visible_reserve(&c->space->visible, c, a, e) || take_answer(l, c, a, e) ||
      take_space(l, c, a, e) || measure_prepare(l, c, a, e))
    return e->status;
  c->work = call_work(l, c);
  return STATUS_OK;
}

/* --- faults --- */

enum { FAULT_SHIFT = 56 };

void fault_at(struct call *c, enum fault_stage stage, size_t row) {
  const uint64_t here = (uint64_t)stage << FAULT_SHIFT | row;
  uint64_t known = atomic_load(&c->fault);
  while ((known == 0 || here < known) && !atomic_compare_exchange_weak(&c->fault, &known, here)) {
  }
}

bool call_is_over(const struct call *c, enum phase phase) {
  if (atomic_load_explicit(&c->cancelled, memory_order_relaxed)) return true;
  const uint64_t fault = atomic_load_explicit(&c->fault, memory_order_relaxed);
  /* A fault of this very phase stops nothing: which place is the first one must not depend on
   * the order in which the tiles are computed. */
  static const enum fault_stage first_of[] = {
      [PHASE_LOOK] = FAULT_QUERY,    [PHASE_PROJECT] = FAULT_QUERY,   [PHASE_ATTEND] = FAULT_SCORE,
      [PHASE_OUTPUT] = FAULT_OUTPUT, [PHASE_MEASURE] = FAULT_MEASURE, [PHASE_SUM] = FAULT_MEASURE};
  return fault != 0 && fault >> FAULT_SHIFT < (uint64_t)first_of[phase];
}

/* Which item a row belongs to, counted over all items. */
static size_t item_of_row(const struct call *c, size_t row, bool of_keys) {
  size_t i = 0;
  while (i + 1 < c->items && (of_keys ? c->item[i + 1].k_row : c->item[i + 1].q_row) <= row) i++;
  return i;
}

enum status layer_fault(const struct call *c, struct error *e) {
  static const char *const what[] = {[FAULT_QUERY] = "the projection of query",
                                     [FAULT_KEY] = "the projection of key",
                                     [FAULT_VALUE] = "the projection of value",
                                     [FAULT_OUTPUT] = "the output of query"};
  const uint64_t fault = atomic_load(&c->fault);
  if (fault == 0) return STATUS_OK;
  const enum fault_stage stage = (enum fault_stage)(fault >> FAULT_SHIFT);
  const size_t row = fault & (((uint64_t)1 << FAULT_SHIFT) - 1);
  const bool of_keys = stage == FAULT_KEY || stage == FAULT_VALUE;
  const size_t item = item_of_row(c, row, of_keys);
  if (stage == FAULT_MEASURE)
    return error_set(e, STATUS_NOT_FINITE, "a measure of the heads is beyond float32");
  if (stage == FAULT_SCORE)
    return error_set(e, STATUS_NOT_FINITE, "a score of item %zu is beyond float32", item);
  const size_t first = of_keys ? c->item[item].k_row : c->item[item].q_row;
  return error_set(e, STATUS_NOT_FINITE, "%s row %zu of item %zu is beyond float32", what[stage],
                   row - first, item);
}
