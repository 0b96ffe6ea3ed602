/* layer_measure: how the measuring of a call is cut, prepared and done.
 *
 * The weights are made again for a piece of query rows and a run of keys at a time, all heads side
 * by side; the heads' contributions to those rows are made beside the first run. */
#include <math.h>
#include <string.h>

#include "core/attention/layer_measure.h"
#include "core/attention/measures.h"
#include "core/run/size.h"

enum {
  STEP_WORK = 300000000, /* operations: a few milliseconds */
  SUMS_BYTES = 4 << 20,  /* that the sums of all groups may always take */
};

/* --- the sums of a group --- */

static size_t head_pairs(const struct layer *l) {
  return l->shape.sigmoid ? 0 : l->shape.heads * (l->shape.heads - 1) / 2;
}

size_t sums_count(const struct layer *l) { return 2 + 5 * l->shape.heads + head_pairs(l); }

struct sums sums_at(const struct layer *l, const struct call *c, size_t group) {
  const size_t heads = l->shape.heads;
  double *at = c->space->measuring.sums + group * sums_count(l), *head = at + 2;
  return (struct sums){.rows = at,
                       .outputs = at + 1,
                       .confidence = head,
                       .entropy = head + heads,
                       .distance = head + 2 * heads,
                       .norm = head + 3 * heads,
                       .square = head + 4 * heads,
                       .divergence = l->shape.sigmoid ? NULL : head + 5 * heads};
}

/* --- pieces, steps and groups --- */

/* Operations for one query and one key, in all heads. Each head takes an exponential and a
 * logarithm, and each pair of heads a logarithm: they weigh as much as some forty operations. */
static double key_work(const struct layer *l) {
  const double score = (l->vector ? 34.0 : 2.0) * (double)l->compare_size;
  return (double)l->shape.heads * (score + 80.0) + (double)head_pairs(l) * 35.0;
}

/* And for a query's contributions to its output row. */
static double row_work(const struct layer *l) {
  const double out = l->matrix[ROLE_OUTPUT] ? 2.0 * (double)l->shape.output_size : 4.0;
  return (double)role_in(l, ROLE_OUTPUT) * out;
}

static size_t piece_rows(const struct layer *l) {
  return l->kernel->measure_queries(l->compare_size, l->shape.heads);
}

/* Keys of a step: whole blocks where that is not too much. */
static size_t step_keys(const struct layer *l) {
  const double keys = STEP_WORK / (key_work(l) * (double)piece_rows(l));
  if (keys < KERNEL_KEYS) return (size_t)fmax(1, keys);
  return (size_t)fmin(keys, 1 << 30) / KERNEL_KEYS * KERNEL_KEYS;
}

/* Of a piece of an item. */
static size_t steps_of(const struct layer *l, const struct item *item) {
  return size_max(1, (item->k + step_keys(l) - 1) / step_keys(l));
}

static size_t pieces_of(const struct layer *l, const struct item *item) {
  return (item->q + piece_rows(l) - 1) / piece_rows(l);
}

/* A step, and where it is. */
struct step {
  struct unit piece; /* its rows */
  size_t number;     /* of the piece, in the call */
  size_t from, to;   /* keys */
};

/* The last place of a rising list [count + 1] that is not above `x`. */
static size_t place_in(const size_t *list, size_t count, size_t x) {
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

static struct step step_at(const struct layer *l, struct call *c, size_t step) {
  const struct measuring *m = &c->space->measuring;
  struct step s = {.number = place_in(m->step_at, m->pieces, step)};
  const size_t item = place_in(m->piece_at, c->items, s.number);
  const size_t row = (s.number - m->piece_at[item]) * piece_rows(l);
  s.piece = (struct unit){.call = c,
                          .phase = PHASE_MEASURE,
                          .item = item,
                          .row = row,
                          .rows = size_min(piece_rows(l), c->item[item].q - row)};
  s.from = (step - m->step_at[s.number]) * step_keys(l);
  s.to = size_min(s.from + step_keys(l), c->item[item].k);
  return s;
}

/* The steps of a group. */
static size_t group_begin(const struct measuring *m, size_t group) {
  return m->step_at[size_min(group * m->group, m->pieces)];
}

/* --- walking --- */

/* What each group has left in this round. */
bool measure_unit(const struct layer *l, struct cursor *at, struct unit *u) {
  struct call *c = at->call;
  const struct measuring *m = &c->space->measuring;
  for (; c->want_measures && at->item == 0 && at->row < m->groups; at->row++) {
    const size_t step = group_begin(m, at->row) + at->round;
    if (step >= group_begin(m, at->row + 1)) continue;
    const struct step s = step_at(l, c, step);
    u->row = at->row++;
    u->step = step;
    u->work = (double)s.piece.rows * key_work(l) * (double)(s.to - s.from + 1);
    if (s.from == 0) u->work += (double)s.piece.rows * row_work(l);
    return true;
  }
  return false;
}

size_t measure_rounds(const struct call *c) {
  return c->want_measures ? c->space->measuring.rounds : 0;
}

/* One for the whole call. */
bool measure_sum_unit(const struct layer *l, struct cursor *at, struct unit *u) {
  if (!at->call->want_measures || at->item > 0 || at->row > 0) return false;
  const struct measuring *m = &at->call->space->measuring;
  u->work = (double)m->groups * (double)sums_count(l) + (double)(m->pieces * l->shape.heads);
  at->row = 1;
  return true;
}

double measure_work(const struct layer *l, const struct call *c) {
  double work = 0;
  for (size_t i = 0; c->want_measures && i < c->items; i++)
    work += (double)c->item[i].q * (key_work(l) * (double)c->item[i].k + row_work(l));
  return work;
}

/* --- preparing --- */

static enum status number_pieces(const struct layer *l, struct call *c, struct arena *a,
                                 struct error *e) {
  struct measuring *m = &c->space->measuring;
  m->piece_at = arena_alloc(a, c->items + 1, sizeof *m->piece_at, e);
  if (!m->piece_at) return e->status;
  m->piece_at[0] = 0;
  for (size_t i = 0; i < c->items; i++)
    m->piece_at[i + 1] = m->piece_at[i] + pieces_of(l, &c->item[i]);
  m->pieces = m->piece_at[c->items];
  m->step_at = arena_alloc(a, m->pieces + 1, sizeof *m->step_at, e);
  if (!m->step_at) return e->status;
  m->step_at[0] = 0;
  for (size_t i = 0, piece = 0; i < c->items; i++)
    for (; piece < m->piece_at[i + 1]; piece++)
      m->step_at[piece + 1] = m->step_at[piece] + steps_of(l, &c->item[i]);
  return STATUS_OK;
}

/* Pieces of a group: one, but more where there are so many heads, and pairs of them, that the sums
 * of all groups would take more than the contexts do. */
static void form_groups(const struct layer *l, struct call *c) {
  struct measuring *m = &c->space->measuring;
  const double contexts = (double)c->q_rows * (double)role_in(l, ROLE_OUTPUT) * sizeof(float);
  const double all = (double)m->pieces * (double)sums_count(l) * sizeof(double);
  m->group = (size_t)ceil(fmax(1, all / fmax(contexts, SUMS_BYTES)));
  m->groups = (m->pieces + m->group - 1) / m->group;
  m->rounds = 0;
  for (size_t i = 0; i < m->groups; i++)
    m->rounds = size_max(m->rounds, group_begin(m, i + 1) - group_begin(m, i));
}

static enum status take_sums(const struct layer *l, struct call *c, struct arena *a,
                             struct error *e) {
  struct measuring *m = &c->space->measuring;
  size_t rows, sums;
  if (number_pieces(l, c, a, e)) return e->status;
  form_groups(l, c);
  if (!size_mul(c->q_rows, l->shape.heads, &rows) || !size_mul(m->groups, sums_count(l), &sums))
    return error_set(e, STATUS_TOO_LARGE, "the sums for measuring are too many to count");
  m->top = arena_alloc(a, rows, sizeof *m->top, e);
  m->factor = arena_alloc(a, rows, sizeof *m->factor, e);
  m->greatest = arena_alloc(a, rows, sizeof *m->greatest, e);
  if (c->segment_end) {
    m->segment_top = arena_alloc(a, rows, sizeof *m->segment_top, e);
    m->segment_factor = arena_alloc(a, rows, sizeof *m->segment_factor, e);
  }
  m->sums = arena_alloc(a, sums, sizeof *m->sums, e);
  m->gradient = NULL;
  if (c->gradients) /* no more pieces than rows */
    m->gradient = arena_alloc(a, m->pieces * l->shape.heads, sizeof *m->gradient, e);
  return e->status;
}

/* What is told of a call without rows: zeros, and the heads in order. */
static void tell_nothing(const struct layer *l, struct measures *m) {
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
    return error_set(e, STATUS_TOO_LARGE, "the pairs of heads are too many to count");
  struct measures *m = arena_alloc(a, 1, sizeof *m, e);
  if (!m) return e->status;
  m->head = arena_alloc(a, heads, sizeof *m->head, e);
  m->ranking = arena_alloc(a, heads, sizeof *m->ranking, e);
  m->divergence = NULL;
  if (!l->shape.sigmoid) m->divergence = arena_alloc(a, square, sizeof *m->divergence, e);
  if (e->status || take_sums(l, c, a, e)) return e->status;
  tell_nothing(l, m);
  c->measures = m;
  return STATUS_OK;
}

/* --- one piece --- */

static size_t tiles_floats(const struct layer *l) {
  return size_round_up(l->shape.heads * sizeof(struct kernel_tile), 64) / sizeof(float);
}

size_t measure_scratch_floats(const struct layer *l) {
  const struct layer_shape *s = &l->shape;
  const size_t weights = tiles_floats(l) + l->kernel->measure_scratch(l->compare_size, s->heads);
  const struct gemm *g = l->matrix[ROLE_OUTPUT];
  const size_t rows = piece_rows(l);
  return size_max(weights, g ? rows * gemm_stripe(g) : 0);
}

/* Does the piece's row see anything? */
static bool row_sees(const struct unit *u, size_t row) {
  const struct visible *v = &u->call->space->visible;
  const size_t at = u->call->item[u->item].q_row + u->row + row;
  return v->from[at] < v->to[at];
}

static void measure_weights(const struct layer *l, const struct step *s, const struct sums *sums,
                            void *scratch) {
  struct kernel_tile *head = scratch;
  const struct kernel_tile tile = tile_of(l, &s->piece);
  for (size_t h = 0; h < l->shape.heads; h++) {
    head[h] = tile;
    tile_set_inputs(&head[h], l, &s->piece, h);
  }
  const struct kernel_measure m = {.heads = l->shape.heads,
                                   .head = head,
                                   .row = s->piece.row,
                                   .from = s->from,
                                   .to = s->to,
                                   .entropy = sums->entropy,
                                   .distance = sums->distance,
                                   .divergence = sums->divergence};
  l->kernel->measure(&m, (float *)scratch + tiles_floats(l));
}

/* Attention has left the greatest weights. */
static void measure_confidence(const struct layer *l, const struct unit *u,
                               const struct sums *sums) {
  const struct call *c = u->call;
  const struct item *item = &c->item[u->item];
  for (size_t h = 0; h < l->shape.heads; h++) {
    const float *greatest =
        c->space->measuring.greatest + item->q_row * l->shape.heads + h * item->q + u->row;
    for (size_t i = 0; i < u->rows; i++)
      if (row_sees(u, i)) sums->confidence[h] += (double)greatest[i];
  }
}

/* Some columns of a head's contribution to the rows of a piece. */
struct columns {
  const float *y;
  size_t row_step;     /* of y */
  size_t first, count; /* which columns of the output */
};

/* Adds each row's square; returns the sum of the products with the gradients. */
static double note_columns(const struct layer *l, const struct unit *u, const struct columns *k,
                           double *square) {
  const struct call *c = u->call;
  const size_t row = c->item[u->item].q_row + u->row;
  double product = 0;
  for (size_t i = 0; i < u->rows; i++) {
    const float *y = k->y + i * k->row_step;
    if (!row_sees(u, i)) continue;
    square[i] += l->kernel->dot(k->count, y, y);
    if (c->gradients)
      product +=
          l->kernel->dot(k->count, y, c->gradients + (row + i) * l->shape.output_size + k->first);
  }
  return product;
}

/* What a head gives to the outputs of a piece: its context times its own rows of W_o^T, or its
 * context itself. */
static double measure_contribution(const struct layer *l, const struct unit *u, size_t head,
                                   double *square, float *product) {
  const struct call *c = u->call;
  const struct gemm *g = l->matrix[ROLE_OUTPUT];
  const size_t in = role_in(l, ROLE_OUTPUT), d_v = l->shape.value_head_size, from = head * d_v;
  const float *context = c->space->context + (c->item[u->item].q_row + u->row) * in;
  if (!g)
    return note_columns(
        l, u, &(struct columns){.y = context + from, .row_step = in, .first = from, .count = d_v},
        square);
  const size_t out = l->shape.output_size, stripe = gemm_stripe(g);
  double products = 0;
  for (size_t first = 0; first < out; first += stripe) {
    gemm_start(g, first, u->rows, false, product);
    gemm_add(g, first, u->rows, context, in, from, d_v, product);
    const struct columns k = {
        .y = product, .row_step = stripe, .first = first, .count = size_min(stripe, out - first)};
    products += note_columns(l, u, &k, square);
  }
  return products;
}

static void measure_contributions(const struct layer *l, const struct step *s,
                                  const struct sums *sums, float *scratch) {
  const struct measuring *m = &s->piece.call->space->measuring;
  for (size_t h = 0; h < l->shape.heads; h++) {
    double square[KERNEL_PANEL_MAX] = {0};
    const double products = measure_contribution(l, &s->piece, h, square, scratch);
    for (size_t i = 0; i < s->piece.rows; i++) {
      sums->norm[h] += sqrt(square[i]);
      sums->square[h] += square[i];
    }
    if (m->gradient) m->gradient[s->number * l->shape.heads + h] = products;
  }
}

static void measure_outputs(const struct layer *l, const struct unit *u, const struct sums *sums) {
  const size_t out = l->shape.output_size;
  const float *y = u->call->outputs + (u->call->item[u->item].q_row + u->row) * out;
  for (size_t i = 0; i < u->rows; i++) {
    if (!row_sees(u, i)) continue;
    *sums->rows += 1;
    *sums->outputs += l->kernel->dot(out, y + i * out, y + i * out);
  }
}

void run_measure(const struct layer *l, const struct unit *u, void *scratch) {
  struct call *c = u->call;
  const struct step s = step_at(l, c, u->step);
  const struct sums sums = sums_at(l, c, u->row);
  if (u->step == group_begin(&c->space->measuring, u->row))
    memset(sums.rows, 0, sums_count(l) * sizeof *sums.rows);
  measure_weights(l, &s, &sums, scratch);
  if (s.from > 0) return;
  measure_confidence(l, &s.piece, &sums);
  measure_contributions(l, &s, &sums, scratch);
  measure_outputs(l, &s.piece, &sums);
}
