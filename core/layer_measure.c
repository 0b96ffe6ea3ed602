/* layer_measure: the measures of the heads, from preparing the call to telling the numbers.
 *
 * The weights are made again for one piece of query rows at a time, all heads side by side; the
 * heads' contributions to those rows are made beside them. All of that is added up in double, unit
 * by unit, and at last over the units in order. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "core/layer_parts.h"
#include "core/measures.h"
#include "core/size.h"

enum {
  PIECE_WORK = 500000000, /* operations: a few milliseconds */
  SUMS_BYTES = 4 << 20,   /* that the sums of all units may always take */
};

/* --- the sums of a unit --- */

/* A unit's run of doubles: first two that are of no head, then [H] each, then [H (H - 1) / 2]. */
struct sums {
  double *rows;    /* query rows that see something */
  double *outputs; /* their squares, summed */
  double *confidence, *entropy, *distance, *norm, *square;
  double *divergence; /* see struct kernel_measure */
};

static size_t head_pairs(const struct layer *l) {
  return l->shape.sigmoid ? 0 : l->shape.heads * (l->shape.heads - 1) / 2;
}

static size_t sums_count(const struct layer *l) { return 2 + 5 * l->shape.heads + head_pairs(l); }

static struct sums sums_at(const struct layer *l, const struct call *c, size_t unit) {
  const size_t heads = l->shape.heads;
  double *at = c->space->measuring.sums + unit * sums_count(l), *head = at + 2;
  return (struct sums){.rows = at,
                       .outputs = at + 1,
                       .confidence = head,
                       .entropy = head + heads,
                       .distance = head + 2 * heads,
                       .norm = head + 3 * heads,
                       .square = head + 4 * heads,
                       .divergence = l->shape.sigmoid ? NULL : head + 5 * heads};
}

/* --- pieces and units --- */

/* Operations for one query row of an item. For every key each head takes an exponential and a
 * logarithm, and each pair of heads a logarithm: they weigh as much as some forty operations. */
static double row_work(const struct layer *l, size_t keys) {
  const struct layer_shape *s = &l->shape;
  const double heads = (double)s->heads, pairs = (double)head_pairs(l);
  const double score = (l->vector ? 34.0 : 2.0) * (double)l->compare_size;
  const double key = heads * (score + 80.0) + pairs * 35.0;
  const double out = l->matrix[ROLE_OUTPUT] ? 2.0 * (double)s->output_size : 4.0;
  return key * (double)(keys + 1) + heads * (double)s->value_head_size * out;
}

/* Query rows of an item's pieces: as many as are measured at once, but fewer where a piece would
 * hold a worker for long. */
static size_t piece_rows(const struct layer *l, const struct item *item) {
  size_t rows = l->kernel->measure_queries(l->compare_size, l->shape.heads);
  while (rows > l->kernel->lanes && row_work(l, item->k) * (double)rows > PIECE_WORK) rows /= 2;
  return rows;
}

/* The piece at a place of the call, which moves on; false behind the last one. */
static bool next_piece(const struct layer *l, struct call *c, size_t *item, size_t *row,
                       struct unit *piece) {
  while (*item < c->items && *row >= c->item[*item].q) ++*item, *row = 0;
  if (*item >= c->items) return false;
  const struct item *it = &c->item[*item];
  *piece = (struct unit){.call = c,
                         .phase = PHASE_MEASURE,
                         .item = *item,
                         .row = *row,
                         .rows = size_min(piece_rows(l, it), it->q - *row)};
  *row += piece->rows;
  return true;
}

static size_t piece_number(const struct layer *l, const struct unit *u) {
  const struct call *c = u->call;
  return c->space->measuring.piece_at[u->item] + u->row / piece_rows(l, &c->item[u->item]);
}

bool measure_unit(const struct layer *l, struct cursor *at, struct unit *u) {
  struct call *c = at->call;
  struct unit piece;
  if (!c->want_measures) return false;
  u->pieces = 0, u->work = 0;
  while (u->pieces < c->space->measuring.group && next_piece(l, c, &at->item, &at->row, &piece)) {
    if (u->pieces++ == 0) u->item = piece.item, u->row = piece.row;
    const size_t keys = c->space->visible.item[piece.item].key_end;
    u->work += (double)piece.rows * row_work(l, keys);
  }
  return u->pieces > 0;
}

/* One for the whole call. */
bool measure_sum_unit(const struct layer *l, struct cursor *at, struct unit *u) {
  if (!at->call->want_measures || at->item > 0 || at->row > 0) return false;
  const struct measuring *m = &at->call->space->measuring;
  const double pieces = (double)m->piece_at[at->call->items];
  u->work = (double)m->units * (double)sums_count(l) + pieces * (double)l->shape.heads;
  at->row = 1;
  return true;
}

double measure_work(const struct layer *l, const struct call *c) {
  double work = 0;
  for (size_t i = 0; c->want_measures && i < c->items; i++)
    work += (double)c->item[i].q * row_work(l, c->item[i].k);
  return work;
}

/* --- preparing --- */

static void number_pieces(const struct layer *l, const struct call *c, size_t *piece_at) {
  piece_at[0] = 0;
  for (size_t i = 0; i < c->items; i++) {
    const size_t rows = piece_rows(l, &c->item[i]);
    piece_at[i + 1] = piece_at[i] + (c->item[i].q + rows - 1) / rows;
  }
}

/* Pieces of a unit: one, but more where there are so many heads, and pairs of them, that the sums
 * of all units would take more than the contexts do. */
static size_t group_size(const struct layer *l, const struct call *c, size_t pieces) {
  const double contexts = (double)c->q_rows * (double)role_in(l, ROLE_OUTPUT) * sizeof(float);
  const double all = (double)pieces * (double)sums_count(l) * sizeof(double);
  return (size_t)ceil(fmax(1, all / fmax(contexts, SUMS_BYTES)));
}

static enum status take_sums(const struct layer *l, struct call *c, struct arena *a,
                             struct error *e) {
  struct measuring *m = &c->space->measuring;
  size_t rows, sums;
  m->piece_at = arena_alloc(a, c->items + 1, sizeof *m->piece_at, e);
  if (!m->piece_at) return e->status;
  number_pieces(l, c, m->piece_at);
  const size_t pieces = m->piece_at[c->items];
  m->group = group_size(l, c, pieces);
  m->units = (pieces + m->group - 1) / m->group;
  if (!size_mul(c->q_rows, l->shape.heads, &rows) || !size_mul(m->units, sums_count(l), &sums))
    return error_set(e, STATUS_TOO_LARGE, "the sums for measuring are too many to count");
  m->top = arena_alloc(a, rows, sizeof *m->top, e);
  m->factor = arena_alloc(a, rows, sizeof *m->factor, e);
  m->sums = arena_alloc(a, sums, sizeof *m->sums, e);
  if (c->gradients) /* no more pieces than rows */
    m->gradient = arena_alloc(a, pieces * l->shape.heads, sizeof *m->gradient, e);
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
  const size_t rows = l->kernel->measure_queries(l->compare_size, s->heads);
  return size_max(weights, g ? rows * gemm_stripe(g) : 0);
}

/* Does the piece's row see anything? */
static bool row_sees(const struct unit *u, size_t row) {
  const struct visible *v = &u->call->space->visible;
  const size_t at = u->call->item[u->item].q_row + u->row + row;
  return v->from[at] < v->to[at];
}

static void measure_weights(const struct layer *l, const struct unit *u, const struct sums *sums,
                            void *scratch) {
  struct kernel_tile *head = scratch;
  const struct kernel_tile tile = tile_of(l, u);
  for (size_t h = 0; h < l->shape.heads; h++) {
    head[h] = tile;
    tile_set_inputs(&head[h], l, u, h);
  }
  const struct kernel_measure m = {.heads = l->shape.heads,
                                   .head = head,
                                   .row = u->row,
                                   .confidence = sums->confidence,
                                   .entropy = sums->entropy,
                                   .distance = sums->distance,
                                   .divergence = sums->divergence};
  l->kernel->measure(&m, (float *)scratch + tiles_floats(l));
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

static void measure_contributions(const struct layer *l, const struct unit *u,
                                  const struct sums *sums, float *scratch) {
  const struct measuring *m = &u->call->space->measuring;
  for (size_t h = 0; h < l->shape.heads; h++) {
    double square[KERNEL_PANEL_MAX] = {0};
    const double products = measure_contribution(l, u, h, square, scratch);
    for (size_t i = 0; i < u->rows; i++) {
      sums->norm[h] += sqrt(square[i]);
      sums->square[h] += square[i];
    }
    if (m->gradient) m->gradient[piece_number(l, u) * l->shape.heads + h] = products;
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
  const size_t unit = piece_number(l, u) / c->space->measuring.group;
  const struct sums sums = sums_at(l, c, unit);
  size_t item = u->item, row = u->row;
  struct unit piece;
  memset(sums.rows, 0, sums_count(l) * sizeof *sums.rows);
  for (size_t i = 0; i < u->pieces && !call_is_over(c, PHASE_MEASURE); i++) {
    must(next_piece(l, c, &item, &row, &piece));
    measure_weights(l, &piece, &sums, scratch);
    measure_contributions(l, &piece, &sums, scratch);
    measure_outputs(l, &piece, &sums);
  }
}

/* --- the sum --- */

static double over(double x, double y) { return y == 0 ? 0 : x / y; }

/* |sum over an item's rows of <contribution, gradient>|, the mean over all items. */
static double michel_of(const struct layer *l, const struct call *c, size_t head) {
  const struct measuring *m = &c->space->measuring;
  double sum = 0;
  for (size_t i = 0; m->gradient && i < c->items; i++) {
    double product = 0;
    for (size_t p = m->piece_at[i]; p < m->piece_at[i + 1]; p++)
      product += m->gradient[p * l->shape.heads + head];
    sum += fabs(product);
  }
  return over(sum, (double)c->items);
}

static void tell_heads(const struct layer *l, const struct call *c, const struct sums *sums) {
  double norms = 0;
  for (size_t h = 0; h < l->shape.heads; h++) norms += sums->norm[h];
  for (size_t h = 0; h < l->shape.heads; h++)
    c->measures->head[h] =
        (struct head_measures){.confidence = over(sums->confidence[h], *sums->rows),
                               .entropy = over(sums->entropy[h], *sums->rows),
                               .distance = over(sums->distance[h], *sums->rows),
                               .norm = over(sums->norm[h], *sums->rows),
                               .share = over(sums->norm[h], norms),
                               .delta = over(sqrt(sums->square[h]), sqrt(*sums->outputs)),
                               .michel = michel_of(l, c, h)};
}

static void tell_divergence(const struct layer *l, struct measures *m, const struct sums *sums) {
  const size_t heads = l->shape.heads;
  const double *pair = sums->divergence;
  for (size_t g = 0; m->divergence && g < heads; g++)
    for (size_t h = g + 1; h < heads; h++)
      m->divergence[g * heads + h] = m->divergence[h * heads + g] =
          fmax(0, over(*pair++, *sums->rows));
}

static double importance(const struct call *c, size_t head) {
  const struct head_measures *h = &c->measures->head[head];
  return c->gradients ? h->michel : h->delta;
}

/* Puts each head before those that are more important, behind those that are as much so. */
static void rank_heads(const struct call *c, size_t heads) {
  size_t *ranking = c->measures->ranking;
  for (size_t h = 0; h < heads; h++) {
    size_t place = h;
    for (; place > 0 && importance(c, ranking[place - 1]) > importance(c, h); place--)
      ranking[place] = ranking[place - 1];
    ranking[place] = h;
  }
}

static bool measures_fit(const struct measures *m, size_t heads) {
  bool fit = true;
  for (size_t i = 0; i < heads; i++) {
    const struct head_measures *h = &m->head[i];
    const double all[] = {h->confidence, h->entropy, h->distance, h->norm,
                          h->share,      h->delta,   h->michel};
    for (size_t x = 0; x < sizeof all / sizeof *all; x++) fit = fit && all[x] <= FLT_MAX;
  }
  return fit;
}

void run_measure_sum(const struct layer *l, const struct unit *u) {
  struct call *c = u->call;
  const struct measuring *m = &c->space->measuring;
  if (m->units == 0) return;
  const struct sums all = sums_at(l, c, 0);
  for (size_t unit = 1; unit < m->units; unit++) {
    const double *more = sums_at(l, c, unit).rows;
    for (size_t i = 0; i < sums_count(l); i++) all.rows[i] += more[i];
  }
  c->measures->rows = (size_t)*all.rows;
  tell_heads(l, c, &all);
  tell_divergence(l, c->measures, &all);
  rank_heads(c, l->shape.heads);
  if (!measures_fit(c->measures, l->shape.heads)) fault_at(c, FAULT_MEASURE, 0);
}
