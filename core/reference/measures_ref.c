/* measures_ref: head measures as they are defined in core/attention/measures.h. */
#include "core/reference/measures_ref.h"

#include <math.h>

#include "core/attention/sight.h"

/* One item of the call. */
struct measures_ref_item {
  const struct layer_shape *s;
  const struct layer_matrix *output;
  const struct call *c;
  const struct item *item;
  const struct ref_answer *answer;
  const double *weights; /* [H, q, k] of the item */
};

/* How many keys query i attends to in a head. */
static size_t keys_seen(const struct measures_ref_item *r, size_t head, size_t i) {
  size_t seen = 0;
  for (size_t j = 0; j < r->item->k; j++) seen += sight_allows(r->c->geometry, r->item, head, i, j);
  return seen;
}

static bool row_sees(const struct measures_ref_item *r, size_t i) {
  for (size_t head = 0; head < r->s->heads; head++)
    if (keys_seen(r, head, i) > 0) return true;
  return false;
}

static const double *weights_of(const struct measures_ref_item *r, size_t head, size_t i) {
  return r->weights + (head * r->item->q + i) * r->item->k;
}

/* One number of a head's contribution to an output row: W_o times the head's part of the context,
 * or without W_o the context. */
static double contribution(const struct measures_ref_item *r, size_t head, size_t i,
                           size_t column) {
  const size_t d_v = r->s->value_head_size, wide = r->s->heads * d_v;
  const double *context = r->answer->contexts + (r->item->q_row + i) * wide;
  double sum = 0;
  if (!r->output->weight) return column / d_v == head ? context[column] : 0;
  for (size_t x = head * d_v; x < (head + 1) * d_v; x++)
    sum += (double)r->output->weight[column * wide + x] * context[x];
  return sum;
}

/* The Jensen-Shannon divergence of two heads' weights in row i. A head that attends to nothing
 * there has weights of 0. */
static double divergence_of(const struct measures_ref_item *r, size_t g, size_t h, size_t i) {
  const bool g_sees = keys_seen(r, g, i) > 0, h_sees = keys_seen(r, h, i) > 0;
  double sum = 0;
  for (size_t j = 0; j < r->item->k; j++) {
    const double p = g_sees ? weights_of(r, g, i)[j] : 0, q = h_sees ? weights_of(r, h, i)[j] : 0;
    const double mean = (p + q) / 2;
    if (p > 0) sum += p * log(p / mean) / 2;
    if (q > 0) sum += q * log(q / mean) / 2;
  }
  return sum;
}

/* Adds a head's sums over the rows of an item to *m. */
static void add_head(const struct measures_ref_item *r, size_t head, struct measures *m) {
  const size_t heads = r->s->heads, out = r->s->output_size;
  struct head_measures *sum = &m->head[head];
  double product = 0; /* <contribution, gradient> */
  for (size_t i = 0; i < r->item->q; i++) {
    if (!row_sees(r, i)) continue;
    const size_t seen = keys_seen(r, head, i), row = r->item->q_row + i;
    if (seen > 0) {
      const double *w = weights_of(r, head, i);
      double greatest = 0, entropy = 0;
      for (size_t j = 0; j < r->item->k; j++) {
        greatest = fmax(greatest, w[j]);
        entropy -= w[j] > 0 ? w[j] * log(w[j]) : 0;
        sum->distance += w[j] * fabs((double)i - (double)j);
      }
      sum->confidence += greatest;
      sum->entropy += seen > 1 ? entropy / log((double)seen) : 0;
    }
    double square = 0;
    for (size_t column = 0; column < out; column++) {
      const double y = contribution(r, head, i, column);
      square += y * y;
      if (r->c->gradients) product += y * r->c->gradients[row * out + column];
    }
    sum->norm += sqrt(square);
    sum->delta += square;
    for (size_t h = 0; m->divergence && h < heads; h++)
      m->divergence[head * heads + h] += divergence_of(r, head, h, i);
  }
  sum->michel += fabs(product);
}

static double quotient(double x, double y) { return y == 0 ? 0 : x / y; }

void measures_ref(const struct layer_shape *s, const struct layer_matrix matrix[ROLE_COUNT],
                  const struct call *c, const struct ref_answer *answer, struct measures *m) {
  const size_t heads = s->heads, out = s->output_size, items = c->geometry->items;
  m->rows = 0;
  for (size_t h = 0; h < heads; h++) m->head[h] = (struct head_measures){0};
  for (size_t i = 0; m->divergence && i < heads * heads; i++) m->divergence[i] = 0;

  /* Sums over all rows that attend to something in some head. */
  struct measures_ref_item r = {
      .s = s, .output = &matrix[ROLE_OUTPUT], .c = c, .answer = answer, .weights = answer->weights};
  double square = 0; /* of all outputs */
  for (size_t item = 0; item < items; item++) {
    r.item = &c->geometry->item[item];
    for (size_t i = 0; i < r.item->q; i++) {
      if (!row_sees(&r, i)) continue;
      const double *y = answer->outputs + (r.item->q_row + i) * out;
      for (size_t x = 0; x < out; x++) square += y[x] * y[x];
      m->rows++;
    }
    for (size_t h = 0; h < heads; h++) add_head(&r, h, m);
    r.weights += heads * r.item->q * r.item->k;
  }

  /* Means and quotients. */
  const double rows = (double)m->rows;
  double norms = 0;
  for (size_t h = 0; h < heads; h++) norms += m->head[h].norm;
  for (size_t i = 0; i < heads; i++) {
    struct head_measures *h = &m->head[i];
    h->confidence = quotient(h->confidence, rows);
    h->entropy = m->divergence ? quotient(h->entropy, rows) : 0;
    h->distance = quotient(h->distance, rows);
    h->share = quotient(h->norm, norms);
    h->norm = quotient(h->norm, rows);
    h->delta = quotient(sqrt(h->delta), sqrt(square));
    h->michel = quotient(h->michel, (double)items);
  }
  for (size_t i = 0; m->divergence && i < heads * heads; i++)
    m->divergence[i] = quotient(m->divergence[i], rows);

  /* The least important head first. */
  for (size_t h = 0; h < heads; h++) {
    size_t place = 0;
    for (size_t g = 0; g < heads; g++) {
      const double one = c->gradients ? m->head[g].michel : m->head[g].delta;
      const double other = c->gradients ? m->head[h].michel : m->head[h].delta;
      place += one < other || (one == other && g < h);
    }
    m->ranking[place] = h;
  }
}
