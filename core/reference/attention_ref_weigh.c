/* attention_ref_weigh: how the twin makes weights of scores, on one level or two, and picks a key.
 *
 * A score of -INFINITY stands for a key that the query may not see: it weighs exactly nothing. */
#include <math.h>
#include <string.h>

#include "core/attention/sight.h"
#include "core/kernel/philox.h"
#include "core/reference/attention_ref_parts.h"

static const double *query_side(const struct ref_item *r, size_t head, size_t i) {
  return r->sides[ROLE_QUERY] + (i * r->s->heads + head) * ref_side_size(r->s);
}

static const double *key_side(const struct ref_item *r, size_t head, size_t j) {
  return r->sides[ROLE_KEY] + (j * r->s->kv_heads + ref_key_head(r, head)) * ref_side_size(r->s);
}

static double bias_of(const struct ref_item *r, size_t head, size_t i, size_t j) {
  if (!r->c->bias) return 0;
  const size_t plane = r->c->bias_per_head ? head * r->item->q : 0;
  return r->c->bias[r->item->bias_at + (plane + i) * r->item->k + j];
}

/* e + floor(ln(r/e) / ln(max/e) (n - e)), at most the last bucket. Where only rounding keeps the
 * quotient from being a whole number, that number. */
static size_t far_bucket(double r, double n, double e, double most) {
  const double x = log(r / e) / log(most / e) * (n - e);
  const double whole = fabs(x - round(x)) < 1e-9 ? round(x) : floor(x);
  return (size_t)fmin(n - 1, e + whole);
}

/* The bucket of T5's that the distance from query to key falls into. */
static size_t bucket_of(const struct layer_shape *s, double r) {
  const size_t n = s->relative_both ? s->relative_buckets / 2 : s->relative_buckets;
  const size_t first = s->relative_both && r > 0 ? n : 0, e = n / 2;
  const double distance = s->relative_both ? fabs(r) : fmax(-r, 0);
  if (distance < (double)e) return first + (size_t)distance;
  if (n == 1) return first; /* the only one: e = 0 */
  return first + far_bucket(distance, (double)n, (double)e, (double)s->relative_distance);
}

static double relative_of(const struct ref_item *r, size_t head, size_t i, size_t j) {
  if (r->s->relative_buckets == 0) return 0;
  const double distance = (double)j - (double)i - (double)r->item->offset;
  return r->matrix[ROLE_RELATIVE].weight[bucket_of(r->s, distance) * r->s->heads + head];
}

/* The scores of the keys that the query sees. */
static bool compare_keys(struct ref_item *r, size_t head, size_t i) {
  for (size_t j = 0; j < r->item->k; j++) {
    r->scores[j] = -INFINITY;
    if (!sight_allows(r->c, r->item, head, i, j)) continue;
    r->scores[j] = ref_score(r, query_side(r, head, i), key_side(r, head, j)) +
                   bias_of(r, head, i, j) + relative_of(r, head, i, j);
    if (!ref_is_float(r->scores[j])) return false;
  }
  return true;
}

/* The first of the greatest; -1 if there is nothing but -INFINITY. */
static int32_t greatest(const double *x, size_t n) {
  int32_t best = -1;
  for (size_t j = 0; j < n; j++)
    if (x[j] > (best < 0 ? -INFINITY : x[best])) best = (int32_t)j;
  return best;
}

/* False, and zeros, if there is nothing to weigh. */
static bool softmax(const double *score, size_t n, double *weight) {
  const int32_t top = greatest(score, n);
  double sum = 0;
  for (size_t j = 0; j < n; j++) sum += weight[j] = top < 0 ? 0 : exp(score[j] - score[top]);
  for (size_t j = 0; top >= 0 && j < n; j++) weight[j] /= sum;
  return top >= 0;
}

/* The key of a segment, the mean of its keys by their weights within it, against the query. */
static bool compare_segment(struct ref_item *r, size_t head, size_t i, size_t from, size_t to,
                            double *score) {
  const size_t size = r->s->key_head_size;
  memset(r->segment_key, 0, size * sizeof *r->segment_key);
  for (size_t j = from; j < to; j++) {
    if (r->weights[j] == 0) continue; /* a hidden key is not touched */
    const double *k = r->rows[ROLE_KEY] + (j * r->s->kv_heads + ref_key_head(r, head)) * size;
    for (size_t x = 0; x < size; x++) r->segment_key[x] += r->weights[j] * k[x];
  }
  if (!ref_key_side(r, r->segment_key, r->segment_side)) return false;
  *score = ref_score(r, query_side(r, head, i), r->segment_side);
  return ref_is_float(*score);
}

/* Softmax within each segment, then across the segments: the product is a key's weight. */
static bool weigh_two_levels(struct ref_item *r, size_t head, size_t i) {
  const int32_t *end = r->c->segment_end + r->item->segments_at;
  const size_t segments = r->item->segments;
  size_t from = 0;
  for (size_t s = 0; s < segments; from = (size_t)end[s++]) {
    const size_t to = (size_t)end[s];
    r->segment_scores[s] = -INFINITY;
    if (softmax(r->scores + from, to - from, r->weights + from) &&
        !compare_segment(r, head, i, from, to, &r->segment_scores[s]))
      return false;
  }
  softmax(r->segment_scores, segments, r->segment_weights);
  from = 0;
  for (size_t s = 0; s < segments; s++)
    for (; from < (size_t)end[s]; from++) r->weights[from] *= r->segment_weights[s];
  return true;
}

/* One key drawn by the weights: the first at which their sum exceeds a random number. */
static int32_t draw_key(const struct ref_item *r, size_t head, size_t i) {
  const uint32_t key[2] = {(uint32_t)r->c->seed, (uint32_t)(r->c->seed >> 32)};
  const uint32_t counter[4] = {(uint32_t)r->number, (uint32_t)head, (uint32_t)i, 0};
  const double u = philox(key, counter).word[0] * 0x1p-32;
  double sum = 0;
  int32_t last = -1;
  for (size_t j = 0; j < r->item->k && sum <= u; j++) {
    if (r->weights[j] == 0) continue;
    sum += r->weights[j];
    last = (int32_t)j;
  }
  return last; /* the last key that weighs anything, if rounding left the whole sum below u */
}

/* Sets the pointer. Where a key is selected, it gets all the weight. */
static void select_key(struct ref_item *r, size_t head, size_t i) {
  const double *by = r->c->segment_end ? r->weights : r->scores;
  r->pointer = r->c->select == SELECT_SAMPLE ? draw_key(r, head, i) : greatest(by, r->item->k);
  if (r->c->select == SELECT_SOFT) return;
  if (r->chosen) r->pointer = r->chosen[head * r->item->q + i];
  memset(r->weights, 0, r->item->k * sizeof *r->weights);
  r->weights[r->pointer] = 1;
}

bool ref_weigh(struct ref_item *r, size_t head, size_t i) {
  const size_t k = r->item->k;
  if (!compare_keys(r, head, i)) return false;
  if (greatest(r->scores, k) < 0) { /* nothing is seen */
    r->pointer = -1;
    for (size_t j = 0; j < k; j++) r->weights[j] = r->c->uniform_rows ? 1.0 / (double)k : 0;
    memset(r->segment_weights, 0, r->item->segments * sizeof *r->segment_weights);
    return true;
  }
  if (r->c->segment_end) {
    if (!weigh_two_levels(r, head, i)) return false;
  } else if (r->s->sigmoid) {
    for (size_t j = 0; j < k; j++) r->weights[j] = 1 / (1 + exp(-r->scores[j]));
  } else {
    softmax(r->scores, k, r->weights);
  }
  select_key(r, head, i);
  return true;
}
