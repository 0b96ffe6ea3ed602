/* layer_work: estimates of the work of queries and rows, in floating-point operations. */
#include "core/attention/layer_parts.h"

enum {
  ANGLE_WORK = 300, /* operations for a sine and its cosine */
  NORM_WORK = 6     /* operations for a number that is normalized */
};

double query_work(const struct layer *l, const struct call *c, const struct item *item,
                  size_t keys) {
  /* One query and one key: the score, the value, and the softmax, which costs about 40 operations
   * whatever the head size; so does a tanh for each number, or of a capped score. Scores count
   * twice if a second pass computes them again. */
  const bool segments = c->geometry->segment_end != NULL;
  const double compared = (double)l->compare_size, value = 2.0 * (double)l->shape.value_head_size;
  double pair = (l->vector ? 34.0 : 2.0) * compared + (l->shape.cap > 0 ? 72.0 : 40.0);
  /* A query meets some position keys in vain, which its neighbors need; so do keys. */
  if (l->shape.position_keys) pair += 2.5 * compared + 10.0;
  if (l->shape.position_queries) pair += 2.5 * compared + 10.0;
  if (segments) pair += 2.0 * compared; /* the mean key */
  if (c->select != SELECT_HARD) {
    const bool stored = l->vector && c->want == WEIGHTS_PER_HEAD; /* only additive scores are */
    const bool again = segments
                           ? c->want != WEIGHTS_NONE || c->want_pointers || c->want_measures
                           : (c->want != WEIGHTS_NONE && !stored) || c->select == SELECT_SAMPLE;
    pair = again ? 2.0 * pair + value : pair + value;
  }
  return pair * (double)(keys + 1) + 16.0 * (double)(segments ? item->segments : 0);
}

double rows_work(const struct layer *l, const struct call *c, unsigned role, size_t rows) {
  const struct needed *needed = &c->space->needed[role];
  const size_t heads = role == ROLE_OUTPUT ? l->shape.heads : role_heads(l, role);
  const double out = (double)(role_heads(l, role) * role_head_size(l, role));
  double work = l->matrix[role] ? 2.0 * out * (double)role_in(l, role) : 0;
  if (l->shape.grouped && role != ROLE_OUTPUT) work /= (double)heads;
  /* Copying a row to the places of its heads: by number, and by place. */
  work += 8.0 * out + 60.0 * (double)role_heads(l, role);
  if (role <= ROLE_KEY && l->norm[role]) work += NORM_WORK * out;
  if (role <= ROLE_KEY && l->rotary)
    work += 4.0 * out + ANGLE_WORK * (double)l->shape.head_size / 2;
  if (role <= ROLE_KEY && l->compare[role]) work += 2.0 * out * (double)l->compare_size;
  return (double)rows * work * (double)needed->count / (double)heads;
}
