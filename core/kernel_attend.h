/* kernel_attend: attention of some queries of one head over an item's keys, block by block.
 *
 * Included by one kernel_<level>.c behind kernel_product.h.
 *
 * Queries lie in the lanes: a panel holds up to VECTORS * LANES of them, transposed once. For a
 * block of keys the scores are K Q^T, one row per key, so the softmax runs down the columns and
 * needs no sums across lanes; the context is gathered transposed, V^T P, and turned at the end.
 * Several panels share a block of keys while it is in cache. The softmax is online: each lane keeps
 * the greatest score seen so far and the sum of its exponentials. What has been gathered is
 * rescaled only when a lane's maximum has grown by more than SLACK, and per lane, so that a query's
 * bits do not depend on the queries beside it. */

enum { PANEL = VECTORS * LANES, GROUP_MAX = 4 };

#define SLACK 5.5f /* e^SLACK times a float32 sum stays far inside float32 */

/* The state of one panel: `vectors` vectors of queries. */
struct panel {
  size_t first, count; /* which queries of the tile */
  size_t vectors;
  int32_t some_from, some_to; /* keys that at least one query may see lie in here */
  int32_t all_from, all_to;   /* keys that every query may see, but for the mask */
  bool started;
  float *query;   /* [head_size, width], scaled */
  float *context; /* [value_head_size, width] */
  float *top;     /* [width] greatest score so far, or nearly */
  float *sum;     /* [width] of the exponentials; at the end one over it */
  float *lost;    /* [width] what rounding took from `sum` */
  int32_t *from, *to;
};

struct attend {
  const struct kernel_tile *t;
  struct panel panel[GROUP_MAX];
  size_t panels;
  float *scores; /* [KERNEL_KEYS, PANEL] */
  float *extra;  /* [KERNEL_KEYS, PANEL] bias or mask of a block, transposed */
};

/* --- the layout of the scratch --- */

static size_t panel_floats(size_t head_size, size_t value_head_size) {
  return PANEL * (head_size + value_head_size + 5);
}

/* As many panels as stay in about 256 KiB; at least one. */
static size_t attend_panels(size_t head_size, size_t value_head_size) {
  size_t fit = 65536 / panel_floats(head_size, value_head_size);
  return fit < 1 ? 1 : fit > GROUP_MAX ? GROUP_MAX : fit;
}

static size_t attend_queries(size_t head_size, size_t value_head_size) {
  return PANEL * attend_panels(head_size, value_head_size);
}

static size_t attend_scratch(size_t head_size, size_t value_head_size) {
  return attend_panels(head_size, value_head_size) * panel_floats(head_size, value_head_size) +
         2 * KERNEL_KEYS * PANEL;
}

/* --- turning rows into columns and back --- */

/* to[c][i] = factor from[i][c] for count <= LANES rows i; the lanes behind them become 0. */
INLINE void turn(const float *from, size_t from_row, size_t count, size_t columns, float factor,
                 float *to, size_t to_row) {
  for (size_t c = 0; c < columns; c += LANES) {
    const size_t n = columns - c < LANES ? columns - c : LANES;
    vec r[LANES];
#pragma GCC unroll 16
    for (size_t i = 0; i < LANES; i++)
      r[i] = i < count ? vec_load_some(from + i * from_row + c, n) * vec_all(factor) : vec_all(0);
    vec_transpose(r);
    if (n == LANES) {
#pragma GCC unroll 16
      for (size_t i = 0; i < LANES; i++) vec_store(to + (c + i) * to_row, r[i]);
    } else {
      for (size_t i = 0; i < n; i++) vec_store(to + (c + i) * to_row, r[i]);
    }
  }
}

/* to[i][r] (+)= factor[i] from[r][i] for count <= LANES columns i and `rows` rows r. */
INLINE void turn_back(const float *from, size_t from_row, size_t rows, vec factor, float *to,
                      size_t to_row, size_t count, bool add) {
  for (size_t c = 0; c < rows; c += LANES) {
    const size_t n = rows - c < LANES ? rows - c : LANES;
    vec r[LANES];
#pragma GCC unroll 16
    for (size_t i = 0; i < LANES; i++)
      r[i] = i < n ? vec_load(from + (c + i) * from_row) * factor : vec_all(0);
    vec_transpose(r);
    for (size_t i = 0; i < count; i++) {
      float *place = to + i * to_row + c;
      vec_store_some(place, add ? r[i] + vec_load_some(place, n) : r[i], n);
    }
  }
}

static size_t rows_of_vector(const struct panel *p, size_t vector) {
  const size_t first = vector * LANES;
  return p->count - first < LANES ? p->count - first : LANES;
}

/* --- one panel --- */

static void panel_ranges(struct panel *p, const struct kernel_tile *t) {
  p->some_from = INT32_MAX, p->some_to = 0;
  p->all_from = 0, p->all_to = INT32_MAX;
  for (size_t i = 0; i < p->vectors * LANES; i++) {
    const bool real = i < p->count;
    const int32_t from = real ? t->from[p->first + i] : 0, to = real ? t->to[p->first + i] : 0;
    p->from[i] = from, p->to[i] = to;
    if (!real) continue;
    if (from < to) {
      p->some_from = from < p->some_from ? from : p->some_from;
      p->some_to = to > p->some_to ? to : p->some_to;
    }
    p->all_from = from > p->all_from ? from : p->all_from;
    p->all_to = to < p->all_to ? to : p->all_to;
  }
}

static float *panel_open(struct panel *p, const struct kernel_tile *t, size_t first, float *place) {
  p->first = first;
  p->count = t->queries - first < PANEL ? t->queries - first : PANEL;
  p->vectors = (p->count + LANES - 1) / LANES;
  p->started = false;
  const size_t width = p->vectors * LANES;
  p->query = place;
  p->context = p->query + PANEL * t->head_size;
  p->top = p->context + PANEL * t->value_head_size;
  p->sum = p->top + PANEL;
  p->lost = p->sum + PANEL;
  p->from = (int32_t *)(p->lost + PANEL);
  p->to = p->from + PANEL;
  panel_ranges(p, t);
  for (size_t v = 0; v < p->vectors; v++)
    turn(t->query + (first + v * LANES) * t->query_row, t->query_row, rows_of_vector(p, v),
         t->head_size, t->scale, p->query + v * LANES, width);
  for (size_t v = 0; v < p->vectors; v++) {
    vec_store(p->top + v * LANES, vec_all(-FLT_MAX));
    vec_store(p->sum + v * LANES, vec_all(0));
    vec_store(p->lost + v * LANES, vec_all(0));
  }
  return place + panel_floats(t->head_size, t->value_head_size);
}

/* --- the scores of one block --- */

static void add_bias(const struct attend *a, const struct panel *p, size_t key, size_t keys) {
  const struct kernel_tile *t = a->t;
  const size_t width = p->vectors * LANES;
  for (size_t v = 0; v < p->vectors; v++) {
    turn(t->bias + (p->first + v * LANES) * t->bias_row + key, t->bias_row, rows_of_vector(p, v),
         keys, 1.0f, a->extra + v * LANES, width);
    for (size_t r = 0; r < keys; r++) {
      float *s = a->scores + r * width + v * LANES;
      vec_store(s, vec_load(s) + vec_load(a->extra + r * width + v * LANES));
    }
  }
}

/* Is every score that a query may see a finite number? Looked at one by one, before hiding. */
static bool scores_finite(const struct attend *a, const struct panel *p, size_t key, size_t keys) {
  const struct kernel_tile *t = a->t;
  const size_t width = p->vectors * LANES;
  for (size_t i = 0; i < p->count; i++)
    for (size_t r = 0; r < keys; r++) {
      const size_t j = key + r;
      if ((int32_t)j < p->from[i] || (int32_t)j >= p->to[i]) continue;
      if (t->mask && !t->mask[(p->first + i) * t->mask_row + j]) continue;
      if (!isfinite(a->scores[r * width + i])) return false;
    }
  return true;
}

static void hide_by_range(const struct attend *a, const struct panel *p, size_t key, size_t keys) {
  const size_t width = p->vectors * LANES;
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
  const size_t width = p->vectors * LANES;
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
  static const float zero[KERNEL_PANEL_MAX] = {0};
  const size_t width = p->vectors * LANES;
  product(&(struct kernel_product){.rows = keys,
                                   .depth = t->head_size,
                                   .vectors = p->vectors,
                                   .a = t->key + key * t->key_row,
                                   .a_row = t->key_row,
                                   .a_step = 1,
                                   .b = p->query,
                                   .b_row = width,
                                   .start = zero,
                                   .c = a->scores,
                                   .c_row = width});
  if (t->bias) add_bias(a, p, key, keys);
  if (t->careful && !scores_finite(a, p, key, keys)) return false;
  if ((int32_t)key < p->all_from || (int32_t)(key + keys) > p->all_to)
    hide_by_range(a, p, key, keys);
  if (t->mask) hide_by_mask(a, p, key, keys);
  return true;
}

/* --- softmax and context --- */

/* Takes the block's greatest scores into account; rescales what lanes have gathered so far. */
INLINE void raise_tops(const struct attend *a, struct panel *p, size_t keys, const int vectors) {
  const size_t width = (size_t)vectors * LANES;
  vec top[VECTORS], old[VECTORS];
#pragma GCC unroll 4
  for (int v = 0; v < vectors; v++) top[v] = old[v] = vec_load(p->top + v * LANES);
  for (size_t r = 0; r < keys; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
      top[v] = vec_max(vec_load(a->scores + r * width + v * LANES), top[v]);
  for (int v = 0; v < vectors; v++) {
    const ivec grown = top[v] > old[v] + vec_all(SLACK);
    if (!vec_any(grown)) continue;
    vec_store(p->top + v * LANES, vec_choose(grown, top[v], old[v]));
    if (!p->started) continue;
    const vec shrink = vec_choose(grown, vec_exp(old[v] - top[v]), vec_all(1.0f));
    vec_store(p->sum + v * LANES, vec_load(p->sum + v * LANES) * shrink);
    vec_store(p->lost + v * LANES, vec_load(p->lost + v * LANES) * shrink);
    for (size_t x = 0; x < a->t->value_head_size; x++) {
      float *c = p->context + x * width + v * LANES;
      vec_store(c, vec_load(c) * shrink);
    }
  }
}

/* scores := shrink e^(scores - top); the exponentials are summed per lane: within the block, then
 * to what was there, keeping what that addition rounds away. */
INLINE void exponentials(const struct attend *a, struct panel *p, size_t keys, const int vectors) {
  const size_t width = (size_t)vectors * LANES;
  const vec shrink = vec_all(a->t->shrink);
  vec top[VECTORS], sum[VECTORS];
#pragma GCC unroll 4
  for (int v = 0; v < vectors; v++) {
    top[v] = vec_load(p->top + v * LANES);
    sum[v] = vec_all(0);
  }
  for (size_t r = 0; r < keys; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) {
      float *s = a->scores + r * width + v * LANES;
      const vec e = vec_exp(vec_load(s) - top[v]);
      sum[v] += e;
      vec_store(s, e * shrink);
    }
  for (int v = 0; v < vectors; v++) {
    const vec before = vec_load(p->sum + v * LANES);
    const vec after = before + sum[v];
    const vec part = after - before;
    const vec lost = (before - (after - part)) + (sum[v] - part);
    vec_store(p->sum + v * LANES, after);
    vec_store(p->lost + v * LANES, vec_load(p->lost + v * LANES) + lost);
  }
}

static void soften(const struct attend *a, struct panel *p, size_t keys) {
  switch (p->vectors) { /* the constant lets the compiler keep the lanes in registers */
  case 1:
    raise_tops(a, p, keys, 1), exponentials(a, p, keys, 1);
    break;
  case 2:
    raise_tops(a, p, keys, 2), exponentials(a, p, keys, 2);
    break;
#if VECTORS == 4
  case 3:
    raise_tops(a, p, keys, 3), exponentials(a, p, keys, 3);
    break;
  case 4:
    raise_tops(a, p, keys, 4), exponentials(a, p, keys, 4);
    break;
#endif
  default:
    __builtin_unreachable();
  }
}

static void gather_context(const struct attend *a, struct panel *p, size_t key, size_t keys) {
  const struct kernel_tile *t = a->t;
  static const float zero[KERNEL_PANEL_MAX] = {0};
  const size_t width = p->vectors * LANES;
  product(&(struct kernel_product){.rows = t->value_head_size,
                                   .depth = keys,
                                   .vectors = p->vectors,
                                   .a = t->value + key * t->value_row,
                                   .a_row = 1,
                                   .a_step = t->value_row,
                                   .b = a->scores,
                                   .b_row = width,
                                   .start = p->started ? p->context : zero,
                                   .start_row = p->started ? width : 0,
                                   .c = p->context,
                                   .c_row = width});
  p->started = true;
}

static bool panel_sees(const struct panel *p, size_t key, size_t keys) {
  return (int32_t)key < p->some_to && (int32_t)(key + keys) > p->some_from;
}

/* 1 / sum per lane, 0 where nothing was seen. */
INLINE vec inverse_sum(const struct panel *p, size_t v) {
  const vec sum = vec_load(p->sum + v * LANES) + vec_load(p->lost + v * LANES);
  const ivec seen = sum > vec_all(0);
  return vec_choose(seen, vec_all(1.0f) / vec_choose(seen, sum, vec_all(1.0f)), vec_all(0));
}

/* The sums become the factors of the weights. */
static void panel_close(const struct attend *a, struct panel *p) {
  const struct kernel_tile *t = a->t;
  const size_t width = p->vectors * LANES;
  for (size_t v = 0; v < p->vectors; v++) vec_store(p->sum + v * LANES, inverse_sum(p, v));
  if (t->top) memcpy(t->top + p->first, p->top, p->count * sizeof(float));
  if (t->factor) memcpy(t->factor + p->first, p->sum, p->count * sizeof(float));
  for (size_t i = 0; i < p->count && !p->started; i++)
    memset(t->context + (p->first + i) * t->context_row, 0, t->value_head_size * sizeof(float));
  if (!p->started) return;
  for (size_t v = 0; v < p->vectors; v++)
    turn_back(p->context + v * LANES, width, t->value_head_size,
              vec_load(p->sum + v * LANES) * vec_all(t->context_factor / t->shrink),
              t->context + (p->first + v * LANES) * t->context_row, t->context_row,
              rows_of_vector(p, v), false);
}

/* --- the weights, in a second pass --- */

static void clear_weights(const struct attend *a, const struct panel *p, size_t key, size_t keys) {
  const struct kernel_tile *t = a->t;
  if (t->weights_add) return;
  for (size_t i = 0; i < p->count; i++)
    memset(t->weights + (p->first + i) * t->weights_row + key, 0, keys * sizeof(float));
}

/* The scores of a block become weights; `factor` is [width]. */
static void weigh(const struct attend *a, const struct panel *p, const float *factor, size_t key,
                  size_t keys) {
  const size_t width = p->vectors * LANES;
  score_block(a, p, key, keys);
  for (size_t v = 0; v < p->vectors; v++) {
    const vec top = vec_load(p->top + v * LANES), by = vec_load(factor + v * LANES);
    for (size_t r = 0; r < keys; r++) {
      float *s = a->scores + r * width + v * LANES;
      vec_store(s, vec_exp(vec_load(s) - top) * by);
    }
  }
}

static void write_weights(const struct attend *a, const struct panel *p, size_t key, size_t keys) {
  const struct kernel_tile *t = a->t;
  for (size_t v = 0; v < p->vectors; v++)
    turn_back(a->scores + v * LANES, p->vectors * LANES, keys, vec_all(t->weights_factor),
              t->weights + (p->first + v * LANES) * t->weights_row + key, t->weights_row,
              rows_of_vector(p, v), t->weights_add);
}

static void weigh_block(const struct attend *a, const struct panel *p, size_t key, size_t keys) {
  if (panel_sees(p, key, keys)) {
    weigh(a, p, p->sum, key, keys);
    write_weights(a, p, key, keys);
  } else {
    clear_weights(a, p, key, keys);
  }
}

/* --- all of it --- */

static bool attend(const struct kernel_tile *t, float *scratch) {
  struct attend a = {.t = t, .scores = scratch, .extra = scratch + KERNEL_KEYS * PANEL};
  float *place = a.extra + KERNEL_KEYS * PANEL;
  for (size_t first = 0; first < t->queries; first += PANEL)
    place = panel_open(&a.panel[a.panels++], t, first, place);
  for (size_t key = 0; key < t->keys; key += KERNEL_KEYS) {
    const size_t keys = t->keys - key < KERNEL_KEYS ? t->keys - key : KERNEL_KEYS;
    for (size_t i = 0; i < a.panels; i++) {
      struct panel *p = &a.panel[i];
      if (!panel_sees(p, key, keys)) continue;
      if (!score_block(&a, p, key, keys)) return false;
      soften(&a, p, keys);
      gather_context(&a, p, key, keys);
    }
  }
  for (size_t i = 0; i < a.panels; i++) panel_close(&a, &a.panel[i]);
  if (!t->weights) return true;
  for (size_t key = 0; key < t->keys; key += KERNEL_KEYS)
    for (size_t i = 0; i < a.panels; i++)
      weigh_block(&a, &a.panel[i], key, t->keys - key < KERNEL_KEYS ? t->keys - key : KERNEL_KEYS);
  return true;
}

/* The bits of the greatest magnitude; copies on the way where `to` is not NULL. */
INLINE uint32_t greatest(size_t count, const float *from, float *to) {
  const ivec magnitude = ivec_all(0x7fffffff);
  ivec most = {0};
  for (size_t i = 0; i < count; i += LANES) {
    const size_t n = count - i < LANES ? count - i : LANES;
    const vec x = vec_load_some(from + i, n);
    if (to) vec_store_some(to + i, x, n);
    const ivec bits = (ivec)x & magnitude;
    const ivec greater = bits > most;
    most = (bits & greater) | (most & ~greater);
  }
  int32_t top = 0;
  for (int i = 0; i < LANES; i++) top = most[i] > top ? most[i] : top;
  return (uint32_t)top;
}

static uint32_t carry(size_t count, const float *from, float *to) {
  return greatest(count, from, to);
}

static uint32_t peak(size_t count, const float *x) { return greatest(count, x, NULL); }

static void exp_all(size_t count, const float *x, float *out) {
  for (size_t i = 0; i < count; i += LANES) {
    const size_t n = count - i < LANES ? count - i : LANES;
    vec_store_some(out + i, vec_exp(vec_load_some(x + i, n)), n);
  }
}

#define KERNEL_TABLE(name, lvl)                                   \
  const struct kernel name = {.level = (lvl),                     \
                              .lanes = LANES,                     \
                              .vectors = VECTORS,                 \
                              .product = product,                 \
                              .attend_queries = attend_queries,   \
                              .attend_scratch = attend_scratch,   \
                              .attend = attend,                   \
                              .carry = carry,                     \
                              .peak = peak,                       \
                              .exp = exp_all,                     \
                              .measure_queries = measure_queries, \
                              .measure_scratch = measure_scratch, \
                              .measure = measure,                 \
                              .dot = dot,                         \
                              .log = log_all}
