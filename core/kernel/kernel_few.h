/* kernel_few: attention of an item of few queries: the numbers of a key lie in the lanes.
 *
 * A part of kernel_loops.h.
 *
 * With queries in the lanes one query leaves all lanes but one idle. Here a key's numbers are
 * multiplied lane by lane, and the sums of LANES keys are then added up across the lanes together;
 * the softmax runs along the keys. Scores are summed in another order than elsewhere, so
 * whether an item is computed here depends on the layer and on what is asked of the item, never on
 * other items. An item whose heads are measured is not: `measure` makes the scores again with
 * queries in the lanes, and needs the `top` and `factor` of exactly these scores. Where scores are
 * about 1e6, their rounding alone changes e^(score - top) by a factor. */

enum { FEW_MAX = LANES };

/* Cheaper than queries in the lanes? There LANES keys cost as many steps for each number, for the
 * score and for the value, however few the queries are; here each query costs one step for LANES
 * numbers, and about six for each key to add up across the lanes. */
static bool attend_as_few(const struct kernel_tile *t) {
  const size_t padded = (t->head_size + LANES - 1) / LANES * LANES;
  if (t->vector || t->segment_end || t->select != SELECT_SOFT || t->top) return false;
  return t->item_queries * (2 * padded + 6 * LANES) < 2 * LANES * t->head_size;
}

struct few {
  const struct kernel_tile *t;
  size_t size, value_size; /* of a head, in whole vectors */
  float *query;            /* [queries, size] scaled, zeros behind */
  float *scores;           /* [queries, KERNEL_KEYS] */
  float *context;          /* [queries, value_size] */
  float top[FEW_MAX];      /* greatest score so far */
  double sum[FEW_MAX];     /* of the exponentials */
  float best[FEW_MAX];     /* the greatest score, for the pointers */
  int32_t chosen[FEW_MAX]; /* its key; -1: none yet */
};

static void few_open(struct few *f, const struct kernel_tile *t, float *scratch) {
  f->t = t;
  f->size = (t->head_size + LANES - 1) / LANES * LANES;
  f->value_size = (t->value_head_size + LANES - 1) / LANES * LANES;
  f->scores = scratch;
  f->query = f->scores + t->queries * KERNEL_KEYS;
  f->context = f->query + t->queries * f->size;
  memset(f->context, 0, t->queries * f->value_size * sizeof(float));
  for (size_t i = 0; i < t->queries; i++) {
    const float *from = t->query + i * t->query_row;
    for (size_t x = 0; x < f->size; x += LANES)
      vec_store(f->query + i * f->size + x,
                vec_load_some(from + x, t->head_size - x) * vec_all(t->scale));
    f->top[i] = -FLT_MAX, f->best[i] = -INFINITY;
    f->sum[i] = 0, f->chosen[i] = -1;
  }
}

/* --- scores --- */

/* Lane by lane, the products of a query with each of `count` keys. */
INLINE void products_by_lane(const float *query, const float *key, size_t key_row, size_t size,
                             const int count, vec *sum) {
  size_t x = 0;
#pragma GCC unroll 8
  for (int i = 0; i < count; i++) sum[i] = vec_all(0);
  for (; x + LANES <= size; x += LANES) {
    const vec q = vec_load(query + x);
#pragma GCC unroll 8
    for (int i = 0; i < count; i++)
      sum[i] = vec_fma(q, vec_load(key + (size_t)i * key_row + x), sum[i]);
  }
  if (x == size) return;
  const vec q = vec_load(query + x);
#pragma GCC unroll 8
  for (int i = 0; i < count; i++)
    sum[i] = vec_fma(q, vec_load_some(key + (size_t)i * key_row + x, size - x), sum[i]);
}

/* The scores of one query with LANES keys, or with the first `keys` of them. */
INLINE vec scores_of(const struct few *f, const float *query, const float *key, size_t keys) {
  enum { TOGETHER = LANES < 8 ? LANES : 8 };
  const size_t row = f->t->key_row, size = f->t->head_size;
  vec sum[LANES];
  if (keys >= LANES) {
#pragma GCC unroll 4
    for (int i = 0; i < LANES; i += TOGETHER)
      products_by_lane(query, key + (size_t)i * row, row, size, TOGETHER, sum + i);
  } else {
    for (size_t i = 0; i < LANES; i++)
      if (i < keys)
        products_by_lane(query, key + i * row, row, size, 1, sum + i);
      else
        sum[i] = vec_all(0);
  }
  return vec_sums(sum);
}

/* All ones where the mask's byte is not zero. */
INLINE ivec flags_some(const uint8_t *mask, size_t n) {
  uint8_t flag[LANES] = {0};
  ivec flags;
  memcpy(flag, mask, n < LANES ? n : LANES);
  for (int i = 0; i < LANES; i++) flags[i] = flag[i];
  return flags != ivec_all(0);
}

/* Adds biases; the scores of keys that query `i` may not see become -infinity. False if the score
 * of a key that it may see is beyond float32. */
INLINE bool finish_scores(const struct few *f, size_t i, size_t key, size_t keys) {
  const struct kernel_tile *t = f->t;
  for (size_t r = 0; r < keys; r += LANES) {
    float *s = f->scores + i * KERNEL_KEYS + r;
    const ivec j = ivec_all((int32_t)(key + r)) + lane_numbers();
    ivec seen = (j >= ivec_all(t->from[i])) & (j < ivec_all(t->to[i]));
    vec score = vec_load(s);
    if (t->bias) score += vec_load_some(t->bias + i * t->bias_row + key + r, keys - r);
    if (t->relative) score += vec_load_some(t->relative + key + r - i, keys - r);
    if (t->mask) seen &= flags_some(t->mask + i * t->mask_row + key + r, keys - r);
    if (t->careful && vec_any(seen & ((score - score) != vec_all(0)))) return false;
    vec_store(s, vec_choose(seen, score, vec_all(-INFINITY)));
  }
  return true;
}

static bool few_sees(const struct few *f, size_t i, size_t key, size_t keys) {
  return (int32_t)key < f->t->to[i] && (int32_t)(key + keys) > f->t->from[i];
}

static bool few_scores(const struct few *f, size_t i, size_t key, size_t keys) {
  const struct kernel_tile *t = f->t;
  for (size_t r = 0; r < keys; r += LANES)
    vec_store(f->scores + i * KERNEL_KEYS + r,
              scores_of(f, f->query + i * f->size, t->key + (key + r) * t->key_row, keys - r));
  return finish_scores(f, i, key, keys);
}

/* --- weights --- */

/* The greatest score of the block; keeps the first key that has the greatest of all. */
static float few_greatest(struct few *f, size_t i, size_t key, size_t keys) {
  const float *s = f->scores + i * KERNEL_KEYS;
  vec most = vec_load(s);
  for (size_t r = LANES; r < keys; r += LANES) most = vec_max(vec_load(s + r), most);
  const float greatest = vec_greatest(most);
  if (f->t->pointers && greatest > f->best[i]) {
    size_t r = 0;
    while (s[r] != greatest) r++;
    f->best[i] = greatest;
    f->chosen[i] = (int32_t)(key + r);
  }
  return greatest;
}

static void few_raise_top(struct few *f, size_t i, float top) {
  if (top <= f->top[i]) return;
  const vec shrink = vec_exp(vec_all(f->top[i] - top));
  f->top[i] = top;
  f->sum[i] *= (double)shrink[0];
  for (float *c = f->context + i * f->value_size, *end = c + f->value_size; c < end; c += LANES)
    vec_store(c, vec_load(c) * shrink);
}

/* Scores become weights, not yet over their sum. */
static void few_soften(struct few *f, size_t i, size_t key, size_t keys) {
  const vec shrink = vec_all(f->t->shrink);
  const float greatest = few_greatest(f, i, key, keys);
  float *s = f->scores + i * KERNEL_KEYS;
  if (f->t->sigmoid) {
    for (size_t r = 0; r < keys; r += LANES)
      vec_store(s + r, vec_sigmoid(vec_load(s + r)) * shrink);
    return;
  }
  few_raise_top(f, i, greatest);
  const vec top = vec_all(f->top[i]);
  vec sum = vec_all(0);
  for (size_t r = 0; r < keys; r += LANES) {
    const vec e = vec_exp(vec_load(s + r) - top);
    sum += e;
    vec_store(s + r, e * shrink);
  }
  f->sum[i] += (double)vec_sum(sum);
}

/* What makes an exponential a weight; a sigmoid is one as it is. */
static float few_factor(const struct few *f, size_t i) {
  if (f->t->sigmoid) return 1.0f;
  return f->sum[i] > 0 ? (float)(1 / f->sum[i]) : 0;
}

/* --- values --- */

/* The last columns, where they fill no vector; `count` queries. */
INLINE void gather_tail(const struct few *f, size_t i, const float *value, size_t keys, size_t x,
                        const int count) {
  const size_t left = f->t->value_head_size - x;
  float *c = f->context + i * f->value_size + x;
  const float *s = f->scores + i * KERNEL_KEYS;
  vec sum[4];
#pragma GCC unroll 4
  for (int n = 0; n < count; n++) sum[n] = vec_load(c + (size_t)n * f->value_size);
  for (size_t r = 0; r < keys; r++) {
    const vec v = vec_load_some(value + r * f->t->value_row + x, left);
#pragma GCC unroll 4
    for (int n = 0; n < count; n++)
      sum[n] = vec_fma(vec_all(s[(size_t)n * KERNEL_KEYS + r]), v, sum[n]);
  }
#pragma GCC unroll 4
  for (int n = 0; n < count; n++) vec_store(c + (size_t)n * f->value_size, sum[n]);
}

static void few_gather(const struct few *f, size_t key, size_t keys) {
  const struct kernel_tile *t = f->t;
  const float *value = t->value + key * t->value_row;
  size_t x = 0;
  while (x + LANES <= t->value_head_size) {
    const size_t left = (t->value_head_size - x) / LANES;
    const size_t vectors = left < VECTORS ? left : VECTORS;
    product(&(struct kernel_product){.rows = t->queries,
                                     .depth = keys,
                                     .vectors = vectors,
                                     .a = f->scores,
                                     .a_row = KERNEL_KEYS,
                                     .a_step = 1,
                                     .b = value + x,
                                     .b_row = t->value_row,
                                     .start = f->context + x,
                                     .start_row = f->value_size,
                                     .c = f->context + x,
                                     .c_row = f->value_size});
    x += vectors * LANES;
  }
  if (x == t->value_head_size) return;
  size_t i = 0;
  for (; i + 4 <= t->queries; i += 4) gather_tail(f, i, value, keys, x, 4);
  for (; i < t->queries; i++) gather_tail(f, i, value, keys, x, 1);
}

/* --- what comes of it --- */

static void few_write_context(const struct few *f, size_t i) {
  const struct kernel_tile *t = f->t;
  const vec factor = vec_all(few_factor(f, i)) * vec_all(t->context_factor / t->shrink);
  for (size_t x = 0; x < t->value_head_size; x += LANES)
    vec_store_some(t->context + i * t->context_row + x,
                   vec_load(f->context + i * f->value_size + x) * factor, t->value_head_size - x);
  if (t->context_factor < 0) forget_signs(t, i);
}

static void few_close(const struct few *f) {
  const struct kernel_tile *t = f->t;
  for (size_t i = 0; i < t->queries; i++) {
    few_write_context(f, i);
    if (t->pointers) t->pointers[i] = f->chosen[i];
  }
}

/* The second pass: one query's weights of a block. */
static void few_weigh(const struct few *f, size_t i, size_t key, size_t keys) {
  const struct kernel_tile *t = f->t;
  const vec top = vec_all(f->top[i]), factor = vec_all(few_factor(f, i));
  const vec share = vec_all(t->weights_factor);
  const bool seen = few_sees(f, i, key, keys);
  if (seen) few_scores(f, i, key, keys);
  for (size_t r = 0; r < keys; r += LANES) {
    float *to = t->weights + i * t->weights_row + key + r;
    vec weight = vec_all(0);
    if (seen) {
      const vec score = vec_load(f->scores + i * KERNEL_KEYS + r);
      weight = (t->sigmoid ? vec_sigmoid(score) : vec_exp(score - top)) * factor * share;
    }
    if (t->weights_add) weight += vec_load_some(to, keys - r);
    vec_store_some(to, weight, keys - r);
  }
}

static void few_write_weights(const struct few *f) {
  for (size_t key = 0; key < f->t->keys; key += KERNEL_KEYS)
    for (size_t i = 0; i < f->t->queries; i++) few_weigh(f, i, key, block_keys(key, f->t->keys));
}

/* --- all of it --- */

static bool attend_few_block(struct few *f, size_t key, size_t keys) {
  bool any = false;
  for (size_t i = 0; i < f->t->queries; i++) any |= few_sees(f, i, key, keys);
  if (!any) return true;
  for (size_t i = 0; i < f->t->queries; i++) {
    if (!few_sees(f, i, key, keys)) {
      memset(f->scores + i * KERNEL_KEYS, 0, keys * sizeof(float));
      continue;
    }
    if (!few_scores(f, i, key, keys)) return false;
    few_soften(f, i, key, keys);
  }
  few_gather(f, key, keys);
  return true;
}

/* As attend. Its scratch is always enough: with fewer queries than LANES, and head sizes rounded up
 * by less than LANES, this takes less than LANES (d + d_v + 2 LANES + KERNEL_KEYS) floats; attend
 * has at least 2 LANES (d + d_v + 7 + 2 KERNEL_KEYS). */
static bool attend_few(const struct kernel_tile *t, float *scratch) {
  struct few f;
  few_open(&f, t, scratch);
  for (size_t key = 0; key < t->keys; key += KERNEL_KEYS)
    if (!attend_few_block(&f, key, block_keys(key, t->keys))) return false;
  few_close(&f);
  if (t->weights) few_write_weights(&f);
  return true;
}
