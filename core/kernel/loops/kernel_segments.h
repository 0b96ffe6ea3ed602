/* kernel_segments: attention on two levels: within each segment of the keys, then across segments.
 *
 * A part of kernel_loops.h.
 *
 * Attention over a segment's own keys, in the panel's sums, gives its mean key and its mean value
 * for each query. These enter an online softmax across the segments. The weight of a key is that of
 * its segment times its own within it: a second pass computes the segments again, with the same
 * bits. */

/* The second level, for one panel. */
struct segments {
  float *key;              /* [head_size, width] sum, then mean, of the current segment's keys */
  float *context;          /* [value_head_size, width] of the segments so far */
  float *top, *sum, *lost; /* [width] as in a panel */
  float *score;            /* [width] of the current segment; -infinity if all of it is masked */
  float shrink[PANEL];     /* factors of the weights of queries whose `key` overflowed, else 1 */
};

static size_t segments_floats(size_t head_size, size_t value_head_size) {
  return PANEL * (head_size + value_head_size + 4);
}

static struct segments segments_open(const struct kernel_tile *t, float *place) {
  struct segments l = {.key = place, .context = place + PANEL * t->head_size};
  l.top = l.context + PANEL * t->value_head_size;
  l.sum = l.top + PANEL;
  l.lost = l.sum + PANEL;
  l.score = l.lost + PANEL;
  return l;
}

/* Resets the sums. */
static void segments_clear(const struct kernel_tile *t, const struct panel *p, struct segments *l) {
  memset(l->context, 0, t->value_head_size * panel_width(p) * sizeof(float));
  memset(l->sum, 0, 2 * PANEL * sizeof(float));
  for (size_t i = 0; i < PANEL; i++) l->top[i] = -FLT_MAX;
}

/* --- one segment --- */

/* Computes the mean of the segment's keys, whose weights were multiplied by `shrink` if not NULL,
 * and its score. False if that exceeds the float32 range and is not masked. */
static bool score_segment(const struct attend *a, const struct panel *p, struct segments *l,
                          const float *shrink) {
  const struct kernel_tile *t = a->t;
  for (size_t v = 0; v < p->vectors; v++) {
    const size_t at = v * LANES;
    const vec factor = vec_load(p->sum + at);
    const vec by = shrink ? factor / vec_load(shrink + at) : factor;
    for (size_t x = 0; x < t->head_size; x++) {
      float *k = l->key + x * panel_width(p) + at;
      vec_store(k, vec_load(k) * by);
    }
    const ivec seen = factor > vec_all(0);
    const vec score = score_own_key(a, p, l->key, v);
    vec_store(l->score + at, vec_choose(seen, score, vec_all(-INFINITY)));
  }
  for (size_t i = 0; t->careful && i < p->count; i++)
    if (p->sum[i] > 0 && !isfinite(l->score[i])) return false;
  return true;
}

/* Computes attention over the keys from .. to - 1, without the segment's score. */
static bool weigh_keys(const struct attend *a, struct panel *p, size_t from, size_t to) {
  panel_clear(p);
  for (size_t key = from; key < to; key += KERNEL_KEYS) {
    const size_t keys = block_keys(key, to);
    if (!panel_sees(p, key, keys)) continue;
    if (!score_block(a, p, key, keys)) return false;
    soften(a, p, keys);
    gather_block(a, p, key, keys);
  }
  if (p->started) sums_to_factors(a->t, p);
  return true;
}

/* Computes attention over the keys from .. to - 1, which the last gather of the panel sums. Leaves
 * the factors of their weights in the panel's sums, and the segment's score. p->started is false if
 * all keys are masked for all queries of the panel. */
static bool attend_segment(const struct attend *a, struct panel *p, struct segments *l, size_t from,
                           size_t to) {
  struct panel_gather *mean = &p->gather[p->gathers - 1];
  const float *shrink = NULL;
  if (!weigh_keys(a, p, from, to)) return false;
  if (!p->started) return true;
  if (a->t->huge && find_shrinks(a->t, p, l->key, a->t->head_size, l->shrink)) {
    mean->shrink = shrink = l->shrink;
    weigh_keys(a, p, from, to);
    mean->shrink = NULL;
  }
  return score_segment(a, p, l, shrink);
}

/* Adds the segment's mean value, multiplied by the exponential of its score. */
static void add_segment(const struct kernel_tile *t, const struct panel *p, struct segments *l) {
  const size_t width = panel_width(p);
  for (size_t at = 0; at < width; at += LANES) {
    const vec score = vec_load(l->score + at), old = vec_load(l->top + at);
    const vec top = vec_max(score, old);
    const vec keep = vec_exp(old - top), add = vec_exp(score - top);
    vec_store(l->top + at, top);
    vec_store(l->sum + at, vec_load(l->sum + at) * keep);
    vec_store(l->lost + at, vec_load(l->lost + at) * keep);
    add_up(l->sum + at, l->lost + at, add);
    const vec by = add * vec_load(p->sum + at);
    for (size_t x = 0; x < t->value_head_size; x++) {
      float *c = l->context + x * width + at;
      vec_store(c, vec_fma(vec_load(p->context + x * width + at), by, vec_load(c) * keep));
    }
  }
}

/* The end of a segment: keys after the tile's are masked for all queries. */
static size_t segment_end(const struct kernel_tile *t, size_t segment) {
  const size_t end = (size_t)t->segment_end[segment];
  return end < t->keys ? end : t->keys;
}

/* --- all segments --- */

/* False if a score exceeds the float32 range. */
static bool gather_segments(const struct attend *a, struct panel *p, struct segments *l) {
  const struct kernel_tile *t = a->t;
  bool started = false;
  segments_clear(t, p, l);
  for (size_t s = 0, from = 0; s < t->segments && from < t->keys; s++) {
    const size_t to = segment_end(t, s);
    if (!attend_segment(a, p, l, from, to)) return false;
    if (p->started) add_segment(t, p, l);
    started |= p->started;
    from = to;
  }
  p->started = started;
  return true;
}

static bool attend_segments(const struct attend *a, struct panel *p, struct segments *l) {
  const struct kernel_tile *t = a->t;
  gather_values(p, t);
  p->gather[p->gathers++] = (struct panel_gather){t->key, t->key_row, t->head_size, l->key, NULL};
  if (!gather_segments(a, p, l)) return false;
  if (t->huge && p->started && find_shrinks(t, p, l->context, t->value_head_size, p->shrink)) {
    p->gather[0].shrink = p->shrink;
    gather_segments(a, p, l);
  }
  for (size_t at = 0; at < panel_width(p); at += LANES)
    vec_store(l->sum + at, inverse_sum(l->sum + at, l->lost + at));
  write_context(t, p, l->context, l->sum);
  keep_normalisers(t, p, l->top, l->sum);
  return true;
}

/* Multiplies the factors of the segment's keys by the segment's weight. */
static void weigh_segment(const struct kernel_tile *t, struct panel *p, const struct segments *l,
                          size_t segment) {
  for (size_t at = 0; at < panel_width(p); at += LANES) {
    const vec weight =
        vec_exp(vec_load(l->score + at) - vec_load(l->top + at)) * vec_load(l->sum + at);
    vec_store(l->score + at, weight);
    vec_store(p->sum + at, vec_load(p->sum + at) * weight);
  }
  if (!t->segment_weights) return;
  for (size_t i = 0; i < p->count; i++)
    t->segment_weights[(p->first + i) * t->segments + segment] = l->score[i];
}

static void clear_segment(const struct kernel_tile *t, const struct panel *p, size_t segment) {
  for (size_t i = 0; t->segment_weights && i < p->count; i++)
    t->segment_weights[(p->first + i) * t->segments + segment] = 0;
}

/* The second pass over one segment: its weights, and the greatest of them. */
static void write_segment(const struct attend *a, struct panel *p, struct segments *l,
                          size_t segment, size_t from, size_t to) {
  const struct kernel_tile *t = a->t;
  attend_segment(a, p, l, from, to);
  if (p->started)
    weigh_segment(t, p, l, segment);
  else
    clear_segment(t, p, segment);
  for (size_t key = from; key < to; key += KERNEL_KEYS) {
    const size_t keys = block_keys(key, to);
    if (t->weights) write_weight_block(a, p, p->sum, key, keys);
    if ((!t->pointers && !t->greatest) || !panel_sees(p, key, keys)) continue;
    if (!t->weights) weigh(a, p, p->sum, key, keys);
    find_heaviest(a, p, key, keys);
  }
}

static void write_segments(const struct attend *a, struct panel *p, struct segments *l) {
  const struct kernel_tile *t = a->t;
  p->gathers = 1;
  p->gather[0] = p->gather[1]; /* only the keys: the context is known */
  panel_choose_from(p, 0);
  for (size_t s = 0, from = 0; s < t->segments; s++) {
    const size_t to = segment_end(t, s);
    write_segment(a, p, l, s, from, to);
    from = to;
  }
  if (t->pointers) write_pointers(t, p);
  if (t->greatest) memcpy(t->greatest + p->first, p->best, p->count * sizeof(float));
}

static bool attend_by_segments(struct attend *a, float *place) {
  const struct kernel_tile *t = a->t;
  for (size_t i = 0; i < a->panels; i++) {
    struct panel *p = &a->panel[i];
    struct segments l = segments_open(t, place);
    if (!attend_segments(a, p, &l)) return false;
    if (t->weights || t->segment_weights || t->pointers || t->greatest) write_segments(a, p, &l);
  }
  return true;
}
