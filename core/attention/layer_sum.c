/* layer_sum: the sums of all groups of a measured call, and what they tell of the heads. */
#include <float.h>
#include <math.h>

#include "core/attention/layer_measure.h"
#include "core/attention/measures.h"

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
                               .entropy = fmin(1, over(sums->entropy[h], *sums->rows)),
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
  if (m->groups == 0) return;
  const struct sums all = sums_at(l, c, 0);
  for (size_t group = 1; group < m->groups; group++) {
    const double *more = sums_at(l, c, group).rows;
    for (size_t i = 0; i < sums_count(l); i++) all.rows[i] += more[i];
  }
  c->measures->rows = (size_t)*all.rows;
  tell_heads(l, c, &all);
  tell_divergence(l, c->measures, &all);
  rank_heads(c, l->shape.heads);
  if (!measures_fit(c->measures, l->shape.heads)) fault_at(c, FAULT_MEASURE, 0);
}
