/* attention_ref: the formulas of an attention, from queries, keys and values to outputs.
 *
 *     project   q = W_q x + b; keys and values likewise     each row, in each head; q and k
 *                                                           normalised and turned, where they are
 *     compare   score = scale q.k + bias                    each query with the keys it may see
 *     weigh     weights = softmax(scores)
 *     choose    all keys by their weights, or one of them
 *     sum       context = sum of weight * v
 *     put out   y = W_o (the contexts of all heads) + b
 *
 * ref_attend, at the end, is just that. */
#include <math.h>
#include <string.h>

#include "core/reference/attention_ref_parts.h"

/* One head of a row: the head's rows of W times the input row; in a grouped layer times the head's
 * own slice of it; without a matrix it is this slice. */
static void project_head(struct ref_work *r, enum role role, size_t row, size_t head) {
  const struct ref_rows *of = &r->rows[role];
  const struct layer_matrix *m = &r->matrix[role];
  const bool slice = r->s->grouped || !m->weight;
  const size_t in = slice ? of->in / of->heads : of->in;
  const double *x = of->input + row * of->in + (slice ? head * in : 0);
  double *y = ref_projected(r, role, row, head);
  if (!m->weight) {
    memcpy(y, x, of->size * sizeof *y);
    return;
  }
  ref_product(m->weight + head * of->size * in, m->bias ? m->bias + head * of->size : NULL,
              of->size, in, x, y);
  ref_check(r, y, of->size);
}

/* Each head of queries or keys over the root of its mean square. */
static void norm_head(struct ref_work *r, enum role role, size_t row, size_t head) {
  const float *factor = r->matrix[role == ROLE_QUERY ? ROLE_NORM_QUERY : ROLE_NORM_KEY].weight;
  double *x = ref_projected(r, role, row, head);
  if (!factor) return;
  ref_norm(x, r->s->head_size, true, r->s->norm_epsilon, factor, NULL, x);
  ref_check(r, x, r->s->head_size);
}

/* Rotary: each head of queries or keys is turned by the position of its row. */
static void turn_head(struct ref_work *r, enum role role, size_t row, size_t head) {
  const double position = (double)row + (role == ROLE_QUERY ? (double)r->item->offset : 0);
  double *x = ref_projected(r, role, row, head);
  if (r->s->rope_base == 0) return;
  ref_rotate(x, r->s->head_size, r->s->rope_base, &r->s->rope_stretch, position);
  ref_check(r, x, r->s->head_size);
}

/* All rows and heads that take part. */
static void project(struct ref_work *r, enum role role) {
  const struct ref_rows *of = &r->rows[role];
  for (size_t row = 0; row < of->count; row++)
    for (size_t head = 0; head < of->heads; head++) {
      if (!of->row_needed[row] || !of->head_needed[head]) continue;
      project_head(r, role, row, head);
      if (role == ROLE_VALUE) continue;
      norm_head(r, role, row, head);
      turn_head(r, role, row, head);
      ref_make_side(r, role, ref_projected(r, role, row, head), ref_side(r, role, row, head));
    }
}

/* score = scale q.k + bias + what the distance adds; a key that the query may not see has none. */
static void compare(struct ref_work *r, size_t head, size_t i) {
  const struct ref_item *item = r->item;
  const size_t key_head = ref_key_head(r->s, head);
  for (size_t j = 0; j < item->k; j++) {
    const size_t pair = (head * item->q + i) * item->k + j;
    r->scores[j] = -INFINITY;
    if (!item->seen[pair]) continue;
    r->scores[j] =
        ref_score(r, ref_side(r, ROLE_QUERY, i, head), ref_side(r, ROLE_KEY, j, key_head)) +
        (item->bias ? item->bias[pair] : 0) + ref_relative(r, head, i, j);
    ref_check(r, &r->scores[j], 1);
  }
}

/* weights = softmax(scores); a query that sees nothing weighs nothing, or all keys alike. */
static void weigh(struct ref_work *r, size_t head, size_t i) {
  const size_t k = r->item->k;
  if (r->item->uniform_rows && ref_greatest(r->scores, k) < 0)
    for (size_t j = 0; j < k; j++) r->weights[j] = 1.0 / (double)k;
  else if (r->item->segment_end)
    ref_weigh_segments(r, head, i);
  else if (r->s->sigmoid)
    ref_sigmoid(r->scores, k, r->weights);
  else
    ref_softmax(r->scores, k, r->weights);
}

/* context = head_mask * sum of weight * value. On two levels a weight is that of the key's segment
 * times the key's within it. */
static void sum(struct ref_work *r, size_t head) {
  const size_t size = r->s->value_head_size, key_head = ref_key_head(r->s, head);
  const double mask = r->item->head_mask ? r->item->head_mask[head] : 1;
  double *context = r->context + head * size;
  if (mask == 0) return; /* the context stays +0, whatever the values */
  for (size_t j = 0; j < r->item->k; j++)
    if (r->weights[j] != 0) /* a hidden key is not touched */
      ref_add(context, r->weights[j], ref_projected(r, ROLE_VALUE, j, key_head), size);
  for (size_t x = 0; x < size; x++) context[x] *= mask;
}

/* y = W_o context + b; without a matrix the context itself. */
static void put_out(struct ref_work *r, size_t i) {
  const struct layer_matrix *m = &r->matrix[ROLE_OUTPUT];
  const size_t wide = r->s->heads * r->s->value_head_size, out = r->s->output_size;
  double *y = r->answer->outputs + i * out;
  if (m->weight)
    ref_product(m->weight, m->bias, out, wide, r->context, y);
  else
    memcpy(y, r->context, out * sizeof *y);
  ref_check(r, y, out);
}

void ref_attend(struct ref_work *r) {
  project(r, ROLE_QUERY);
  project(r, ROLE_KEY);
  project(r, ROLE_VALUE);
  for (size_t i = 0; i < r->item->q; i++) {
    memset(r->context, 0, r->s->heads * r->s->value_head_size * sizeof *r->context);
    for (size_t head = 0; head < r->s->heads; head++) {
      if (!r->rows[ROLE_QUERY].head_needed[head]) continue;
      compare(r, head, i);
      weigh(r, head, i);
      ref_choose(r, head, i);
      sum(r, head);
      ref_write_weights(r, head, i);
      ref_write_trace(r, head, i);
    }
    put_out(r, i);
    ref_write_context(r, i);
  }
}
