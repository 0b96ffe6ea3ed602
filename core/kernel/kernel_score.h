/* kernel_score: the scores of a block of keys for a panel of queries.
 *
 * A part of kernel_loops.h. A score is computed, a bias added; then every score of a key that the
 * query may not see becomes -infinity, whatever it was. */

/* --- the two ways to compare --- */

static void dot_scores(const struct attend *a, const struct panel *p, size_t key, size_t keys) {
  const struct kernel_tile *t = a->t;
  static const float zero[KERNEL_PANEL_MAX] = {0};
  product(&(struct kernel_product){.rows = keys,
                                   .depth = t->head_size,
                                   .vectors = p->vectors,
                                   .a = t->key + key * t->key_row,
                                   .a_row = t->key_row,
                                   .a_step = 1,
                                   .b = p->query,
                                   .b_row = panel_width(p),
                                   .start = zero,
                                   .c = a->scores,
                                   .c_row = panel_width(p)});
}

/* v.tanh(q + k): the sums of one key stay in registers while its numbers go by. */
INLINE void additive_rows(const struct attend *a, const struct panel *p, size_t key, size_t keys,
                          const int vectors) {
  const struct kernel_tile *t = a->t;
  const size_t width = (size_t)vectors * LANES;
  for (size_t r = 0; r < keys; r++) {
    const float *k = t->key + (key + r) * t->key_row;
    vec sum[VECTORS];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) sum[v] = vec_all(0);
    for (size_t x = 0; x < t->head_size; x++) {
      const vec number = vec_all(k[x]), by = vec_all(t->vector[x]);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; v++) {
        const vec q = vec_load(p->query + x * width + (size_t)v * LANES);
        sum[v] = vec_fma(by, vec_tanh(q + number), sum[v]);
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) vec_store(a->scores + r * width + (size_t)v * LANES, sum[v]);
  }
}

/* With few queries most lanes would be idle: then the numbers of a key lie in the lanes. Which way
 * an item goes must not depend on how it was cut. */
static bool queries_are_few(const struct kernel_tile *t) {
  return 2 * t->item_queries * ((t->head_size + LANES - 1) / LANES) <= t->head_size;
}

static void additive_few(const struct attend *a, const struct panel *p, size_t key, size_t keys) {
  const struct kernel_tile *t = a->t;
  memset(a->scores, 0, keys * panel_width(p) * sizeof(float)); /* lanes without a query */
  for (size_t i = 0; i < p->count; i++) {
    const float *q = t->query + (p->first + i) * t->query_row;
    for (size_t r = 0; r < keys; r++) {
      const float *k = t->key + (key + r) * t->key_row;
      vec sum = vec_all(0);
      for (size_t x = 0; x < t->head_size; x += LANES) {
        const size_t n = t->head_size - x;
        const vec number = vec_load_some(q + x, n) + vec_load_some(k + x, n);
        sum = vec_fma(vec_load_some(t->vector + x, n), vec_tanh(number), sum);
      }
      a->scores[r * panel_width(p) + i] = vec_sum(sum);
    }
  }
}

static void additive_scores(const struct attend *a, const struct panel *p, size_t key,
                            size_t keys) {
  if (queries_are_few(a->t)) {
    additive_few(a, p, key, keys);
    return;
  }
  switch (p->vectors) { /* the constant lets the compiler keep the lanes in registers */
  case 1:
    additive_rows(a, p, key, keys, 1);
    break;
  case 2:
    additive_rows(a, p, key, keys, 2);
    break;
#if VECTORS == 4
  case 3:
    additive_rows(a, p, key, keys, 3);
    break;
  case 4:
    additive_rows(a, p, key, keys, 4);
    break;
#endif
  default:
    __builtin_unreachable();
  }
}

/* Of one key that each lane has for itself, [head_size, width]; one vector of lanes. */
INLINE vec score_own_key(const struct attend *a, const struct panel *p, const float *key,
                         size_t v) {
  const struct kernel_tile *t = a->t;
  vec sum = vec_all(0);
  for (size_t x = 0; x < t->head_size; x++) {
    const size_t at = x * panel_width(p) + v * LANES;
    const vec q = vec_load(p->query + at), k = vec_load(key + at);
    sum = t->vector ? vec_fma(vec_all(t->vector[x]), vec_tanh(q + k), sum) : vec_fma(q, k, sum);
  }
  return sum;
}

/* --- biases, and what is hidden --- */

static void add_bias(const struct attend *a, const struct panel *p, size_t key, size_t keys) {
  const struct kernel_tile *t = a->t;
  const size_t width = panel_width(p);
  for (size_t v = 0; v < p->vectors; v++) {
    turn(t->bias + (p->first + v * LANES) * t->bias_row + key, t->bias_row, rows_of_vector(p, v),
         keys, 1.0f, a->extra + v * LANES, width);
    for (size_t r = 0; r < keys; r++) {
      float *s = a->scores + r * width + v * LANES;
      vec_store(s, vec_load(s) + vec_load(a->extra + r * width + v * LANES));
    }
  }
}

/* The distance grows with the key and falls with the query: a key's row is a piece of the one line
 * of numbers, the other way round. */
static void add_relative(const struct attend *a, const struct panel *p, size_t key, size_t keys) {
  const struct kernel_tile *t = a->t;
  const size_t width = panel_width(p);
  for (size_t v = 0; v < p->vectors; v++) {
    const float *last = t->relative + key - (p->first + (v + 1) * LANES - 1);
    for (size_t r = 0; r < keys; r++) {
      float *s = a->scores + r * width + v * LANES;
      vec_store(s, vec_load(s) + vec_backwards(vec_load(last + r)));
    }
  }
}

/* A score that is not finite becomes +infinity, so that hiding scores (as -infinity) leaves it
 * visible only where a query sees it. */
static void mark_not_finite(const struct attend *a, const struct panel *p, size_t keys) {
  for (size_t i = 0; i < keys * panel_width(p); i += LANES) {
    const vec score = vec_load(a->scores + i);
    const ivec finite = (score - score) == vec_all(0);
    vec_store(a->scores + i, vec_choose(finite, score, vec_all(INFINITY)));
  }
}

/* Is anything left of it that a query sees? */
static bool some_is_marked(const struct attend *a, const struct panel *p, size_t keys) {
  const size_t width = panel_width(p);
  ivec marked = {0};
  for (size_t v = 0; v < p->vectors; v++) {
    const ivec real = lane_numbers() < ivec_all((int32_t)rows_of_vector(p, v));
    for (size_t r = 0; r < keys; r++)
      marked |= real & (vec_load(a->scores + r * width + v * LANES) == vec_all(INFINITY));
  }
  return vec_any(marked);
}

static void hide_by_range(const struct attend *a, const struct panel *p, size_t key, size_t keys) {
  const size_t width = panel_width(p);
  for (size_t v = 0; v < p->vectors; v++) {
    ivec from, to;
    memcpy(&from, p->from + v * LANES, sizeof from);
    memcpy(&to, p->to + v * LANES, sizeof to);
    for (size_t r = 0; r < keys; r++) {
      float *s = a->scores + r * width + v * LANES;
      const ivec j = ivec_all((int32_t)(key + r));
      vec_store(s, vec_choose((j >= from) & (j < to), vec_load(s), vec_all(-INFINITY)));
    }
  }
}

static void hide_by_mask(const struct attend *a, const struct panel *p, size_t key, size_t keys) {
  const struct kernel_tile *t = a->t;
  const size_t width = panel_width(p);
  for (size_t v = 0; v < p->vectors; v++) {
    float flag[LANES * KERNEL_KEYS];
    const size_t count = rows_of_vector(p, v);
    for (size_t i = 0; i < count; i++) {
      const uint8_t *row = t->mask + (p->first + v * LANES + i) * t->mask_row + key;
      for (size_t r = 0; r < keys; r++) flag[i * KERNEL_KEYS + r] = row[r];
    }
    turn(flag, KERNEL_KEYS, count, keys, 1.0f, a->extra + v * LANES, width);
    for (size_t r = 0; r < keys; r++) {
      float *s = a->scores + r * width + v * LANES;
      const ivec seen = vec_load(a->extra + r * width + v * LANES) != vec_all(0);
      vec_store(s, vec_choose(seen, vec_load(s), vec_all(-INFINITY)));
    }
  }
}

/* Scores of a block for a panel, hidden ones -infinity. False if a visible one is not finite. */
static bool score_block(const struct attend *a, const struct panel *p, size_t key, size_t keys) {
  const struct kernel_tile *t = a->t;
  if (t->vector)
    additive_scores(a, p, key, keys);
  else
    dot_scores(a, p, key, keys);
  if (t->bias) add_bias(a, p, key, keys);
  if (t->relative) add_relative(a, p, key, keys);
  if (t->careful) mark_not_finite(a, p, keys);
  if ((int32_t)key < p->all_from || (int32_t)(key + keys) > p->all_to)
    hide_by_range(a, p, key, keys);
  if (t->mask) hide_by_mask(a, p, key, keys);
  return !t->careful || !some_is_marked(a, p, keys);
}
