/* layer_trace: the trace of a call: the attention of one query in one head, computed again, alone.
 *
 * Its weights and context are bit-identical to those of the call. Query, keys and values are copied
 * from where attention reads them. Products and scores are computed in double, since attention does
 * not store them. */
#include <math.h>
#include <string.h>

#include "core/attention/layer_parts.h"
#include "core/attention/trace.h"

/* --- preparing --- */

static float *alloc_rows(struct arena *a, size_t rows, size_t size, struct error *e) {
  return arena_alloc(a, rows, size * sizeof(float), e);
}

enum status trace_prepare(const struct layer *l, const struct call *c, struct arena *a,
                          struct error *e) {
  struct trace *t = c->trace;
  if (!t) return STATUS_OK;
  must(t->item < c->geometry->items && t->head < l->shape.heads &&
       t->row < c->geometry->item[t->item].q);
  t->keys = c->geometry->item[t->item].k;
  t->size = l->compare_size;
  t->value_size = l->shape.value_head_size;
  t->query = alloc_rows(a, 1, t->size, e);
  t->key = alloc_rows(a, t->keys, t->size, e);
  t->value = alloc_rows(a, t->keys, t->value_size, e);
  t->seen = arena_alloc(a, t->keys, sizeof *t->seen, e);
  t->product = alloc_rows(a, t->keys, 1, e);
  t->score = alloc_rows(a, t->keys, 1, e);
  t->weight = alloc_rows(a, t->keys, 1, e);
  t->context = alloc_rows(a, 1, t->value_size, e);
  return e->status;
}

/* Attention again, and copies and products, which are limited by memory. */
double trace_work(const struct layer *l, const struct call *c) {
  if (!c->trace) return 0;
  const struct item *item = &c->geometry->item[c->trace->item];
  const double numbers = (double)(l->compare_size + l->shape.value_head_size);
  return 2 * query_work(l, c, item, item->k) + 8 * numbers * (double)item->k;
}

/* --- the results --- */

static void copy_row(bool there, size_t size, const float *from, float *to) {
  if (there)
    memcpy(to, from, size * sizeof *to);
  else
    memset(to, 0, size * sizeof *to);
}

/* Sets `seen`, and copies the query, keys and values. Masked rows are not read, except for values
 * if a query without visible keys has equal weights for all. */
static void copy_inputs(const struct trace *t, const struct kernel_tile *tile) {
  const size_t from = (size_t)tile->from[0], to = (size_t)tile->to[0];
  bool any = false;
  for (size_t j = 0; j < t->keys; j++) {
    t->seen[j] = from <= j && j < to && (!tile->mask || tile->mask[j]);
    any |= t->seen[j];
    copy_row(t->seen[j], t->size, tile->key + j * tile->key_row, t->key + j * t->size);
    copy_row(t->seen[j] || t->weight[j] != 0, t->value_size, tile->value + j * tile->value_row,
             t->value + j * t->value_size);
  }
  copy_row(any, t->size, tile->query, t->query);
}

/* The score of one key before scale and bias. */
static double product_of(const struct kernel *k, const struct kernel_tile *tile, const float *key,
                         float *scratch) {
  if (!tile->vector) return k->dot(tile->head_size, tile->query, key);
  for (size_t x = 0; x < tile->head_size; x++) scratch[x] = tile->query[x] + key[x];
  k->tanh(tile->head_size, scratch, scratch);
  return k->dot(tile->head_size, tile->vector, scratch);
}

static void compare_keys(const struct kernel *k, const struct trace *t,
                         const struct kernel_tile *tile, float *scratch) {
  for (size_t j = 0; j < t->keys; j++) {
    t->product[j] = t->score[j] = 0;
    if (!t->seen[j]) continue;
    const double product = product_of(k, tile, tile->key + j * tile->key_row, scratch);
    const double bias = tile->bias ? tile->bias[j] : 0,
                 relative = tile->relative ? tile->relative[j] : 0;
    const double positions =
        disentangled_score(tile, tile->query, tile->key + j * tile->key_row, j);
    const double scaled = tile->scale * product + positions, cap = tile->cap;
    t->product[j] = (float)product;
    t->score[j] = (float)((cap > 0 ? cap * tanh(scaled / cap) : scaled) + bias + relative);
  }
}

static bool trace_is_finite(const struct kernel *k, const struct trace *t) {
  const struct {
    size_t count;
    const float *x;
  } all[] = {
      {t->size, t->query},   {t->keys * t->size, t->key}, {t->keys * t->value_size, t->value},
      {t->keys, t->product}, {t->keys, t->score},         {t->value_size, t->context}};
  bool finite = true;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    finite &= k->peak(all[i].count, all[i].x) < KERNEL_NOT_FINITE;
  return finite;
}

static void trace_query(const struct layer_step *s, const struct unit *u, float *scratch) {
  const struct kernel *k = s->at.layer->kernel;
  const struct call *c = call_of(s, u->run);
  const struct trace *t = c->trace;
  struct tile_kept kept = tile_kept_of(s, u, NULL);
  struct kernel_tile tile;
  float chance;
  tile_begin(&tile, s, u);
  tile_set_inputs(&tile, s, u, &kept, u->head);
  tile_draw_chances(c, u, u->head, &chance);
  tile.chance = &chance;
  /* The results of attention go to the trace, and nowhere else. */
  tile.value_head_size = t->value_size;
  tile.context = t->context;
  tile.context_row = t->value_size;
  tile.context_factor = 1.0f;
  tile.weights = t->weight;
  tile.pointers = NULL;
  tile.top = tile.factor = tile.greatest = tile.segment_top = tile.segment_factor = NULL;
  memset(t->weight, 0, t->keys * sizeof *t->weight);
  bool finite = k->attend(1, &tile, scratch);
  if (finite) {
    tile_fill_uniform(&tile, s, u, scratch);
    copy_inputs(t, &tile);
    compare_keys(k, t, &tile, scratch);
    finite = trace_is_finite(k, t);
  }
  if (!finite) run_record_fault(u->run, u->step, 0);
}

/* --- units --- */

/* The only unit: the traced query. */
static bool trace_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct trace *t = call_of(layer_step_of(step), u->run)->trace;
  if (!t || at->row++ > 0) return false;
  u->item = t->item;
  u->head = t->head, u->heads = 1;
  u->row = t->row, u->rows = 1;
  return true;
}

static double trace_unit_work(const struct step *step, const struct unit *u) {
  const struct layer_step *s = layer_step_of(step);
  return trace_work(s->at.layer, call_of(s, u->run));
}

static void compute_trace(const struct step *step, const struct span *span, void *scratch) {
  const unsigned mode = kernel_enter();
  struct span left = *span;
  struct unit u;
  while (run_next_unit(&left, &u)) trace_query(layer_step_of(step), &u, scratch);
  kernel_leave(mode);
}

static enum status fault_of_trace(const struct step *step, const struct run *run, uint64_t place,
                                  struct error *e) {
  const struct layer_step *s = layer_step_of(step);
  const struct trace *t = call_of_const(s, run)->trace;
  (void)place;
  return error_set(
      e, STATUS_NOT_FINITE,
      "%sa number in the trace of query %zu of item %zu in head %zu exceeds the float32 range",
      s->at.where, t->row, t->item, t->head);
}

const struct step step_trace = {
    .unit = trace_unit, .work = trace_unit_work, .compute = compute_trace, .fault = fault_of_trace};
