/* layer_measure_cut: how the measuring of a call is cut into pieces, turns and groups, and the
 * memory that it takes. */
#include <math.h>
#include <string.h>

#include "core/attention/layer_measure.h"
#include "core/attention/measures.h"
#include "core/base/size.h"

enum {
  TURN_WORK = 300000000, /* operations: a few milliseconds */
  SUMS_BYTES = 4 << 20,  /* the sums of all groups may always take so many */
};

/* --- the sums of a group --- */

static size_t head_pairs(const struct layer *l) {
  return l->shape.sigmoid ? 0 : l->shape.heads * (l->shape.heads - 1) / 2;
}

size_t measure_sums_count(const struct layer *l) { return 2 + 5 * l->shape.heads + head_pairs(l); }

struct measure_sums measure_sums_at(const struct layer *l, const struct call *c, size_t group) {
  const size_t heads = l->shape.heads;
  double *at = c->space->measuring.sums + group * measure_sums_count(l), *head = at + 2;
  return (struct measure_sums){.rows = at,
                               .outputs = at + 1,
                               .confidence = head,
                               .entropy = head + heads,
                               .distance = head + 2 * heads,
                               .norm = head + 3 * heads,
                               .square = head + 4 * heads,
                               .divergence = l->shape.sigmoid ? NULL : head + 5 * heads};
}

/* --- pieces, turns and groups --- */

/* Operations for one query and one key in all heads. Each head takes an exponential and a
 * logarithm, each pair of heads a logarithm; these weigh as much as some forty operations. */
static double key_work(const struct layer *l) {
  const double score = (l->vector ? 34.0 : 2.0) * (double)l->compare_size;
  return (double)l->shape.heads * (score + 80.0) + (double)head_pairs(l) * 35.0;
}

/* Operations for the heads' contributions to one output row. */
static double row_work(const struct layer *l) {
  const double out = l->matrix[ROLE_OUTPUT] ? 2.0 * (double)l->shape.output_size : 4.0;
  return (double)role_in(l, ROLE_OUTPUT) * out;
}

size_t measure_piece_rows(const struct layer *l) {
  return l->kernel->measure_queries(l->compare_size, l->shape.heads);
}

/* Keys of a turn: whole blocks where these are not too much. */
static size_t turn_keys(const struct layer *l) {
  const double keys = TURN_WORK / (key_work(l) * (double)measure_piece_rows(l));
  if (keys < KERNEL_KEYS) return (size_t)fmax(1, keys);
  return (size_t)fmin(keys, 1 << 30) / KERNEL_KEYS * KERNEL_KEYS;
}

/* Turns of each of an item's pieces. */
static size_t turns_of(const struct layer *l, const struct item *item) {
  return size_max(1, (item->k + turn_keys(l) - 1) / turn_keys(l));
}

static size_t pieces_of(const struct layer *l, const struct item *item) {
  return (item->q + measure_piece_rows(l) - 1) / measure_piece_rows(l);
}

/* The last index of a rising list [count + 1] whose number is not above `x`. */
static size_t find_last(const size_t *list, size_t count, size_t x) {
  size_t low = 0, high = count;
  while (low + 1 < high) {
    const size_t middle = (low + high) / 2;
    if (list[middle] <= x)
      low = middle;
    else
      high = middle;
  }
  return low;
}

struct measure_turn measure_turn_at(const struct layer_step *s, struct run *run, size_t turn) {
  const struct layer *l = s->at.layer;
  const struct call *c = call_of(s, run);
  const struct geometry *g = c->geometry;
  const struct measuring *m = &c->space->measuring;
  struct measure_turn t = {.number = find_last(m->turn_at, m->pieces, turn)};
  const size_t item = find_last(m->piece_at, g->items, t.number);
  const size_t row = (t.number - m->piece_at[item]) * measure_piece_rows(l);
  t.piece = (struct unit){.run = run,
                          .item = item,
                          .row = row,
                          .rows = size_min(measure_piece_rows(l), g->item[item].q - row)};
  t.from = (turn - m->turn_at[t.number]) * turn_keys(l);
  t.to = size_min(t.from + turn_keys(l), g->item[item].k);
  return t;
}

size_t measure_group_begin(const struct measuring *m, size_t group) {
  return m->turn_at[size_min(group * m->group, m->pieces)];
}

/* --- walking --- */

/* A turn of each group that has one left in this pass. */
bool measure_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct measuring *m = &call_of(layer_step_of(step), u->run)->space->measuring;
  for (; at->row < m->groups; at->row++) {
    if (measure_group_begin(m, at->row) + at->pass >= measure_group_begin(m, at->row + 1)) continue;
    u->row = at->row++;
    return true;
  }
  return false;
}

double measure_unit_work(const struct step *step, const struct unit *u) {
  const struct layer_step *s = layer_step_of(step);
  const struct layer *l = s->at.layer;
  const struct measuring *m = &call_of(s, u->run)->space->measuring;
  const struct measure_turn t =
      measure_turn_at(s, u->run, measure_group_begin(m, u->row) + u->pass);
  const double keys = (double)t.piece.rows * key_work(l) * (double)(t.to - t.from + 1);
  return t.from == 0 ? keys + (double)t.piece.rows * row_work(l) : keys;
}

size_t measure_passes(const struct step *step, const struct run *r) {
  return call_of_const(layer_step_of(step), r)->space->measuring.passes;
}

/* One unit for the whole call, if it measures anything. */
bool measure_sum_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct call *c = call_of(layer_step_of(step), u->run);
  return at->row++ == 0 && c->space->measuring.groups > 0;
}

double measure_sum_work(const struct step *step, const struct unit *u) {
  const struct layer *l = layer_step_of(step)->at.layer;
  const struct measuring *m = &call_of(layer_step_of(step), u->run)->space->measuring;
  return (double)(m->groups * measure_sums_count(l) + m->pieces * l->shape.heads);
}

double measure_work(const struct layer *l, const struct call *c) {
  const struct geometry *g = c->geometry;
  double work = 0;
  for (size_t i = 0; c->want_measures && i < g->items; i++)
    work += (double)g->item[i].q * (key_work(l) * (double)g->item[i].k + row_work(l));
  return work;
}

/* --- preparing --- */

static enum status number_pieces(const struct layer *l, struct call *c, struct arena *a,
                                 struct error *e) {
  const struct geometry *g = c->geometry;
  struct measuring *m = &c->space->measuring;
  m->piece_at = arena_alloc(a, g->items + 1, sizeof *m->piece_at, e);
  if (!m->piece_at) return e->status;
  m->piece_at[0] = 0;
  for (size_t i = 0; i < g->items; i++)
    m->piece_at[i + 1] = m->piece_at[i] + pieces_of(l, &g->item[i]);
  m->pieces = m->piece_at[g->items];
  m->turn_at = arena_alloc(a, m->pieces + 1, sizeof *m->turn_at, e);
  if (!m->turn_at) return e->status;
  m->turn_at[0] = 0;
  for (size_t i = 0, piece = 0; i < g->items; i++)
    for (; piece < m->piece_at[i + 1]; piece++)
      m->turn_at[piece + 1] = m->turn_at[piece] + turns_of(l, &g->item[i]);
  return STATUS_OK;
}

/* A group is one piece; but more where there are so many heads, and pairs of heads, that the sums
 * of all groups would take more memory than the contexts do. */
static void form_groups(const struct layer *l, struct call *c) {
  struct measuring *m = &c->space->measuring;
  const double contexts =
      (double)c->geometry->q_rows * (double)role_in(l, ROLE_OUTPUT) * sizeof(float);
  const double all = (double)m->pieces * (double)measure_sums_count(l) * sizeof(double);
  m->group = (size_t)ceil(fmax(1, all / fmax(contexts, SUMS_BYTES)));
  m->groups = (m->pieces + m->group - 1) / m->group;
  m->passes = 0;
  for (size_t i = 0; i < m->groups; i++)
    m->passes = size_max(m->passes, measure_group_begin(m, i + 1) - measure_group_begin(m, i));
}

static enum status place_sums(const struct layer *l, struct call *c, struct arena *a,
                              struct error *e) {
  struct measuring *m = &c->space->measuring;
  size_t rows, sums;
  if (number_pieces(l, c, a, e)) return e->status;
  form_groups(l, c);
  if (!size_mul(c->geometry->q_rows, l->shape.heads, &rows) ||
      !size_mul(m->groups, measure_sums_count(l), &sums))
    return error_set(e, STATUS_TOO_LARGE, "the sums for measuring exceed the address space");
  m->top = arena_alloc(a, rows, sizeof *m->top, e);
  m->factor = arena_alloc(a, rows, sizeof *m->factor, e);
  m->greatest = arena_alloc(a, rows, sizeof *m->greatest, e);
  if (c->geometry->segment_end) {
    m->segment_top = arena_alloc(a, rows, sizeof *m->segment_top, e);
    m->segment_factor = arena_alloc(a, rows, sizeof *m->segment_factor, e);
  }
  m->sums = arena_alloc(a, sums, sizeof *m->sums, e);
  m->gradient = NULL;
  if (c->gradients) /* no more pieces than rows */
    m->gradient = arena_alloc(a, m->pieces * l->shape.heads, sizeof *m->gradient, e);
  return e->status;
}

/* The measures of a call without rows: zeros, and the heads in order. */
static void clear_measures(const struct layer *l, struct measures *m) {
  const size_t heads = l->shape.heads;
  m->rows = 0;
  memset(m->head, 0, heads * sizeof *m->head);
  if (m->divergence) memset(m->divergence, 0, heads * heads * sizeof *m->divergence);
  for (size_t h = 0; h < heads; h++) m->ranking[h] = h;
}

enum status measure_prepare(const struct layer *l, struct call *c, struct arena *a,
                            struct error *e) {
  const size_t heads = l->shape.heads;
  size_t square;
  c->measures = NULL;
  if (!c->want_measures) return STATUS_OK;
  if (!size_mul(heads, heads, &square))
    return error_set(e, STATUS_TOO_LARGE, "the pairs of heads exceed the address space");
  struct measures *m = arena_alloc(a, 1, sizeof *m, e);
  if (!m) return e->status;
  m->head = arena_alloc(a, heads, sizeof *m->head, e);
  m->ranking = arena_alloc(a, heads, sizeof *m->ranking, e);
  m->divergence = NULL;
  if (!l->shape.sigmoid) m->divergence = arena_alloc(a, square, sizeof *m->divergence, e);
  if (e->status || place_sums(l, c, a, e)) return e->status;
  clear_measures(l, m);
  c->measures = m;
  return STATUS_OK;
}
