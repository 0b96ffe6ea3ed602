/* attention_ref_score: how the twin compares a query with a key. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "core/reference/attention_ref_parts.h"

bool ref_is_float(double x) { return fabs(x) <= FLT_MAX; }

bool ref_product(const float *weight, const float *bias, size_t out, size_t in, const double *x,
                 double *y) {
  bool finite = true;
  for (size_t n = 0; n < out; n++) {
    y[n] = 0;
    for (size_t i = 0; i < in; i++) y[n] += (double)weight[n * in + i] * x[i];
    if (bias) y[n] += bias[n];
    finite = finite && ref_is_float(y[n]);
  }
  return finite;
}

size_t ref_side_size(const struct layer_shape *s) {
  return s->score == SCORE_ADDITIVE ? s->score_size : s->key_head_size;
}

/* scale q.k : q | v.tanh(W_q q + W_k k) : W_q q | k.(W q) : W q */
bool ref_query_side(const struct ref_item *r, const double *q, double *side) {
  const struct layer_shape *s = r->s;
  const size_t n = ref_side_size(s);
  if (s->score == SCORE_ADDITIVE)
    return ref_product(r->matrix[ROLE_SCORE_QUERY].weight, NULL, n, s->head_size, q, side);
  if (s->score == SCORE_BILINEAR)
    return ref_product(r->matrix[ROLE_SCORE_WEIGHT].weight, NULL, n, s->head_size, q, side);
  memcpy(side, q, n * sizeof *side);
  return true;
}

/* scale q.k : k | v.tanh(W_q q + W_k k) : W_k k | k.(W q) : k */
bool ref_key_side(const struct ref_item *r, const double *k, double *side) {
  const struct layer_shape *s = r->s;
  const size_t n = ref_side_size(s);
  if (s->score == SCORE_ADDITIVE)
    return ref_product(r->matrix[ROLE_SCORE_KEY].weight, NULL, n, s->key_head_size, k, side);
  memcpy(side, k, n * sizeof *side);
  return true;
}

double ref_score(const struct ref_item *r, const double *query_side, const double *key_side) {
  const struct layer_shape *s = r->s;
  const float *vector = r->matrix[ROLE_SCORE_VECTOR].weight;
  double sum = 0;
  for (size_t x = 0; x < ref_side_size(s); x++)
    sum += s->score == SCORE_ADDITIVE ? vector[x] * tanh(query_side[x] + key_side[x])
                                      : query_side[x] * key_side[x];
  return s->score == SCORE_DOT ? s->scale * sum : sum;
}
