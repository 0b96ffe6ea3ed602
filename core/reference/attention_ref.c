/* attention_ref: the formulas of attention for one item, in the order of their computation.
 *
 *     project   q = W_q x + b, and in the same way k and v   for each row and head; q and k are
 *                                                            then normalized and rotated, if the
 *                                                            layer has these steps
 *     compare   score = scale q.k + bias                     for each query and each visible key;
 *                                                            with disentangled positions scale
 *                                                            (q.k + q.(position key) +
 *                                                            k.(position query)) + bias
 *     weigh     weights = softmax(scores)
 *     choose    all keys by their weights, or one of them
 *     sum       context = sum of weight * v
 *     put out   y = W_o (contexts of all heads) + b
 *
 * attend(), after them, is exactly that. The rest of the file finds the heads and rows that the
 * results depend on, and reserves memory. */
#include <math.h>
#include <string.h>

#include "core/attention/trace.h"
#include "core/base/arena.h"
#include "core/reference/attention_ref.h"
#include "core/reference/ref_math.h"

/* The inputs of one role (queries, keys or values) and their projections. The two operands of a
 * score, one made of the query and one made of the key, are called sides; both have side_size
 * numbers. */
struct ref_rows {
  size_t count, in;     /* input rows, and numbers per row */
  size_t heads, size;   /* heads of a projected row, and numbers per head */
  const double *input;  /* [count, in] */
  double *projected;    /* [count, heads, size] */
  double *sides;        /* [count, heads, side_size]; unused for values */
  uint8_t *head_needed; /* [heads] 1: the results depend on this head */
  uint8_t *row_needed;  /* [count] 1: the results depend on this row */
};

struct ref_work {
  const struct layer_shape *s;
  const struct layer_matrix *matrix; /* [ROLE_COUNT] */
  const struct ref_item *item;
  const struct ref_answer *answer;
  struct ref_rows rows[ROLE_VALUE + 1]; /* by role */
  double *position[ROLE_KEY + 1];       /* [2 S, heads, d] position queries and position keys */
  double *position_row;                 /* [query_size] */

  /* The current query in the current head. */
  double *scores;          /* [k] -INFINITY: the key is masked */
  double *weights;         /* [k] */
  double *segment_scores;  /* [segments] */
  double *segment_weights; /* [segments] */
  double *segment_key;     /* [d_k] the mean key of one segment */
  double *segment_side;    /* [side_size] of that key */
  int32_t pointer;         /* the key with the greatest weight, or the sampled one, or -1 */

  double *context; /* [H d_v] contexts of all heads for the current query */
  bool beyond;     /* a number that the results depend on exceeds the float32 range */
};

static void check_range(struct ref_work *r, const double *x, size_t n) {
  for (size_t i = 0; i < n; i++) r->beyond |= !ref_is_float(x[i]);
}

/* The key/value head of a query head: H/G query heads share one. */
static size_t key_head_of(const struct layer_shape *s, size_t head) {
  return head / (s->heads / s->kv_heads);
}

static double *projected_at(const struct ref_work *r, enum role role, size_t row, size_t head) {
  const struct ref_rows *of = &r->rows[role];
  return of->projected + (row * of->heads + head) * of->size;
}

/* --- scores --- */

/* scale q.k | v.tanh(W_q q + W_k k) | k.(W q): the sides are q and k themselves, or W_q q and
 * W_k k, or W q and k. */
static size_t side_size(const struct layer_shape *s) {
  return s->score == SCORE_ADDITIVE ? s->score_size : s->key_head_size;
}

static double *side_at(const struct ref_work *r, enum role role, size_t row, size_t head) {
  const struct ref_rows *of = &r->rows[role];
  return of->sides + (row * of->heads + head) * side_size(r->s);
}

static void make_side(struct ref_work *r, enum role role, const double *x, double *side) {
  const enum score score = r->s->score;
  const size_t n = side_size(r->s);
  const float *weight = NULL;
  if (score == SCORE_ADDITIVE)
    weight = r->matrix[role == ROLE_QUERY ? ROLE_SCORE_QUERY : ROLE_SCORE_KEY].weight;
  else if (score == SCORE_BILINEAR && role == ROLE_QUERY)
    weight = r->matrix[ROLE_SCORE_WEIGHT].weight;
  if (!weight) {
    memcpy(side, x, n * sizeof *side);
    return;
  }
  ref_product(weight, NULL, n, r->rows[role].size, x, side);
  check_range(r, side, n);
}

/* The score before scale and bias. */
static double product_of(const struct ref_work *r, const double *query_side,
                         const double *key_side) {
  const float *v = r->matrix[ROLE_SCORE_VECTOR].weight;
  double sum = 0;
  for (size_t x = 0; x < side_size(r->s); x++)
    sum += r->s->score == SCORE_ADDITIVE ? v[x] * tanh(query_side[x] + key_side[x])
                                         : query_side[x] * key_side[x];
  return sum;
}

static double score_of(struct ref_work *r, const double *query_side, const double *key_side,
                       double positions) {
  const double product = product_of(r, query_side, key_side) + positions, cap = r->s->cap;
  const double score = r->s->score == SCORE_DOT ? r->s->scale * product : product;
  if (cap <= 0) return score;
  check_range(r, &score, 1); /* the capped score shows no overflow */
  return cap * tanh(score / cap);
}

/* The slopes of ALiBi for 2^n heads are a geometric series that begins with its ratio and ends with
 * 2^-8. The heads that are beyond a power of two take every other slope of the next one. */
static double alibi_slope(size_t head, size_t heads) {
  const double power = exp2(floor(log2((double)heads)));
  return (double)head < power ? pow(exp2(-8 / power), (double)head + 1)
                              : pow(exp2(-4 / power), 2 * ((double)head - power) + 1);
}

/* The bias of the distance from query i to key j: ALiBi's, or T5's. */
static double relative_bias(const struct ref_work *r, size_t head, size_t i, size_t j) {
  const struct layer_shape *s = r->s;
  const double ahead = (double)j - (double)i - (double)r->item->offset;
  if (s->alibi) return -alibi_slope(head, s->heads) * fabs(ahead);
  if (s->relative_buckets == 0) return 0;
  const size_t n = s->relative_both ? s->relative_buckets / 2 : s->relative_buckets;
  const size_t first = s->relative_both && ahead > 0 ? n : 0;
  const double distance = s->relative_both ? fabs(ahead) : fmax(-ahead, 0);
  const size_t bucket = first + ref_bucket(n, (double)s->relative_distance, distance);
  return r->matrix[ROLE_RELATIVE].weight[bucket * s->heads + head];
}

/* --- disentangled positions --- */

/* The row of the distance r from a key to a query. */
static size_t position_row(const struct layer_shape *s, double r) {
  const double span = (double)s->position_span, half = floor(span / 2);
  if (s->position_reach > 0 && fabs(r) > half) {
    const double most = (double)(s->position_reach - 1) / half;
    const double steps = log(fabs(r) / half) / log(most) * (half - 1);
    const double whole = fabs(steps - round(steps)) < 1e-9 ? round(steps) : ceil(steps);
    r = copysign(half + whole, r);
  }
  return (size_t)(fmin(fmax(r, -span), span - 1) + span);
}

/* A row of the table, projected like a query or like a key. */
static double *position_at(const struct ref_work *r, enum role role, size_t row, size_t head) {
  const struct ref_rows *of = &r->rows[role];
  return r->position[role] + (row * of->heads + head) * of->size;
}

static void project_positions(struct ref_work *r, enum role role) {
  const size_t in = r->s->query_size, out = r->rows[role].heads * r->rows[role].size;
  const float *table = r->matrix[ROLE_POSITION].weight;
  const struct layer_matrix *own =
      &r->matrix[role == ROLE_QUERY ? ROLE_POSITION_QUERY : ROLE_POSITION_KEY];
  const struct layer_matrix *m = own->weight ? own : &r->matrix[role];
  for (size_t row = 0; row < 2 * r->s->position_span; row++) {
    for (size_t x = 0; x < in; x++) r->position_row[x] = table[row * in + x];
    ref_product(m->weight, m->bias, out, in, r->position_row, position_at(r, role, row, 0));
  }
}

static double inner_product(const double *x, const double *y, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += x[i] * y[i];
  return sum;
}

/* The sum that the distance from key j to query i adds to their product. */
static double position_sum(const struct ref_work *r, size_t head, size_t i, size_t j) {
  const struct layer_shape *s = r->s;
  if (s->position_span == 0) return 0;
  const size_t row = position_row(s, (double)i + (double)r->item->offset - (double)j);
  const size_t shared = key_head_of(s, head);
  double sum = 0;
  if (s->position_keys)
    sum += inner_product(projected_at(r, ROLE_QUERY, i, head),
                         position_at(r, ROLE_KEY, row, shared), s->head_size);
  if (s->position_queries)
    sum += inner_product(projected_at(r, ROLE_KEY, j, shared),
                         position_at(r, ROLE_QUERY, row, head), s->head_size);
  return sum;
}

/* --- the six steps --- */

static void project(struct ref_work *r, enum role role) {
  const struct layer_shape *s = r->s;
  const struct ref_rows *of = &r->rows[role];
  const struct layer_matrix *m = &r->matrix[role];
  const float *norm[] = {r->matrix[ROLE_NORM_QUERY].weight, r->matrix[ROLE_NORM_KEY].weight, NULL};
  /* A head of a grouped layer, or of a layer without this matrix, reads its own slice of the input
   * row; any other head reads the whole row. */
  const bool slice = s->grouped || !m->weight;
  const size_t in = slice ? of->in / of->heads : of->in;
  for (size_t row = 0; row < of->count; row++)
    for (size_t head = 0; head < of->heads; head++) {
      if (!of->row_needed[row] || !of->head_needed[head]) continue;
      const double *x = of->input + row * of->in + (slice ? head * in : 0);
      double *y = projected_at(r, role, row, head);
      if (m->weight) {
        ref_product(m->weight + head * of->size * in, m->bias ? m->bias + head * of->size : NULL,
                    of->size, in, x, y);
        check_range(r, y, of->size);
      } else {
        memcpy(y, x, of->size * sizeof *y);
      }
      if (role == ROLE_VALUE) continue;
      if (norm[role]) {
        ref_norm(y, s->head_size, true, s->norm_epsilon, norm[role], NULL, y);
        check_range(r, y, s->head_size);
      }
      if (s->rope_base != 0) {
        const double offset = role == ROLE_QUERY ? (double)r->item->offset : 0;
        const double base =
            ref_base(s->rope_base, s->head_size, &s->rope_stretch, (double)r->item->k);
        ref_rotate(y, s->head_size, base, &s->rope_stretch, (double)row + offset);
        check_range(r, y, s->head_size);
      }
      make_side(r, role, y, side_at(r, role, row, head));
    }
}

/* score = scale (q.k + positions) + bias + bias of the distance; -INFINITY for a masked key. */
static void compare(struct ref_work *r, size_t head, size_t i) {
  const struct ref_item *item = r->item;
  const double *query = side_at(r, ROLE_QUERY, i, head);
  for (size_t j = 0; j < item->k; j++) {
    const size_t pair = (head * item->q + i) * item->k + j;
    r->scores[j] = -INFINITY;
    if (!item->seen[pair]) continue;
    const double *key = side_at(r, ROLE_KEY, j, key_head_of(r->s, head));
    r->scores[j] = score_of(r, query, key, position_sum(r, head, i, j)) +
                   (item->bias ? item->bias[pair] : 0) + relative_bias(r, head, i, j);
    check_range(r, &r->scores[j], 1);
  }
}

/* context += sum of weight * value. A value with weight 0 may hold anything: it is not read. */
static void add_weighted(const struct ref_work *r, enum role role, size_t head, size_t from,
                         size_t to, double *context) {
  for (size_t j = from; j < to; j++)
    if (r->weights[j] != 0)
      ref_add(context, r->weights[j], projected_at(r, role, j, key_head_of(r->s, head)),
              r->rows[role].size);
}

/* Two levels: softmax within each segment; softmax over the scores of the segments' keys, where the
 * key of a segment is the mean of its keys by their weights; the weight of a key is the product. */
static void weigh_segments(struct ref_work *r, size_t head, size_t i) {
  const int32_t *end = r->item->segment_end;
  const size_t segments = r->item->segments, size = r->s->key_head_size;
  for (size_t s = 0, from = 0; s < segments; from = (size_t)end[s++]) {
    const size_t to = (size_t)end[s];
    ref_softmax(r->scores + from, to - from, r->weights + from);
    r->segment_scores[s] = -INFINITY;
    if (ref_greatest(r->scores + from, to - from) < 0) continue; /* all keys are masked */
    memset(r->segment_key, 0, size * sizeof *r->segment_key);
    add_weighted(r, ROLE_KEY, head, from, to, r->segment_key);
    make_side(r, ROLE_KEY, r->segment_key, r->segment_side);
    r->segment_scores[s] = score_of(r, side_at(r, ROLE_QUERY, i, head), r->segment_side, 0);
    check_range(r, &r->segment_scores[s], 1);
  }
  ref_softmax(r->segment_scores, segments, r->segment_weights);
  for (size_t s = 0, j = 0; s < segments; s++)
    for (; j < (size_t)end[s]; j++) r->weights[j] *= r->segment_weights[s];
}

/* weights = softmax(scores). A query whose keys are all masked has weights of 0, or with
 * uniform_rows equal weights. */
static void weigh(struct ref_work *r, size_t head, size_t i) {
  const size_t k = r->item->k;
  if (r->item->uniform_rows && ref_greatest(r->scores, k) < 0)
    for (size_t j = 0; j < k; j++) r->weights[j] = 1.0 / (double)k;
  else if (r->item->segment_end)
    weigh_segments(r, head, i);
  else if (r->s->sigmoid)
    ref_sigmoid(r->scores, k, r->weights);
  else
    ref_softmax(r->scores, k, r->weights);
}

/* Sets the pointer. With SELECT_HARD and SELECT_SAMPLE that key gets all the weight. */
static void choose(struct ref_work *r, size_t head, size_t i) {
  const struct ref_item *item = r->item;
  r->pointer = ref_greatest(r->scores, item->k);
  if (r->pointer < 0) return; /* all keys are masked */
  if (item->select == SELECT_SAMPLE) {
    const uint32_t counter[4] = {(uint32_t)item->number, (uint32_t)head, (uint32_t)i, 0};
    r->pointer = ref_draw(r->weights, item->k, ref_random(item->seed, counter));
  } else if (item->segment_end) {
    r->pointer = ref_greatest(r->weights, item->k);
  }
  if (item->select == SELECT_SOFT) return;
  if (r->answer->chosen) r->pointer = r->answer->chosen[head * item->q + i];
  memset(r->weights, 0, item->k * sizeof *r->weights);
  r->weights[r->pointer] = 1;
}

/* context = head_mask * sum of weight * value. With a head_mask of 0 the context is +0, whatever
 * the values. */
static void sum(struct ref_work *r, size_t head) {
  const size_t size = r->s->value_head_size;
  const double mask = r->item->head_mask ? r->item->head_mask[head] : 1;
  double *context = r->context + head * size;
  memset(context, 0, size * sizeof *context);
  if (mask == 0) return;
  add_weighted(r, ROLE_VALUE, head, 0, r->item->k, context);
  for (size_t x = 0; x < size; x++) context[x] *= mask;
}

/* y = W_o context + b; without a matrix y is the context. */
static void put_out(struct ref_work *r, size_t i) {
  const struct layer_matrix *m = &r->matrix[ROLE_OUTPUT];
  const size_t wide = r->s->heads * r->s->value_head_size, out = r->s->output_size;
  double *y = r->answer->outputs + i * out;
  if (m->weight)
    ref_product(m->weight, m->bias, out, wide, r->context, y);
  else
    memcpy(y, r->context, out * sizeof *y);
  check_range(r, y, out);
}

/* --- attention --- */

static void write_weights(const struct ref_work *r, size_t head, size_t i) {
  const struct ref_answer *answer = r->answer;
  const size_t row = head * r->item->q + i, k = r->item->k, segments = r->item->segments;
  if (answer->weights) memcpy(answer->weights + row * k, r->weights, k * sizeof *r->weights);
  if (answer->segment_weights)
    memcpy(answer->segment_weights + row * segments, r->segment_weights,
           segments * sizeof *r->segment_weights);
  if (answer->pointers) answer->pointers[row] = r->pointer;
}

static void copy_or_clear(bool copy, size_t size, const double *from, double *to) {
  memset(to, 0, size * sizeof *to);
  if (copy) memcpy(to, from, size * sizeof *to);
}

/* Writes the trace if it is this query's in this head. A row that is not read is written as 0. */
static void write_trace(struct ref_work *r, size_t head, size_t i) {
  const struct trace *request = r->item->trace;
  struct ref_trace *t = r->answer->trace;
  if (!t || !request || request->item != r->item->number || request->head != head ||
      request->row != i)
    return;
  const size_t k = r->item->k, n = side_size(r->s), d_v = r->s->value_head_size;
  const size_t key_head = key_head_of(r->s, head);
  copy_or_clear(ref_greatest(r->scores, k) >= 0, n, side_at(r, ROLE_QUERY, i, head), t->query);
  for (size_t j = 0; j < k; j++) {
    const bool seen = r->scores[j] != -INFINITY;
    const double *key = side_at(r, ROLE_KEY, j, key_head);
    copy_or_clear(seen, n, key, t->keys + j * n);
    copy_or_clear(seen || r->weights[j] != 0, d_v, projected_at(r, ROLE_VALUE, j, key_head),
                  t->values + j * d_v);
    t->products[j] = seen ? product_of(r, t->query, key) : 0;
    t->scores[j] = seen ? r->scores[j] : 0;
    t->weights[j] = r->weights[j];
  }
  check_range(r, t->products, k);
  /* The head's context before head_mask. */
  memset(t->context, 0, d_v * sizeof *t->context);
  add_weighted(r, ROLE_VALUE, head, 0, k, t->context);
  check_range(r, t->context, d_v);
}

static void attend(struct ref_work *r) {
  const size_t heads = r->s->heads, wide = heads * r->s->value_head_size;
  project(r, ROLE_QUERY);
  project(r, ROLE_KEY);
  project(r, ROLE_VALUE);
  for (enum role role = ROLE_QUERY; r->s->position_span > 0 && role <= ROLE_KEY; role++)
    project_positions(r, role);
  memset(r->context, 0, wide * sizeof *r->context); /* stays 0 for heads that are not computed */
  for (size_t i = 0; i < r->item->q; i++) {
    for (size_t head = 0; head < heads; head++) {
      if (!r->rows[ROLE_QUERY].head_needed[head]) continue;
      compare(r, head, i);
      weigh(r, head, i);
      choose(r, head, i);
      sum(r, head);
      write_weights(r, head, i);
      write_trace(r, head, i);
    }
    put_out(r, i);
    if (r->answer->contexts)
      memcpy(r->answer->contexts + i * wide, r->context, wide * sizeof *r->context);
  }
}

/* --- what the results depend on --- */

/* Finds the needed heads and rows. The others are not computed, so that no number in them is ever
 * an error. */
static void find_needed(struct ref_work *r) {
  const struct ref_item *item = r->item;
  struct ref_rows *query = &r->rows[ROLE_QUERY], *key = &r->rows[ROLE_KEY],
                  *value = &r->rows[ROLE_VALUE];
  for (enum role role = ROLE_QUERY; role <= ROLE_VALUE; role++) {
    memset(r->rows[role].head_needed, 0, r->rows[role].heads);
    memset(r->rows[role].row_needed, 0, r->rows[role].count);
  }
  bool blind = false; /* some query attends to no key in a needed head */
  for (size_t head = 0; head < r->s->heads; head++) {
    /* A key head is needed with any query head that shares it. Values show only in outputs and in a
     * trace, so a masked head needs none. */
    const size_t key_head = key_head_of(r->s, head);
    const bool traced = item->trace && item->trace->head == head;
    const bool masked = item->head_mask && item->head_mask[head] == 0 && !traced;
    const bool needed = !masked || item->masked_heads;
    query->head_needed[head] = needed;
    key->head_needed[key_head] |= needed;
    value->head_needed[key_head] |= !masked;
    for (size_t i = 0; needed && i < item->q; i++) {
      const uint8_t *seen = item->seen + (head * item->q + i) * item->k;
      bool any = false;
      for (size_t j = 0; j < item->k; j++) {
        key->row_needed[j] |= seen[j];
        any |= seen[j];
      }
      query->row_needed[i] |= any;
      blind |= !any;
    }
  }
  for (size_t j = 0; j < item->k; j++)
    value->row_needed[j] = key->row_needed[j] || (blind && item->uniform_rows);
}

/* --- one item --- */

static double *alloc_numbers(struct arena *a, size_t count, struct error *e) {
  return arena_alloc(a, count, sizeof(double), e);
}

enum status attention_ref_item(const struct layer_shape *s,
                               const struct layer_matrix matrix[ROLE_COUNT],
                               const struct ref_item *item, const struct ref_answer *answer,
                               struct error *e) {
  const size_t side = side_size(s), rows = s->heads * item->q;
  struct ref_work r = {.s = s, .matrix = matrix, .item = item, .answer = answer};
  r.rows[ROLE_QUERY] =
      (struct ref_rows){item->q, s->query_size, s->heads, s->head_size, .input = item->queries};
  r.rows[ROLE_KEY] =
      (struct ref_rows){item->k, s->key_size, s->kv_heads, s->key_head_size, .input = item->keys};
  r.rows[ROLE_VALUE] = (struct ref_rows){item->k, s->value_size, s->kv_heads, s->value_head_size,
                                         .input = item->values};
  struct arena a;
  arena_init(&a, NULL);
  for (enum role role = ROLE_QUERY; role <= ROLE_VALUE; role++) {
    struct ref_rows *of = &r.rows[role];
    of->projected = alloc_numbers(&a, of->count * of->heads * of->size, e);
    of->sides = alloc_numbers(&a, role == ROLE_VALUE ? 0 : of->count * of->heads * side, e);
    of->head_needed = arena_alloc(&a, of->heads, 1, e);
    of->row_needed = arena_alloc(&a, of->count, 1, e);
  }
  for (enum role role = ROLE_QUERY; role <= ROLE_KEY; role++)
    r.position[role] =
        alloc_numbers(&a, 2 * s->position_span * r.rows[role].heads * r.rows[role].size, e);
  r.position_row = alloc_numbers(&a, s->query_size, e);
  r.scores = alloc_numbers(&a, item->k, e);
  r.weights = alloc_numbers(&a, item->k, e);
  r.segment_scores = alloc_numbers(&a, item->segments, e);
  r.segment_weights = alloc_numbers(&a, item->segments, e);
  r.segment_key = alloc_numbers(&a, s->key_head_size, e);
  r.segment_side = alloc_numbers(&a, side, e);
  r.context = alloc_numbers(&a, s->heads * s->value_head_size, e);
  if (e->status == STATUS_OK) {
    /* Results of heads that are not computed. */
    if (answer->weights) memset(answer->weights, 0, rows * item->k * sizeof *answer->weights);
    if (answer->segment_weights)
      memset(answer->segment_weights, 0, rows * item->segments * sizeof *answer->segment_weights);
    for (size_t i = 0; answer->pointers && i < rows; i++) answer->pointers[i] = -1;
    find_needed(&r);
    attend(&r);
    if (r.beyond)
      error_set(e, STATUS_NOT_FINITE, "item %zu exceeds the float32 range", item->number);
  }
  arena_free(&a);
  return e->status;
}
