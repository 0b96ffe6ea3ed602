/* kernel_few: attention of a tile of few queries, with keys in the lanes, then the numbers of
 * values.
 *
 * A part of kernel_loops.h.
 *
 * With queries in the lanes, one query leaves all lanes but one idle. Here the scores of a block
 * are computed with its keys in the lanes, and the context with the numbers of a value. Both are
 * the same chains of multiply-adds as in a panel, over the numbers of a head and over the keys, and
 * the exponentials of a block are added in the same order. So a query has the same bits either way;
 * the faster way is taken. The state of the queries is a panel's, except for two arrays: `query` is
 * [count, head_size], `context` [count, value_head_size]. */

/* Returns whether this way is faster, counting multiplications times LANES. */
static bool attend_as_few(const struct kernel_tile *t) {
  const size_t q = t->queries, d = t->head_size, d_v = t->value_head_size;
  const size_t keys = (t->keys + LANES - 1) / LANES * LANES; /* in whole vectors */
  const size_t padded = (d_v + LANES - 1) / LANES * LANES;
  const size_t step = t->vector ? 28 : 1;
  const size_t rows = keys - (t->turned < keys ? t->turned : keys); /* that are to be turned */
  if (t->segment_end || t->select != SELECT_SOFT || q >= LANES) return false;
  if (t->disentangled.row) return false; /* position keys and queries are for panels */
  return keys * d * q * step + rows * d * 2 + q * t->keys * (padded + 3 * LANES) <
         LANES * t->keys * (d * step + d_v);
}

struct few {
  const struct attend *a;
  struct panel *p;
  float *part; /* [LANES] sum of a block's exponentials, for each query */
};

static bool few_sees(const struct few *f, size_t i, size_t key, size_t keys) {
  const int32_t from = f->p->from[i], to = f->p->to[i];
  return from < to && (int32_t)key < to && (int32_t)(key + keys) > from;
}

static float *few_row(const struct few *f, size_t i) { return f->a->scores + i * KERNEL_KEYS; }

/* --- scores --- */

/* Lanes with all bits set for the mask's bytes that are not zero. */
INLINE ivec flags_some(const uint8_t *mask, size_t n) {
  uint8_t flag[LANES] = {0};
  ivec flags = ivec_all(0);
  memcpy(flag, mask, n < LANES ? n : LANES);
  for (int i = 0; i < LANES; i++) flags[i] = flag[i];
  return flags != ivec_all(0);
}

/* Caps scores and adds biases; the scores of keys that are masked for query `i` become -infinity.
 * False if the score of a visible key exceeds the float32 range. */
static bool finish_scores(const struct few *f, size_t i, size_t key, size_t keys) {
  const struct kernel_tile *t = f->a->t;
  const vec hidden = vec_all(-INFINITY);
  for (size_t r = 0; r < keys; r += LANES) {
    float *s = few_row(f, i) + r;
    const ivec j = ivec_all((int32_t)(key + r)) + lane_numbers();
    ivec seen = (j >= ivec_all(t->from[i])) & (j < ivec_all(t->to[i]));
    vec score = vec_load(s);
    if (t->cap > 0) score = vec_cap(score, vec_all(t->cap), vec_all(1 / t->cap));
    if (t->bias) score += vec_load_some(t->bias + i * t->bias_row + key + r, keys - r);
    if (t->relative) score += vec_load_some(t->relative + key + r - i, keys - r);
    if (t->mask) seen &= flags_some(t->mask + i * t->mask_row + key + r, keys - r);
    if (t->careful && vec_any(seen & ((score - score) != vec_all(0)))) return false;
    vec_store(s, vec_choose(seen, score, hidden));
  }
  return true;
}

/* Computes the scores of all queries; those of queries with no visible key in the block are
 * undefined. */
static bool few_scores(const struct few *f, size_t key, size_t keys) {
  scores_by_key(f->a, key, keys,
                (struct kernel_product){.rows = f->p->count,
                                        .a = f->p->query,
                                        .a_row = f->a->t->head_size,
                                        .a_step = 1,
                                        .c = f->a->scores});
  for (size_t i = 0; i < f->p->count; i++)
    if (few_sees(f, i, key, keys) && !finish_scores(f, i, key, keys)) return false;
  return true;
}

/* Like keep_scores and recall_scores. */
static void few_keep_scores(const struct few *f, size_t i, size_t key, size_t keys) {
  memcpy(f->a->t->weights + i * f->a->t->weights_row + key, few_row(f, i), keys * sizeof(float));
}

/* Lanes past the last key hold -infinity, like masked keys. */
static void few_recall_scores(const struct few *f, size_t key, size_t keys) {
  const struct kernel_tile *t = f->a->t;
  for (size_t i = 0; i < f->p->count; i++) {
    float *s = few_row(f, i);
    memcpy(s, t->weights + i * t->weights_row + key, keys * sizeof *s);
    for (size_t r = keys; r % LANES != 0; r++) s[r] = -INFINITY;
  }
}

/* --- weights --- */

/* Returns the greatest score of the block; updates the first key with the greatest score of all. */
static float few_greatest(const struct few *f, size_t i, size_t key, size_t keys) {
  const struct kernel_tile *t = f->a->t;
  const float *s = few_row(f, i);
  vec most = vec_load(s);
  for (size_t r = LANES; r < keys; r += LANES) most = vec_max(vec_load(s + r), most);
  const float greatest = vec_greatest(most);
  if ((t->pointers || t->greatest) && greatest > f->p->best[i]) {
    size_t r = 0;
    while (s[r] != greatest) r++;
    f->p->best[i] = greatest;
    f->p->chosen[i] = (int32_t)(key + r);
  }
  return greatest;
}

static void few_rescale(const struct few *f, size_t i, float by) {
  const size_t d_v = f->a->t->value_head_size;
  float *c = f->p->context + i * d_v;
  for (size_t x = 0; x < d_v; x += LANES)
    vec_store_some(c + x, vec_load_some(c + x, d_v - x) * vec_all(by), d_v - x);
}

/* Updates the tops with the block's greatest scores, like raise_tops. */
static void few_raise_tops(const struct few *f, size_t key, size_t keys) {
  float greatest[LANES], by[LANES];
  vec keep;
  for (size_t i = 0; i < LANES; i++) {
    const bool seen = i < f->p->count && few_sees(f, i, key, keys);
    greatest[i] = seen ? few_greatest(f, i, key, keys) : -INFINITY;
  }
  const vec top = vec_max(vec_load(greatest), vec_load(f->p->top));
  if (f->a->t->sigmoid || !raise_lanes(f->p, 0, top, &keep)) return;
  vec_store(by, keep);
  for (size_t i = 0; i < f->p->count; i++)
    if (by[i] != 1.0f) few_rescale(f, i, by[i]);
}

/* Scores become weights before the division by their sum; 0 if the block is masked. */
static void few_soften(const struct few *f, size_t i, size_t key, size_t keys) {
  const vec top = vec_all(f->p->top[i]);
  float *s = few_row(f, i);
  if (!few_sees(f, i, key, keys))
    memset(s, 0, KERNEL_KEYS * sizeof *s);
  else if (f->a->t->sigmoid)
    for (size_t r = 0; r < keys; r += LANES) vec_store(s + r, vec_sigmoid(vec_load(s + r)));
  else
    for (size_t r = 0; r < keys; r += LANES) vec_store(s + r, vec_exp(vec_load(s + r) - top));
}

/* --- values --- */

/* Columns of some queries' contexts, from query `i` and column `x` on, over a block of keys. */
struct few_columns {
  const struct few *f;
  size_t key, keys, i, x;
};

/* Sums `vectors` vectors of columns for `count` queries; or the first `n` columns of one vector.
 * Also sums the exponentials: that takes no longer than the columns. */
INLINE void gather_columns(const struct few_columns *g, const int count, const int vectors,
                           const size_t n) {
  const struct kernel_tile *t = g->f->a->t;
  const size_t d_v = t->value_head_size, ahead = rows_ahead(d_v) * t->value_row;
  const float *weight = few_row(g->f, g->i), *value = value_at(t, g->key) + g->x;
  float *context = g->f->p->context + g->i * d_v + g->x;
  vec sum[16], part[4];
#pragma GCC unroll 4
  for (int i = 0; i < count; i++) {
    part[i] = vec_all(0);
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++) {
      const float *c = context + (size_t)i * d_v + (size_t)v * LANES;
      sum[i * vectors + v] = n < LANES ? vec_load_some(c, n) : vec_load(c);
    }
  }
  for (size_t r = 0; r < g->keys; r++, value += t->value_row) {
    vec by[4];
#pragma GCC unroll 4
    for (int i = 0; i < count; i++) {
      by[i] = vec_all(weight[(size_t)i * KERNEL_KEYS + r]);
      part[i] += by[i];
    }
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++) {
      const float *at = value + (size_t)v * LANES;
      const vec column = n < LANES ? vec_load_some(at, n) : vec_load(at);
      if (v * LANES % LINE == 0) __builtin_prefetch(at + ahead, 0, 2);
#pragma GCC unroll 4
      for (int i = 0; i < count; i++)
        sum[i * vectors + v] = vec_fma(by[i], column, sum[i * vectors + v]);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < count; i++) {
    g->f->part[g->i + (size_t)i] = part[i][0];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++) {
      float *c = context + (size_t)i * d_v + (size_t)v * LANES;
      if (n < LANES)
        vec_store_some(c, sum[i * vectors + v], n);
      else
        vec_store(c, sum[i * vectors + v]);
    }
  }
}

/* How many queries fit in the registers. */
#if LANES == 16
enum { SIDE_BY_SIDE = 4 };
#else
enum { SIDE_BY_SIDE = 2 };
#endif

typedef void gather_fn(const struct few_columns *g);

#define GATHER(count, vectors)                                          \
  static void gather_##count##x##vectors(const struct few_columns *g) { \
    gather_columns(g, count, vectors, LANES);                           \
  }
GATHER(1, 1)
GATHER(1, 2)
GATHER(1, 4)
GATHER(1, 8)
GATHER(2, 1)
GATHER(2, 2)
GATHER(2, 4)
#if LANES == 16
GATHER(3, 1)
GATHER(3, 2)
GATHER(3, 4)
GATHER(4, 1)
GATHER(4, 2)
GATHER(4, 4)
#endif

static gather_fn *const gather_of[SIDE_BY_SIDE][4] = {
    {gather_1x1, gather_1x2, gather_1x4, gather_1x8},
    {gather_2x1, gather_2x2, gather_2x4, NULL},
#if LANES == 16
    {gather_3x1, gather_3x2, gather_3x4, NULL},
    {gather_4x1, gather_4x2, gather_4x4, NULL},
#endif
};

#undef GATHER

/* The last columns, fewer than a vector, possibly none. */
static void gather_rest(const struct few_columns *g, size_t count, size_t n) {
  switch (count) {
  case 1:
    gather_columns(g, 1, 1, n);
    break;
  case 2:
    gather_columns(g, 2, 1, n);
    break;
#if LANES == 16
  case 3:
    gather_columns(g, 3, 1, n);
    break;
  case 4:
    gather_columns(g, 4, 1, n);
    break;
#endif
  default:
    __builtin_unreachable();
  }
}

static void few_gather(struct few *f, size_t key, size_t keys) {
  const size_t d_v = f->a->t->value_head_size;
  struct few_columns g = {.f = f, .key = key, .keys = keys};
  for (size_t count; g.i < f->p->count; g.i += count) {
    count = f->p->count - g.i < SIDE_BY_SIDE ? f->p->count - g.i : SIDE_BY_SIDE;
    g.x = 0;
    while (d_v - g.x >= LANES) {
      size_t n = 3;
      while ((d_v - g.x) / LANES < (size_t)1 << n || !gather_of[count - 1][n]) n--;
      gather_of[count - 1][n](&g);
      g.x += LANES << n;
    }
    if (g.x < d_v || d_v == 0) gather_rest(&g, count, d_v - g.x);
  }
}

/* --- all blocks --- */

/* False if a score exceeds the float32 range. */
static bool few_block(struct few *f, size_t key, size_t keys) {
  const struct kernel_tile *t = f->a->t;
  struct panel *p = f->p;
  if (!few_scores(f, key, keys)) return false;
  for (size_t i = 0; scores_are_kept(t) && i < p->count; i++) few_keep_scores(f, i, key, keys);
  few_raise_tops(f, key, keys);
  for (size_t i = 0; i < p->count; i++) few_soften(f, i, key, keys);
  few_gather(f, key, keys);
  if (!t->sigmoid) add_up(p->sum, p->lost, vec_load(f->part));
  p->started = true;
  return true;
}

static bool few_is_finite(const struct few *f) {
  bool finite = true;
  for (size_t i = 0; i < f->p->count * f->a->t->value_head_size; i++)
    finite &= isfinite(f->p->context[i]) != 0;
  return finite;
}

static void few_write_context(const struct few *f, size_t i) {
  const struct kernel_tile *t = f->a->t;
  const size_t d_v = t->value_head_size;
  const vec by = vec_all(f->p->sum[i]) * vec_all(t->context_factor);
  for (size_t x = 0; x < d_v; x += LANES) {
    const vec sum = vec_load_some(f->p->context + i * d_v + x, d_v - x);
    vec_store_some(t->context + i * t->context_row + x, vec_fma(sum, by, vec_all(0)), d_v - x);
  }
}

/* The second pass: one query's weights of a block, whose scores are valid unless it is masked. */
static void few_weigh(const struct few *f, size_t i, size_t key, size_t keys) {
  const struct kernel_tile *t = f->a->t;
  const vec top = vec_all(f->p->top[i]), factor = vec_all(f->p->sum[i]);
  const bool seen = few_sees(f, i, key, keys);
  for (size_t r = 0; r < keys; r += LANES) {
    float *to = t->weights + i * t->weights_row + key + r;
    vec weight = vec_all(0);
    if (seen) {
      const vec score = vec_load(few_row(f, i) + r);
      weight = (t->sigmoid ? vec_sigmoid(score) : vec_exp(score - top)) * factor;
    }
    weight *= vec_all(t->weights_factor);
    if (t->weights_add) weight += vec_load_some(to, keys - r);
    vec_store_some(to, weight, keys - r);
  }
}

static void few_write_weights(const struct few *f) {
  const struct kernel_tile *t = f->a->t;
  for (size_t key = 0; key < t->keys; key += KERNEL_KEYS) {
    const size_t keys = block_keys(key, t->keys);
    if (panel_sees(f->p, key, keys)) {
      if (scores_are_kept(t))
        few_recall_scores(f, key, keys);
      else
        few_scores(f, key, keys);
    }
    for (size_t i = 0; i < f->p->count; i++) few_weigh(f, i, key, keys);
  }
}

static void few_close(const struct few *f) {
  const struct kernel_tile *t = f->a->t;
  struct panel *p = f->p;
  if (t->pointers) write_pointers(t, p);
  sums_to_factors(t, p);
  keep_normalisers(t, p, p->top, p->sum);
  if (t->greatest) keep_greatest(t, p);
  for (size_t i = 0; i < p->count; i++) few_write_context(f, i);
  if (t->weights) few_write_weights(f);
}

static void few_open(const struct few *f) {
  const struct kernel_tile *t = f->a->t;
  const size_t d = t->head_size;
  for (size_t i = 0; i < f->p->count; i++)
    for (size_t x = 0; x < d; x += LANES)
      vec_store_some(f->p->query + i * d + x,
                     vec_load_some(t->query + i * t->query_row + x, d - x) * vec_all(t->scale),
                     d - x);
  memset(f->p->context, 0, f->p->count * t->value_head_size * sizeof(float));
}

/* Heads go through the keys together: if keys and values are read in place, a row of one head is
 * followed by that of the next. False if a score exceeds the float32 range. */
static bool attend_few(size_t heads, struct attend *a) {
  float part[LANES] = {0};
  for (size_t h = 0; h < heads; h++) few_open(&(struct few){&a[h], &a[h].panel[0], part});
  for (size_t key = 0; key < a->t->keys; key += KERNEL_KEYS) {
    const size_t keys = block_keys(key, a->t->keys);
    for (size_t h = 0; h < heads; h++) {
      struct few f = {&a[h], &a[h].panel[0], part};
      if (panel_sees(f.p, key, keys) && !few_block(&f, key, keys)) return false;
    }
  }
  return true;
}

/* Writes the results of attend_few. False if a context exceeds the float32 range: then nothing is
 * written, and the panel is reset. */
static bool close_few(struct attend *a) {
  const struct few f = {a, &a->panel[0], NULL};
  if (!a->t->huge || few_is_finite(&f)) {
    few_close(&f);
    return true;
  }
  panel_clear(f.p);
  panel_choose_from(f.p, -INFINITY);
  return false;
}
