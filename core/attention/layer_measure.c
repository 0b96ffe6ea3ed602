/* layer_measure: the measures of heads: a turn of a piece at a time, and what all sums tell.
 *
 * The weights are made again for a piece of query rows and a stretch of keys, all heads side by
 * side; the heads' contributions to those rows are made in the piece's first turn. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "core/attention/layer_measure.h"
#include "core/attention/measures.h"
#include "core/base/size.h"

/* --- one piece --- */

static size_t tiles_floats(const struct layer *l) {
  return size_round_up(l->shape.heads * sizeof(struct kernel_tile), 64) / sizeof(float);
}

size_t measure_scratch_floats(const struct layer *l) {
  const struct layer_shape *s = &l->shape;
  const size_t weights = tiles_floats(l) + l->kernel->measure_scratch(l->compare_size, s->heads);
  const struct gemm *g = l->matrix[ROLE_OUTPUT];
  const size_t rows = measure_piece_rows(l);
  return size_max(weights, g ? rows * gemm_stripe(g) : 0);
}

/* Does a row of the piece see anything? */
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

/* The greatest weights have been left by attention. */
static void measure_confidence(const struct layer_step *s, const struct unit *u,
                               const struct measure_sums *sums) {
  const struct call *c = call_of(s, u->run);
  const struct item *item = &c->geometry->item[u->item];
  const size_t heads = s->at.layer->shape.heads;
  for (size_t h = 0; h < heads; h++) {
    const float *greatest =
        c->space->measuring.greatest + item->q_row * heads + h * item->q + u->row;
    for (size_t i = 0; i < u->rows; i++)
      if (row_sees(c->geometry, u, i)) sums->confidence[h] += (double)greatest[i];
  }
}

/* Some columns of a head's contribution to the rows of a piece. */
struct measure_columns {
  const float *y;
  size_t row_step;     /* of y */
  size_t first, count; /* which columns of the output */
};

/* Adds each row's square; returns the sum of the products with the gradients. */
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

/* A head's contribution to the outputs of a piece: its context times its own rows of W_o^T, or its
 * context itself. */
static double measure_contribution(const struct layer_step *s, const struct unit *u, size_t head,
                                   double *square, float *product) {
  const struct layer *l = s->at.layer;
  const struct call *c = call_of(s, u->run);
  const struct gemm *g = l->matrix[ROLE_OUTPUT];
  const size_t in = role_in(l, ROLE_OUTPUT), d_v = l->shape.value_head_size, from = head * d_v;
  const float *context = c->space->context + (c->geometry->item[u->item].q_row + u->row) * in;
  if (!g)
    return add_columns(
        s, u,
        &(struct measure_columns){.y = context + from, .row_step = in, .first = from, .count = d_v},
        square);
  const size_t out = l->shape.output_size, stripe = gemm_stripe(g);
  double products = 0;
  for (size_t first = 0; first < out; first += stripe) {
    gemm_start(g, first, u->rows, false, product);
    gemm_add(g, first, u->rows, context, in, from, d_v, product);
    const struct measure_columns k = {
        .y = product, .row_step = stripe, .first = first, .count = size_min(stripe, out - first)};
    products += add_columns(s, u, &k, square);
  }
  return products;
}

static void measure_contributions(const struct layer_step *s, const struct measure_turn *t,
                                  const struct measure_sums *sums, float *scratch) {
  const struct measuring *m = &call_of(s, t->piece.run)->space->measuring;
  const size_t heads = s->at.layer->shape.heads;
  for (size_t h = 0; h < heads; h++) {
    double square[KERNEL_PANEL_MAX] = {0};
    const double products = measure_contribution(s, &t->piece, h, square, scratch);
    for (size_t i = 0; i < t->piece.rows; i++) {
      sums->norm[h] += sqrt(square[i]);
      sums->square[h] += square[i];
    }
    if (m->gradient) m->gradient[t->number * heads + h] = products;
  }
}

static void measure_outputs(const struct layer_step *s, const struct unit *u,
                            const struct measure_sums *sums) {
  const struct layer *l = s->at.layer;
  const struct call *c = call_of(s, u->run);
  const size_t out = l->shape.output_size;
  const float *y = c->outputs + (c->geometry->item[u->item].q_row + u->row) * out;
  for (size_t i = 0; i < u->rows; i++) {
    if (!row_sees(c->geometry, u, i)) continue;
    *sums->rows += 1;
    *sums->outputs += l->kernel->dot(out, y + i * out, y + i * out);
  }
}

static void measure_group(const struct layer_step *s, const struct unit *u, void *scratch) {
  const struct layer *l = s->at.layer;
  const struct call *c = call_of(s, u->run);
  const size_t first = measure_group_begin(&c->space->measuring, u->row);
  const struct measure_turn t = measure_turn_at(s, u->run, first + u->pass);
  const struct measure_sums sums = measure_sums_at(l, c, u->row);
  if (u->pass == 0) memset(sums.rows, 0, measure_sums_count(l) * sizeof *sums.rows);
  measure_weights(s, &t, &sums, scratch);
  if (t.from > 0) return;
  measure_confidence(s, &t.piece, &sums);
  measure_contributions(s, &t, &sums, scratch);
  measure_outputs(s, &t.piece, &sums);
}

static void compute_measures(const struct step *step, const struct span *span, void *scratch) {
  const unsigned mode = kernel_enter();
  struct span left = *span;
  struct unit u;
  while (run_next_unit(&left, &u)) measure_group(layer_step_of(step), &u, scratch);
  kernel_leave(mode);
}

const struct step step_measure = {.unit = measure_unit,
                                  .work = measure_unit_work,
                                  .passes = measure_passes,
                                  .compute = compute_measures,
                                  .fault = fault_of_measures};

/* --- the sums of all groups --- */

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

static void set_head_measures(const struct layer *l, const struct call *c,
                              const struct measure_sums *sums) {
  double norms = 0;
  for (size_t h = 0; h < l->shape.heads; h++) norms += sums->norm[h];
  for (size_t h = 0; h < l->shape.heads; h++)
    c->measures->head[h] =
        (struct head_measures){.confidence = quotient(sums->confidence[h], *sums->rows),
                               .entropy = fmin(1, quotient(sums->entropy[h], *sums->rows)),
                               .distance = quotient(sums->distance[h], *sums->rows),
                               .norm = quotient(sums->norm[h], *sums->rows),
                               .share = quotient(sums->norm[h], norms),
                               .delta = quotient(sqrt(sums->square[h]), sqrt(*sums->outputs)),
                               .michel = mean_michel(l, c, h)};
}

static void set_divergence(const struct layer *l, struct measures *m,
                           const struct measure_sums *sums) {
  const size_t heads = l->shape.heads;
  const double *pair = sums->divergence;
  for (size_t g = 0; m->divergence && g < heads; g++)
    for (size_t h = g + 1; h < heads; h++)
      m->divergence[g * heads + h] = m->divergence[h * heads + g] =
          fmax(0, quotient(*pair++, *sums->rows));
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

static void sum_measures(const struct layer_step *s, const struct unit *u) {
  const struct layer *l = s->at.layer;
  const struct call *c = call_of(s, u->run);
  const struct measuring *m = &c->space->measuring;
  const struct measure_sums all = measure_sums_at(l, c, 0);
  for (size_t group = 1; group < m->groups; group++) {
    const double *more = measure_sums_at(l, c, group).rows;
    for (size_t i = 0; i < measure_sums_count(l); i++) all.rows[i] += more[i];
  }
  c->measures->rows = (size_t)*all.rows;
  set_head_measures(l, c, &all);
  set_divergence(l, c->measures, &all);
  rank_heads(c, l->shape.heads);
  if (!measures_fit(c->measures, l->shape.heads)) run_note_fault(u->run, u->step, 0);
}

static void compute_sums(const struct step *step, const struct span *span, void *scratch) {
  const unsigned mode = kernel_enter();
  struct span left = *span;
  struct unit u;
  (void)scratch;
  while (run_next_unit(&left, &u)) sum_measures(layer_step_of(step), &u);
  kernel_leave(mode);
}

const struct step step_sum = {.unit = measure_sum_unit,
                              .work = measure_sum_work,
                              .compute = compute_sums,
                              .fault = fault_of_measures};
