/* layer_measure: head measures (core/attention/measures.h).
 *
 * The query rows of every item are cut into pieces, a panel of queries each. A piece is measured in
 * turns, a stretch of keys each, so that no unit of work takes a worker for long. Consecutive
 * pieces, of any items, form a group: its turns follow each other, one per pass, and are added to
 * the group's sums; the groups of a pass are measured at the same time. The cut depends only on the
 * layer and the call, and so do the bits of the sums.
 *
 * A turn computes the weights of its piece again, with all heads side by side. The first turn of a
 * piece also computes the heads' contributions to the outputs. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "core/attention/layer_parts.h"
#include "core/attention/measures.h"
#include "core/base/size.h"

enum {
  TURN_WORK = 300000000, /* operations of a turn: a few milliseconds */
  SUMS_BYTES = 4 << 20,  /* bytes that the sums of all groups may take in any case */
};

/* --- the sums of a group --- */

/* Doubles: two that are not of a head, then [H] each, then [H (H - 1) / 2]. */
struct measure_sums {
  double *rows;    /* query rows that attend to some key */
  double *outputs; /* sum of the squares of their outputs */
  double *confidence, *entropy, *distance, *norm, *square;
  double *divergence; /* see struct kernel_measure; NULL with sigmoid weights */
};

static size_t head_pairs(const struct layer *l) {
  return l->shape.sigmoid ? 0 : l->shape.heads * (l->shape.heads - 1) / 2;
}

static size_t sums_count(const struct layer *l) { return 2 + 5 * l->shape.heads + head_pairs(l); }

static struct measure_sums sums_at(const struct layer *l, const struct call *c, size_t group) {
  const size_t heads = l->shape.heads;
  double *at = c->space->measuring.sums + group * sums_count(l), *head = at + 2;
  return (struct measure_sums){.rows = at,
                               .outputs = at + 1,
                               .confidence = head,
                               .entropy = head + heads,
                               .distance = head + 2 * heads,
                               .norm = head + 3 * heads,
                               .square = head + 4 * heads,
                               .divergence = l->shape.sigmoid ? NULL : head + 5 * heads};
}

/* --- work --- */

/* Operations for one query and one key in all heads. Each head computes an exponential and a
 * logarithm, each pair of heads a logarithm; one of these costs about 40 operations. */
static double key_work(const struct layer *l) {
  const double cap = l->shape.cap > 0 ? 32.0 : 0;
  const unsigned products = 1 + l->shape.position_keys + l->shape.position_queries;
  const double score = (l->vector ? 34.0 : 2.0 * products) * (double)l->compare_size + cap;
  return (double)l->shape.heads * (score + 80.0) + (double)head_pairs(l) * 35.0;
}

/* Operations for the heads' contributions to one output row. */
static double row_work(const struct layer *l) {
  const double out = l->matrix[ROLE_OUTPUT] ? 2.0 * (double)l->shape.output_size : 4.0;
  return (double)role_in(l, ROLE_OUTPUT) * out;
}

double measure_work(const struct layer *l, const struct call *c) {
  const struct geometry *g = c->geometry;
  double work = 0;
  for (size_t i = 0; c->want_measures && i < g->items; i++)
    work += (double)g->item[i].q * (key_work(l) * (double)g->item[i].k + row_work(l));
  return work;
}

/* --- pieces, turns and groups --- */

/* Rows of a piece, at most. */
static size_t piece_rows(const struct layer *l) {
  return l->kernel->measure_queries(l->compare_size, l->shape.heads);
}

/* Keys of a turn, at most: whole blocks if these are not too much. */
static size_t turn_keys(const struct layer *l) {
  const double keys = TURN_WORK / (key_work(l) * (double)piece_rows(l));
  if (keys < KERNEL_KEYS) return (size_t)fmax(1, keys);
  return (size_t)fmin(keys, 1 << 30) / KERNEL_KEYS * KERNEL_KEYS;
}

/* The index of the last number in a rising list [count + 1] that is at most x. */
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

/* The number of a group's first turn in the call. */
static size_t group_begin(const struct measuring *m, size_t group) {
  return m->turn_at[size_min(group * m->group, m->pieces)];
}

struct measure_turn {
  struct unit piece; /* its rows */
  size_t number;     /* of the piece, in the call */
  size_t from, to;   /* keys */
};

/* The turn of a unit of STEP_MEASURE: the turn number u->pass of group number u->row. */
static struct measure_turn turn_of(const struct layer_step *s, const struct unit *u) {
  const struct layer *l = s->at.layer;
  const struct call *c = call_of(s, u->run);
  const struct geometry *g = c->geometry;
  const struct measuring *m = &c->space->measuring;
  const size_t turn = group_begin(m, u->row) + u->pass;
  struct measure_turn t = {.number = find_last(m->turn_at, m->pieces, turn)};
  const size_t item = find_last(m->piece_at, g->items, t.number);
  const size_t row = (t.number - m->piece_at[item]) * piece_rows(l);
  t.piece = (struct unit){.run = u->run,
                          .item = item,
                          .row = row,
                          .rows = size_min(piece_rows(l), g->item[item].q - row)};
  t.from = (turn - m->turn_at[t.number]) * turn_keys(l);
  t.to = size_min(t.from + turn_keys(l), g->item[item].k);
  return t;
}

/* --- preparing --- */

/* Numbers all pieces and turns, and forms the groups. */
static enum status cut_call(const struct layer *l, struct call *c, struct arena *a,
                            struct error *e) {
  const struct geometry *g = c->geometry;
  struct measuring *m = &c->space->measuring;
  m->piece_at = arena_alloc(a, g->items + 1, sizeof *m->piece_at, e);
  if (!m->piece_at) return e->status;
  m->piece_at[0] = 0;
  for (size_t i = 0; i < g->items; i++)
    m->piece_at[i + 1] = m->piece_at[i] + (g->item[i].q + piece_rows(l) - 1) / piece_rows(l);
  m->pieces = m->piece_at[g->items];
  m->turn_at = arena_alloc(a, m->pieces + 1, sizeof *m->turn_at, e);
  if (!m->turn_at) return e->status;
  m->turn_at[0] = 0;
  for (size_t i = 0, piece = 0; i < g->items; i++) {
    const size_t turns = size_max(1, (g->item[i].k + turn_keys(l) - 1) / turn_keys(l));
    for (; piece < m->piece_at[i + 1]; piece++) m->turn_at[piece + 1] = m->turn_at[piece] + turns;
  }
  /* A group is one piece; but more if there are so many heads, and pairs of heads, that the sums of
   * all groups would take more memory than the contexts. */
  const double contexts = (double)g->q_rows * (double)role_in(l, ROLE_OUTPUT) * sizeof(float);
  const double all = (double)m->pieces * (double)sums_count(l) * sizeof(double);
  m->group = (size_t)ceil(fmax(1, all / fmax(contexts, SUMS_BYTES)));
  m->groups = (m->pieces + m->group - 1) / m->group;
  m->passes = 0;
  for (size_t i = 0; i < m->groups; i++)
    m->passes = size_max(m->passes, group_begin(m, i + 1) - group_begin(m, i));
  return STATUS_OK;
}

enum status measure_prepare(const struct layer *l, struct call *c, struct arena *a,
                            struct error *e) {
  const size_t heads = l->shape.heads;
  size_t square, rows, sums;
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
  if (e->status || cut_call(l, c, a, e)) return e->status;
  struct measuring *s = &c->space->measuring;
  if (!size_mul(c->geometry->q_rows, heads, &rows) || !size_mul(s->groups, sums_count(l), &sums))
    return error_set(e, STATUS_TOO_LARGE, "the sums for measuring exceed the address space");
  s->top = arena_alloc(a, rows, sizeof *s->top, e);
  s->factor = arena_alloc(a, rows, sizeof *s->factor, e);
  s->greatest = arena_alloc(a, rows, sizeof *s->greatest, e);
  if (c->geometry->segment_end) {
    s->segment_top = arena_alloc(a, rows, sizeof *s->segment_top, e);
    s->segment_factor = arena_alloc(a, rows, sizeof *s->segment_factor, e);
  }
  s->sums = arena_alloc(a, sums, sizeof *s->sums, e);
  s->gradient = NULL;
  if (c->gradients) /* there are no more pieces than rows */
    s->gradient = arena_alloc(a, s->pieces * heads, sizeof *s->gradient, e);
  if (e->status) return e->status;
  /* The measures of a call without rows: zeros, and the heads in order. */
  m->rows = 0;
  memset(m->head, 0, heads * sizeof *m->head);
  if (m->divergence) memset(m->divergence, 0, square * sizeof *m->divergence);
  for (size_t h = 0; h < heads; h++) m->ranking[h] = h;
  c->measures = m;
  return STATUS_OK;
}

/* --- one turn --- */

static size_t tiles_floats(const struct layer *l) {
  return size_round_up(l->shape.heads * sizeof(struct kernel_tile), 64) / sizeof(float);
}

size_t measure_scratch_floats(const struct layer *l) {
  const struct layer_shape *s = &l->shape;
  const size_t weights = tiles_floats(l) + l->kernel->measure_scratch(l->compare_size, s->heads);
  const struct gemm *g = l->matrix[ROLE_OUTPUT];
  const size_t rows = piece_rows(l);
  const size_t alone = g && gemm_quantizes(g) ? rows * role_in(l, ROLE_OUTPUT) : 0;
  return size_max(weights, g ? gemm_scratch_floats(g, rows) + alone : 0);
}

/* Returns whether a row of the piece attends to any key. */
static bool row_sees(const struct geometry *g, const struct unit *u, size_t row) {
  const size_t at = g->item[u->item].q_row + u->row + row;
  return g->sight.from[at] < g->sight.to[at];
}

static void measure_weights(const struct layer_step *s, const struct measure_turn *t,
                            const struct measure_sums *sums, void *scratch) {
  const struct layer *l = s->at.layer;
  struct kernel_tile *head = scratch;
  struct kernel_tile tile;
  struct tile_kept kept = tile_kept_of(s, &t->piece, NULL);
  tile_begin(&tile, s, &t->piece);
  for (size_t h = 0; h < l->shape.heads; h++) {
    head[h] = tile;
    tile_set_inputs(&head[h], s, &t->piece, &kept, h);
  }
  const struct kernel_measure m = {.heads = l->shape.heads,
                                   .head = head,
                                   .row = t->piece.row,
                                   .from = t->from,
                                   .to = t->to,
                                   .entropy = sums->entropy,
                                   .distance = sums->distance,
                                   .divergence = sums->divergence};
  l->kernel->measure(&m, (float *)scratch + tiles_floats(l));
}

/* Columns first .. first + count - 1 of a head's contribution to the rows of a piece. */
struct measure_columns {
  const float *y;
  size_t row_step; /* of y */
  size_t first, count;
};

/* Adds each row's square to `square`; returns the sum of the products with the gradients. */
static double add_columns(const struct layer_step *s, const struct unit *u,
                          const struct measure_columns *k, double *square) {
  const struct layer *l = s->at.layer;
  const struct call *c = call_of(s, u->run);
  const size_t row = c->geometry->item[u->item].q_row + u->row;
  double product = 0;
  for (size_t i = 0; i < u->rows; i++) {
    const float *y = k->y + i * k->row_step;
    if (!row_sees(c->geometry, u, i)) continue;
    square[i] += l->kernel->dot(k->count, y, y);
    if (c->gradients)
      product +=
          l->kernel->dot(k->count, y, c->gradients + (row + i) * l->shape.output_size + k->first);
  }
  return product;
}

/* A head's contribution to the outputs of a piece: its context times its own rows of W_o^T, or
 * without W_o its context. Quantized rows are those of the layer whose other heads are masked.
 * Returns as add_columns does. */
static double measure_contribution(const struct layer_step *s, const struct unit *u, size_t head,
                                   double *square, float *scratch) {
  const struct layer *l = s->at.layer;
  const struct call *c = call_of(s, u->run);
  const struct gemm *g = l->matrix[ROLE_OUTPUT];
  const size_t in = role_in(l, ROLE_OUTPUT), d_v = l->shape.value_head_size, from = head * d_v;
  const float *context = c->space->context + (c->geometry->item[u->item].q_row + u->row) * in;
  if (!g) {
    const struct measure_columns k = {
        .y = context + from, .row_step = in, .first = from, .count = d_v};
    return add_columns(s, u, &k, square);
  }
  const size_t out = l->shape.output_size, stripe = gemm_stripe(g);
  float *product = scratch, *alone = scratch + gemm_scratch_floats(g, u->rows);
  struct gemm_input x = {0};
  double products = 0;
  if (gemm_quantizes(g)) {
    memset(alone, 0, u->rows * in * sizeof *alone);
    for (size_t i = 0; i < u->rows; i++)
      memcpy(alone + i * in + from, context + i * in + from, d_v * sizeof *alone);
    x = gemm_input(g, u->rows, alone, in, product + u->rows * stripe);
    x.no_bias = true;
  }
  for (size_t first = 0; first < out; first += stripe) {
    if (gemm_quantizes(g)) {
      gemm_run(g, first, &x, product);
    } else {
      gemm_start(g, first, u->rows, false, product);
      gemm_add(g, first, u->rows, context, in, from, d_v, product);
    }
    const struct measure_columns k = {
        .y = product, .row_step = stripe, .first = first, .count = size_min(stripe, out - first)};
    products += add_columns(s, u, &k, square);
  }
  return products;
}

/* Measures the outputs of a piece: confidence, contributions of the heads, squares of the rows. */
static void measure_outputs(const struct layer_step *s, const struct measure_turn *t,
                            const struct measure_sums *sums, float *scratch) {
  const struct layer *l = s->at.layer;
  const struct unit *u = &t->piece;
  const struct call *c = call_of(s, u->run);
  const struct measuring *m = &c->space->measuring;
  const struct item *item = &c->geometry->item[u->item];
  const size_t heads = l->shape.heads, out = l->shape.output_size;
  for (size_t h = 0; h < heads; h++) { /* attention has stored the greatest weights */
    const float *greatest = m->greatest + item->q_row * heads + h * item->q + u->row;
    for (size_t i = 0; i < u->rows; i++)
      if (row_sees(c->geometry, u, i)) sums->confidence[h] += (double)greatest[i];
  }
  for (size_t h = 0; h < heads; h++) {
    double square[KERNEL_PANEL_MAX] = {0};
    const double products = measure_contribution(s, u, h, square, scratch);
    for (size_t i = 0; i < u->rows; i++) {
      sums->norm[h] += sqrt(square[i]);
      sums->square[h] += square[i];
    }
    if (m->gradient) m->gradient[t->number * heads + h] = products;
  }
  const float *y = c->outputs + (item->q_row + u->row) * out;
  for (size_t i = 0; i < u->rows; i++) {
    if (!row_sees(c->geometry, u, i)) continue;
    *sums->rows += 1;
    *sums->outputs += l->kernel->dot(out, y + i * out, y + i * out);
  }
}

/* --- the step of all turns --- */

/* A turn of each group that has one left in this pass; the unit's row is the group's number. */
static bool measure_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct measuring *m = &call_of(layer_step_of(step), u->run)->space->measuring;
  for (; at->row < m->groups; at->row++) {
    if (group_begin(m, at->row) + at->pass >= group_begin(m, at->row + 1)) continue;
    u->row = at->row++;
    return true;
  }
  return false;
}

static double measure_unit_work(const struct step *step, const struct unit *u) {
  const struct layer *l = layer_step_of(step)->at.layer;
  const struct measure_turn t = turn_of(layer_step_of(step), u);
  const double keys = (double)t.piece.rows * key_work(l) * (double)(t.to - t.from + 1);
  return t.from == 0 ? keys + (double)t.piece.rows * row_work(l) : keys;
}

static size_t measure_passes(const struct step *step, const struct run *r) {
  return call_of_const(layer_step_of(step), r)->space->measuring.passes;
}

static void compute_measures(const struct step *step, const struct span *span, void *scratch) {
  const unsigned mode = kernel_enter();
  const struct layer_step *s = layer_step_of(step);
  const struct layer *l = s->at.layer;
  struct span left = *span;
  struct unit u;
  while (run_next_unit(&left, &u)) {
    const struct measure_turn t = turn_of(s, &u);
    const struct measure_sums sums = sums_at(l, call_of(s, u.run), u.row);
    if (u.pass == 0) memset(sums.rows, 0, sums_count(l) * sizeof *sums.rows);
    measure_weights(s, &t, &sums, scratch);
    if (t.from == 0) measure_outputs(s, &t, &sums, scratch);
  }
  kernel_leave(mode);
}

static enum status fault_of_measures(const struct step *step, const struct run *run, uint64_t place,
                                     struct error *e) {
  (void)run, (void)place;
  return error_set(e, STATUS_NOT_FINITE, "%sa measure of the heads exceeds the float32 range",
                   layer_step_of(step)->at.where);
}

const struct step step_measure = {.unit = measure_unit,
                                  .work = measure_unit_work,
                                  .passes = measure_passes,
                                  .compute = compute_measures,
                                  .fault = fault_of_measures};

/* --- the step of the sums of all groups --- */

/* One unit for the call, if it requests measures and has rows. */
static bool sum_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct call *c = call_of(layer_step_of(step), u->run);
  return at->row++ == 0 && c->space->measuring.groups > 0;
}

static double sum_unit_work(const struct step *step, const struct unit *u) {
  const struct layer *l = layer_step_of(step)->at.layer;
  const struct measuring *m = &call_of(layer_step_of(step), u->run)->space->measuring;
  return (double)(m->groups * sums_count(l) + m->pieces * l->shape.heads);
}

static double quotient(double x, double y) { return y == 0 ? 0 : x / y; }

/* |sum over an item's rows of <contribution, gradient>|, the mean over all items. */
static double mean_michel(const struct layer *l, const struct call *c, size_t head) {
  const struct measuring *m = &c->space->measuring;
  double sum = 0;
  for (size_t i = 0; m->gradient && i < c->geometry->items; i++) {
    double product = 0;
    for (size_t p = m->piece_at[i]; p < m->piece_at[i + 1]; p++)
      product += m->gradient[p * l->shape.heads + head];
    sum += fabs(product);
  }
  return quotient(sum, (double)c->geometry->items);
}

static double importance(const struct call *c, size_t head) {
  const struct head_measures *h = &c->measures->head[head];
  return c->gradients ? h->michel : h->delta;
}

/* Sets the measures from the sums; returns whether all are finite as float32. */
static bool set_measures(const struct layer *l, const struct call *c,
                         const struct measure_sums *sums) {
  struct measures *m = c->measures;
  const size_t heads = l->shape.heads;
  double norms = 0;
  bool fit = true;
  m->rows = (size_t)*sums->rows;
  for (size_t h = 0; h < heads; h++) norms += sums->norm[h];
  for (size_t h = 0; h < heads; h++) {
    const struct head_measures x = {.confidence = quotient(sums->confidence[h], *sums->rows),
                                    .entropy = fmin(1, quotient(sums->entropy[h], *sums->rows)),
                                    .distance = quotient(sums->distance[h], *sums->rows),
                                    .norm = quotient(sums->norm[h], *sums->rows),
                                    .share = quotient(sums->norm[h], norms),
                                    .delta = quotient(sqrt(sums->square[h]), sqrt(*sums->outputs)),
                                    .michel = mean_michel(l, c, h)};
    fit = fit && x.confidence <= FLT_MAX && x.entropy <= FLT_MAX && x.distance <= FLT_MAX &&
          x.norm <= FLT_MAX && x.share <= FLT_MAX && x.delta <= FLT_MAX && x.michel <= FLT_MAX;
    m->head[h] = x;
  }
  const double *pair = sums->divergence;
  for (size_t g = 0; m->divergence && g < heads; g++)
    for (size_t h = g + 1; h < heads; h++)
      m->divergence[g * heads + h] = m->divergence[h * heads + g] =
          fmax(0, quotient(*pair++, *sums->rows));
  /* The ranking: insertion sort, in which equally important heads keep their order. */
  for (size_t h = 0; h < heads; h++) {
    size_t place = h;
    for (; place > 0 && importance(c, m->ranking[place - 1]) > importance(c, h); place--)
      m->ranking[place] = m->ranking[place - 1];
    m->ranking[place] = h;
  }
  return fit;
}

static void compute_sums(const struct step *step, const struct span *span, void *scratch) {
  const unsigned mode = kernel_enter();
  const struct layer_step *s = layer_step_of(step);
  const struct layer *l = s->at.layer;
  struct span left = *span;
  struct unit u;
  (void)scratch;
  while (run_next_unit(&left, &u)) {
    const struct call *c = call_of(s, u.run);
    const struct measure_sums all = sums_at(l, c, 0);
    for (size_t group = 1; group < c->space->measuring.groups; group++) {
      const double *more = sums_at(l, c, group).rows;
      for (size_t i = 0; i < sums_count(l); i++) all.rows[i] += more[i];
    }
    if (!set_measures(l, c, &all)) run_record_fault(u.run, u.step, 0);
  }
  kernel_leave(mode);
}

const struct step step_sum = {
    .unit = sum_unit, .work = sum_unit_work, .compute = compute_sums, .fault = fault_of_measures};
