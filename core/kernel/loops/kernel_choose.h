/* kernel_choose: one key for each query: that with the greatest weight, or a sampled one.
 *
 * A part of kernel_loops.h. */

/* Updates the choice with the block's greatest scores (or weights); the first key on a tie. */
static void find_heaviest(const struct attend *a, struct panel *p, size_t key, size_t keys) {
  const size_t width = panel_width(p);
  for (size_t at = 0; at < width; at += LANES) {
    vec best = vec_load(p->best + at);
    ivec chosen;
    memcpy(&chosen, p->chosen + at, sizeof chosen);
    for (size_t r = 0; r < keys; r++) {
      const vec score = vec_load(a->scores + r * width + at);
      const ivec greater = score > best;
      best = vec_choose(greater, score, best);
      chosen = (ivec_all((int32_t)(key + r)) & greater) | (chosen & ~greater);
    }
    vec_store(p->best + at, best);
    memcpy(p->chosen + at, &chosen, sizeof chosen);
  }
}

/* The state of sampling, per lane: the target of the running sum of weights, the sum so far, and
 * its rounding error. */
struct choose_draw {
  float target[PANEL], passed[PANEL], lost[PANEL];
  int32_t last[PANEL]; /* the last key with a weight above 0 */
};

static void draw_begin(struct choose_draw *d, const struct panel *p, const float *chance) {
  memset(d, 0, sizeof *d);
  for (size_t i = 0; i < p->count; i++)
    d->target[i] = chance[p->first + i] * (p->sum[i] + p->lost[i]);
  for (size_t i = 0; i < PANEL; i++) d->last[i] = -1;
}

/* Chooses the first key at which the running sum exceeds the target. */
static void draw_block(const struct attend *a, struct panel *p, struct choose_draw *d, size_t key,
                       size_t keys) {
  const size_t width = panel_width(p);
  for (size_t at = 0; at < width; at += LANES) {
    const vec top = vec_load(p->top + at);
    const vec left = vec_load(d->target + at) - vec_load(d->passed + at) - vec_load(d->lost + at);
    ivec chosen, last;
    memcpy(&chosen, p->chosen + at, sizeof chosen);
    memcpy(&last, d->last + at, sizeof last);
    vec sum = vec_all(0);
    for (size_t r = 0; r < keys; r++) {
      const vec e = vec_exp(vec_load(a->scores + r * width + at) - top);
      const ivec j = ivec_all((int32_t)(key + r)), weighs = e > vec_all(0);
      sum += e;
      const ivec hit = (sum > left) & weighs & (chosen < ivec_all(0));
      chosen = (j & hit) | (chosen & ~hit);
      last = (j & weighs) | (last & ~weighs);
    }
    add_up(d->passed + at, d->lost + at, sum);
    memcpy(p->chosen + at, &chosen, sizeof chosen);
    memcpy(d->last + at, &last, sizeof last);
  }
}

/* Samples a key for each query of a panel whose sums are known. */
static void draw_keys(const struct attend *a, struct panel *p) {
  const struct kernel_tile *t = a->t;
  struct choose_draw d;
  draw_begin(&d, p, t->chance);
  for (size_t key = 0; key < t->keys; key += KERNEL_KEYS) {
    const size_t keys = block_keys(key, t->keys);
    if (!panel_sees(p, key, keys)) continue;
    score_block(a, p, key, keys);
    draw_block(a, p, &d, key, keys);
  }
  /* Rounding may leave the sum below the target. */
  for (size_t i = 0; i < p->count; i++)
    if (p->chosen[i] < 0) p->chosen[i] = d.last[i];
}

/* Writes the greatest weights, whose scores are known. */
static void keep_greatest(const struct kernel_tile *t, const struct panel *p) {
  for (size_t at = 0; at < panel_width(p); at += LANES) {
    const vec score = vec_load(p->best + at);
    const vec weight = t->sigmoid ? vec_sigmoid(score)
                                  : vec_exp(score - vec_load(p->top + at)) * vec_load(p->sum + at);
    const size_t left = p->count > at ? p->count - at : 0;
    vec_store_some(t->greatest + p->first + at, weight, left);
  }
}

/* The context is the chosen key's value, whose weight is 1. */
static void write_chosen(const struct kernel_tile *t, const struct panel *p) {
  for (size_t i = 0; i < p->count; i++) {
    const int32_t j = p->chosen[i];
    float *context = t->context + (p->first + i) * t->context_row;
    for (size_t x = 0; x < t->value_head_size; x++)
      context[x] = j < 0 ? 0 : t->value[(size_t)j * t->value_row + x] * t->context_factor;
    if (t->greatest) t->greatest[p->first + i] = j < 0 ? 0 : 1.0f;
    if (!t->weights) continue;
    float *weights = t->weights + (p->first + i) * t->weights_row;
    if (!t->weights_add) memset(weights, 0, t->keys * sizeof *weights);
    if (j >= 0) weights[j] += t->weights_factor;
  }
}

static void write_pointers(const struct kernel_tile *t, const struct panel *p) {
  memcpy(t->pointers + p->first, p->chosen, p->count * sizeof *p->chosen);
}
