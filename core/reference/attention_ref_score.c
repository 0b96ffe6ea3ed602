/* attention_ref_score: how the twin compares a query with a key, and what their distance adds. */
#include <math.h>
#include <string.h>

#include "core/reference/attention_ref_parts.h"

/* scale q.k | v.tanh(W_q q + W_k k) | k.(W q) : what is compared is q and k as they are, or their
 * products with W_q and W_k, or W q and k. */
static const float *side_matrix(const struct ref_work *r, enum role role) {
  const bool query = role == ROLE_QUERY;
  if (r->s->score == SCORE_ADDITIVE)
    return r->matrix[query ? ROLE_SCORE_QUERY : ROLE_SCORE_KEY].weight;
  return r->s->score == SCORE_BILINEAR && query ? r->matrix[ROLE_SCORE_WEIGHT].weight : NULL;
}

size_t ref_side_size(const struct layer_shape *s) {
  return s->score == SCORE_ADDITIVE ? s->score_size : s->key_head_size;
}

void ref_make_side(struct ref_work *r, enum role role, const double *x, double *side) {
  const float *weight = side_matrix(r, role);
  const size_t n = ref_side_size(r->s);
  if (!weight) {
    memcpy(side, x, n * sizeof *side);
    return;
  }
  ref_product(weight, NULL, n, r->rows[role].size, x, side);
  ref_check(r, side, n);
}

double ref_compare(const struct ref_work *r, const double *query_side, const double *key_side) {
  const struct layer_shape *s = r->s;
  const float *vector = r->matrix[ROLE_SCORE_VECTOR].weight;
  double sum = 0;
  for (size_t x = 0; x < ref_side_size(s); x++)
    sum += s->score == SCORE_ADDITIVE ? vector[x] * tanh(query_side[x] + key_side[x])
                                      : query_side[x] * key_side[x];
  return sum;
}

double ref_score(const struct ref_work *r, const double *query_side, const double *key_side) {
  const double product = ref_compare(r, query_side, key_side);
  return r->s->score == SCORE_DOT ? r->s->scale * product : product;
}

double ref_relative(const struct ref_work *r, size_t head, size_t i, size_t j) {
  const struct layer_shape *s = r->s;
  if (s->relative_buckets == 0) return 0;
  const double ahead = (double)j - (double)i - (double)r->item->offset;
  const size_t n = s->relative_both ? s->relative_buckets / 2 : s->relative_buckets;
  const size_t first = s->relative_both && ahead > 0 ? n : 0;
  const double distance = s->relative_both ? fabs(ahead) : fmax(-ahead, 0);
  const size_t bucket = first + ref_bucket(n, (double)s->relative_distance, distance);
  return r->matrix[ROLE_RELATIVE].weight[bucket * s->heads + head];
}
