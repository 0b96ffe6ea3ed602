/* attention_ref_call: splits a call into its items, which the reference computes one by one. */
#include "core/attention/sight.h"
#include "core/base/arena.h"
#include "core/reference/attention_ref.h"

/* Rows from .. from + count - 1, in float64. */
static const double *widen_rows(const float *rows, size_t from, size_t count, size_t size,
                                struct arena *a, struct error *e) {
  double *x = arena_alloc(a, count * size, sizeof *x, e);
  for (size_t i = 0; x && i < count * size; i++) x[i] = rows[from * size + i];
  return x;
}

/* The masks of all heads, [H, q, k]: 1 where sight_allows. */
static const uint8_t *spread_mask(const struct layer_shape *s, const struct geometry *g,
                                  const struct item *item, struct arena *a, struct error *e) {
  uint8_t *seen = arena_alloc(a, s->heads * item->q * item->k, 1, e);
  if (!seen) return NULL;
  for (size_t head = 0, pair = 0; head < s->heads; head++)
    for (size_t i = 0; i < item->q; i++)
      for (size_t j = 0; j < item->k; j++) seen[pair++] = sight_allows(g, item, head, i, j);
  return seen;
}

/* The biases of all heads, [H, q, k], also if the call has one for all of them; NULL: no bias. */
static const double *spread_bias(const struct layer_shape *s, const struct geometry *g,
                                 const struct item *item, struct arena *a, struct error *e) {
  const size_t plane = item->q * item->k;
  double *bias = g->bias ? arena_alloc(a, s->heads * plane, sizeof *bias, e) : NULL;
  for (size_t i = 0; bias && i < s->heads * plane; i++)
    bias[i] = g->bias[item->bias_at + (g->bias_per_head ? i : i % plane)];
  return bias;
}

static struct ref_item item_of(const struct layer_shape *s, const struct call *c, size_t number,
                               struct arena *a, struct error *e) {
  const struct geometry *g = c->geometry;
  const struct item *item = &g->item[number];
  return (struct ref_item){
      .number = number,
      .q = item->q,
      .k = item->k,
      .queries = widen_rows(c->queries, item->q_row, item->q, s->query_size, a, e),
      .keys = widen_rows(c->keys, item->k_row, item->k, s->key_size, a, e),
      .values = widen_rows(c->values, item->k_row, item->k, s->value_size, a, e),
      .offset = item->offset,
      .seen = spread_mask(s, g, item, a, e),
      .bias = spread_bias(s, g, item, a, e),
      .head_mask = c->head_mask,
      .masked_heads = c->want != WEIGHTS_NONE || c->want_pointers || c->want_measures,
      .trace = c->trace,
      .uniform_rows = c->uniform_rows,
      .select = c->select,
      .seed = c->seed,
      .segments = item->segments,
      .segment_end = g->segment_end ? g->segment_end + item->segments_at : NULL};
}

enum status attention_ref(const struct layer_shape *s, const struct layer_matrix matrix[ROLE_COUNT],
                          const struct call *c, const struct ref_answer *answer, struct error *e) {
  struct ref_answer at = *answer; /* the results of the current item */
  for (size_t i = 0; i < c->geometry->items && e->status == STATUS_OK; i++) {
    struct arena a;
    arena_init(&a, NULL);
    const struct ref_item item = item_of(s, c, i, &a, e);
    if (e->status == STATUS_OK) attention_ref_item(s, matrix, &item, &at, e);
    arena_free(&a);
    const size_t rows = s->heads * item.q;
    at.outputs += item.q * s->output_size;
    if (at.weights) at.weights += rows * item.k;
    if (at.segment_weights) at.segment_weights += rows * item.segments;
    if (at.pointers) at.pointers += rows;
    if (at.contexts) at.contexts += rows * s->value_head_size;
    if (at.chosen) at.chosen += rows;
  }
  return e->status;
}
