/* kernel_soft: scores become weights, and rows are summed by them.
 *
 * A part of kernel_loops.h.
 *
 * The softmax is online: each lane keeps its greatest score so far and the sum of its exponentials.
 * The sums are rescaled only if a lane's maximum has grown by more than slack, and per lane, so
 * that a query's bits do not depend on the other queries. */

static const float slack = 5.5f; /* e^slack times a float32 sum is far below the float32 limit */

/* sum += x; the rounding error is added to `lost`. */
INLINE void add_up(float *sum, float *lost, vec x) {
  const vec before = vec_load(sum);
  const vec after = before + x;
  const vec part = after - before;
  vec_store(sum, after);
  vec_store(lost, vec_load(lost) + ((before - (after - part)) + (x - part)));
}

/* Raises the top of each lane whose greatest score, never less than the top, has grown by more than
 * slack, and rescales its sums. True if contexts must be rescaled, too: by `keep`. */
INLINE bool raise_lanes(struct panel *p, size_t at, vec greatest, vec *keep) {
  const vec old = vec_load(p->top + at);
  const ivec grown = greatest > old + vec_all(slack);
  if (!vec_any(grown)) return false;
  vec_store(p->top + at, vec_choose(grown, greatest, old));
  if (!p->started) return false;
  *keep = vec_choose(grown, vec_exp(old - greatest), vec_all(1.0f));
  vec_store(p->sum + at, vec_load(p->sum + at) * *keep);
  vec_store(p->lost + at, vec_load(p->lost + at) * *keep);
  return true;
}

/* Updates the tops with the block's greatest scores; rescales the sums so far. */
INLINE void raise_tops(const struct attend *a, struct panel *p, size_t keys, const int vectors) {
  const size_t width = (size_t)vectors * LANES;
  vec top[VECTORS], keep;
#pragma GCC unroll 4
  for (int v = 0; v < vectors; v++) top[v] = vec_load(p->top + v * LANES);
  for (size_t r = 0; r < keys; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
      top[v] = vec_max(vec_load(a->scores + r * width + v * LANES), top[v]);
  for (int v = 0; v < vectors; v++) {
    if (!raise_lanes(p, (size_t)v * LANES, top[v], &keep)) continue;
    for (size_t g = 0; g < p->gathers; g++)
      for (size_t x = 0; x < p->gather[g].columns; x++) {
        float *c = p->gather[g].sum + x * width + v * LANES;
        vec_store(c, vec_load(c) * keep);
      }
  }
}

/* Prefetches a key and its value. */
static void ask_for_key(const struct kernel_tile *t, size_t key) {
  for (size_t x = 0; x < t->head_size; x += LINE)
    __builtin_prefetch(t->key + key * t->key_row + x, 0, 2);
  for (size_t x = 0; x < t->value_head_size; x += LINE)
    __builtin_prefetch(t->value + key * t->value_row + x, 0, 2);
}

/* scores := e^(scores - top). The exponentials are summed per lane: within the block, then to the
 * sum so far, with compensation. `ask`: prefetch the next block, while nothing else is read. */
INLINE void exponentials(const struct attend *a, struct panel *p, size_t keys, const int vectors,
                         const bool ask) {
  const size_t width = (size_t)vectors * LANES;
  vec top[VECTORS], sum[VECTORS];
#pragma GCC unroll 4
  for (int v = 0; v < vectors; v++) {
    top[v] = vec_load(p->top + v * LANES);
    sum[v] = vec_all(0);
  }
  for (size_t r = 0; r < keys; r++) {
    if (ask) ask_for_key(a->t, a->next + r);
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) {
      float *s = a->scores + r * width + v * LANES;
      const vec e = vec_exp(vec_load(s) - top[v]);
      sum[v] += e;
      vec_store(s, e);
    }
  }
  for (int v = 0; v < vectors; v++) add_up(p->sum + v * LANES, p->lost + v * LANES, sum[v]);
}

INLINE void soften_vectors(const struct attend *a, struct panel *p, size_t keys,
                           const int vectors) {
  raise_tops(a, p, keys, vectors);
  if (a->next)
    exponentials(a, p, keys, vectors, true);
  else
    exponentials(a, p, keys, vectors, false);
}

static void soften(const struct attend *a, struct panel *p, size_t keys) {
  switch (p->vectors) { /* the constant lets the compiler keep the lanes in registers */
  case 1:
    soften_vectors(a, p, keys, 1);
    break;
  case 2:
    soften_vectors(a, p, keys, 2);
    break;
#if VECTORS == 4
  case 3:
    soften_vectors(a, p, keys, 3);
    break;
  case 4:
    soften_vectors(a, p, keys, 4);
    break;
#endif
  default:
    __builtin_unreachable();
  }
}

/* scores := 1 / (1 + e^-scores), without sums and rescaling. */
static void squash(const struct attend *a, struct panel *p, size_t keys) {
  for (size_t i = 0; i < keys * panel_width(p); i += LANES)
    vec_store(a->scores + i, vec_sigmoid(vec_load(a->scores + i)));
}

/* Returns the weights of a block, scaled down. */
static const float *shrink_weights(const struct attend *a, const struct panel *p,
                                   const float *shrink, size_t keys) {
  const size_t width = panel_width(p);
  for (size_t at = 0; at < width; at += LANES)
    for (size_t r = at; r < keys * width; r += width)
      vec_store(a->extra + r, vec_load(a->scores + r) * vec_load(shrink + at));
  return a->extra;
}

/* The first row of a block. Rows in several places are values. */
static const float *gathered_at(const struct attend *a, const struct panel_gather *g, size_t key) {
  return a->t->blocks ? value_at(a->t, key) : g->row + key * g->step;
}

/* Adds the block's rows, multiplied by their weights. */
static void gather_block(const struct attend *a, struct panel *p, size_t key, size_t keys) {
  const size_t width = panel_width(p);
  for (size_t i = 0; i < p->gathers; i++) {
    const struct panel_gather *g = &p->gather[i];
    product(
        &(struct kernel_product){.rows = g->columns,
                                 .depth = keys,
                                 .vectors = p->vectors,
                                 .a = gathered_at(a, g, key),
                                 .a_row = 1,
                                 .a_step = g->step,
                                 .b = g->shrink ? shrink_weights(a, p, g->shrink, keys) : a->scores,
                                 .b_row = width,
                                 .start = p->started ? g->sum : no_sums,
                                 .start_row = p->started ? width : 0,
                                 .c = g->sum,
                                 .c_row = width});
  }
  p->started = true;
}

static void gather_values(struct panel *p, const struct kernel_tile *t) {
  p->gathers = 1;
  p->gather[0] =
      (struct panel_gather){t->value, t->value_row, t->value_head_size, p->context, NULL};
}

/* 1 / sum per lane, 0 if all keys are masked. */
INLINE vec inverse_sum(const float *sum, const float *lost) {
  const vec whole = vec_load(sum) + vec_load(lost);
  const ivec seen = whole > vec_all(0);
  return vec_choose(seen, vec_all(1.0f) / vec_choose(seen, whole, vec_all(1.0f)), vec_all(0));
}

/* The sums become factors of the weights; 1 with sigmoids. */
static void sums_to_factors(const struct kernel_tile *t, struct panel *p) {
  for (size_t at = 0; at < panel_width(p); at += LANES)
    vec_store(p->sum + at, t->sigmoid ? vec_all(1.0f) : inverse_sum(p->sum + at, p->lost + at));
}

/* Returns whether scores are stored in the place of the weights until the second pass: an additive
 * score costs far more than a load. Only if each head has its own weights. */
static bool scores_are_kept(const struct kernel_tile *t) {
  return t->vector && t->weights && !t->weights_add && t->weights_factor == 1.0f && !t->segment_end;
}

static void keep_scores(const struct attend *a, const struct panel *p, size_t key, size_t keys) {
  const struct kernel_tile *t = a->t;
  for (size_t v = 0; v < p->vectors; v++)
    turn_back(a->scores + v * LANES, panel_width(p), keys, vec_all(1.0f),
              t->weights + (p->first + v * LANES) * t->weights_row + key, t->weights_row,
              rows_of_vector(p, v), false);
}

static void recall_scores(const struct attend *a, const struct panel *p, size_t key, size_t keys) {
  const struct kernel_tile *t = a->t;
  for (size_t v = 0; v < p->vectors; v++)
    turn(t->weights + (p->first + v * LANES) * t->weights_row + key, t->weights_row,
         rows_of_vector(p, v), keys, 1, a->scores + v * LANES, panel_width(p));
}

/* Computes the weights of a block, once the tops are known; `factor` is [width]. */
static void weigh(const struct attend *a, const struct panel *p, const float *factor, size_t key,
                  size_t keys) {
  const size_t width = panel_width(p);
  if (scores_are_kept(a->t))
    recall_scores(a, p, key, keys);
  else
    score_block(a, p, key, keys);
  for (size_t at = 0; at < width; at += LANES) {
    const vec top = vec_load(p->top + at), by = vec_load(factor + at);
    for (size_t r = 0; r < keys; r++) {
      float *s = a->scores + r * width + at;
      const vec score = vec_load(s);
      vec_store(s, (a->t->sigmoid ? vec_sigmoid(score) : vec_exp(score - top)) * by);
    }
  }
}

/* --- results --- */

static void clear_weights(const struct kernel_tile *t, const struct panel *p, size_t key,
                          size_t keys) {
  if (t->weights_add) return;
  for (size_t i = 0; i < p->count; i++)
    memset(t->weights + (p->first + i) * t->weights_row + key, 0, keys * sizeof(float));
}

/* Writes the weights of a block to the tile's. */
static void write_weight_block(const struct attend *a, const struct panel *p, const float *factor,
                               size_t key, size_t keys) {
  const struct kernel_tile *t = a->t;
  if (!panel_sees(p, key, keys)) {
    clear_weights(t, p, key, keys);
    return;
  }
  weigh(a, p, factor, key, keys);
  for (size_t v = 0; v < p->vectors; v++)
    turn_back(a->scores + v * LANES, panel_width(p), keys, vec_all(t->weights_factor),
              t->weights + (p->first + v * LANES) * t->weights_row + key, t->weights_row,
              rows_of_vector(p, v), t->weights_add);
}

/* Writes the contexts: the sums `from` [value_head_size, width] times `factor` [width]. */
static void write_context(const struct kernel_tile *t, const struct panel *p, const float *from,
                          const float *factor) {
  for (size_t i = 0; i < p->count && !p->started; i++)
    memset(t->context + (p->first + i) * t->context_row, 0, t->value_head_size * sizeof(float));
  for (size_t v = 0; p->started && v < p->vectors; v++) {
    const float *shrink = p->gather[0].shrink;
    vec by = vec_load(factor + v * LANES) * vec_all(t->context_factor);
    if (shrink) by /= vec_load(shrink + v * LANES);
    turn_back(from + v * LANES, panel_width(p), t->value_head_size, by,
              t->context + (p->first + v * LANES) * t->context_row, t->context_row,
              rows_of_vector(p, v), false);
  }
}

static void keep_normalisers(const struct kernel_tile *t, const struct panel *p, const float *top,
                             const float *factor) {
  if (t->top) memcpy(t->top + p->first, top, p->count * sizeof(float));
  if (t->factor) memcpy(t->factor + p->first, factor, p->count * sizeof(float));
}
