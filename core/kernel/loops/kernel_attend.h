/* kernel_attend: attention of some queries of one head over an item's keys, block by block.
 *
 * A part of kernel_loops.h. Several panels share a block of keys while it is in cache. If weights
 * are requested, a second pass computes them: the outputs do not depend on them. */

/* Computes one block for one panel. False if a score exceeds the float32 range. */
static bool attend_block(const struct attend *a, struct panel *p, size_t key, size_t keys) {
  const struct kernel_tile *t = a->t;
  if (!score_block(a, p, key, keys)) return false;
  if (t->select == SELECT_HARD || ((t->pointers || t->greatest) && t->select == SELECT_SOFT))
    find_heaviest(a, p, key, keys);
  if (t->select == SELECT_HARD) return true;
  if (t->select == SELECT_SOFT && scores_are_kept(t)) keep_scores(a, p, key, keys);
  if (t->sigmoid)
    squash(a, p, keys);
  else
    soften(a, p, keys);
  gather_block(a, p, key, keys);
  return true;
}

/* Transposed blocks are read in place: the next one is prefetched in time. */
static bool attend_blocks(struct attend *a) {
  for (size_t key = 0; key < a->t->keys; key += KERNEL_KEYS) {
    const size_t keys = block_keys(key, a->t->keys);
    if (key < a->t->turned) a->next = key + KERNEL_KEYS;
    for (size_t i = 0; i < a->panels; i++) {
      if (!panel_sees(&a->panel[i], key, keys)) continue;
      if (!attend_block(a, &a->panel[i], key, keys)) return false;
      a->next = 0;
    }
  }
  a->next = 0;
  return true;
}

/* Computes again, with scaled-down weights, queries whose context overflowed. */
static void attend_shrunk(const struct attend *a, struct panel *p) {
  const struct kernel_tile *t = a->t;
  if (!p->started || !find_shrinks(t, p, p->context, t->value_head_size, p->shrink)) return;
  p->gather[0].shrink = p->shrink;
  panel_clear(p);
  panel_choose_from(p, -INFINITY);
  for (size_t key = 0; key < t->keys; key += KERNEL_KEYS) {
    const size_t keys = block_keys(key, t->keys);
    if (panel_sees(p, key, keys)) attend_block(a, p, key, keys);
  }
}

static void write_weights(struct attend *a) {
  for (size_t key = 0; key < a->t->keys; key += KERNEL_KEYS)
    for (size_t i = 0; i < a->panels; i++)
      write_weight_block(a, &a->panel[i], a->panel[i].sum, key, block_keys(key, a->t->keys));
}

static void attend_close(const struct attend *a, struct panel *p) {
  const struct kernel_tile *t = a->t;
  if (t->select == SELECT_SAMPLE) draw_keys(a, p);
  if (t->pointers) write_pointers(t, p);
  if (t->select != SELECT_SOFT) {
    write_chosen(t, p);
    return;
  }
  sums_to_factors(t, p);
  keep_normalisers(t, p, p->top, p->sum);
  if (t->greatest) keep_greatest(t, p);
  write_context(t, p, p->context, p->sum);
}

/* --- all panels --- */

enum { DEPTH = 64 }; /* numbers of a block's keys that are transposed at a time */

static size_t attend_scratch(size_t head_size, size_t value_head_size) {
  return attend_panels(head_size, value_head_size) * panel_floats(head_size, value_head_size) +
         KERNEL_KEYS * (PANEL + DEPTH) + segments_floats(head_size, value_head_size);
}

static bool attend_panels_of(struct attend *a, float *place) {
  const struct kernel_tile *t = a->t;
  for (size_t i = 0; i < a->panels; i++) turn_queries(t, &a->panel[i], a->panel[i].query);
  if (t->segment_end) return attend_by_segments(a, place);
  if (!attend_blocks(a)) return false;
  for (size_t i = 0; i < a->panels; i++) {
    if (t->huge && t->select == SELECT_SOFT) attend_shrunk(a, &a->panel[i]);
    attend_close(a, &a->panel[i]);
  }
  if (t->weights && t->select == SELECT_SOFT) write_weights(a);
  return true;
}

/* Initializes the panels of a head. Returns the scratch after them. */
static float *attend_open(struct attend *a, const struct kernel_tile *t, float *scratch,
                          float *place) {
  a->t = t;
  a->panels = a->next = 0, a->depth = DEPTH;
  a->scores = scratch, a->extra = scratch + KERNEL_KEYS * PANEL;
  for (size_t first = 0; first < t->queries; first += PANEL) {
    struct panel *p = &a->panel[a->panels++];
    place = panel_open(p, t, first, place);
    if (t->select == SELECT_SOFT) gather_values(p, t);
  }
  return place;
}

/* Heads of few queries go through the keys together, as many as there is scratch for. The size of
 * the scratch follows from a head that has a context. */
static size_t heads_together(size_t heads, const struct kernel_tile *t) {
  size_t values = 0;
  for (size_t h = 0; h < heads; h++)
    values = t[h].value_head_size > values ? t[h].value_head_size : values;
  const size_t most = values > 0 ? attend_panels(t->head_size, values) : 1;
  return heads < most ? heads : most;
}

static bool attend(size_t heads, const struct kernel_tile *t, float *scratch) {
  struct attend a[GROUP_MAX];
  for (size_t n; heads > 0; heads -= n, t += n) {
    float *place = scratch + KERNEL_KEYS * (PANEL + DEPTH);
    const bool few = attend_as_few(t);
    n = few ? heads_together(heads, t) : 1;
    for (size_t h = 0; h < n; h++) place = attend_open(&a[h], &t[h], scratch, place);
    if (few && !attend_few(n, a)) return false;
    for (size_t h = 0; h < n; h++)
      if (!(few && close_few(&a[h])) && !attend_panels_of(&a[h], place)) return false;
  }
  return true;
}

/* --- functions over arrays --- */

INLINE ivec magnitude(vec x) { return (ivec)x & ivec_all(0x7fffffff); }

static uint32_t carry(size_t rows, size_t count, const float *from, size_t from_row, float *to,
                      size_t to_row) {
  const size_t whole = count / LANES * LANES;
  ivec most = {0};
  for (size_t r = 0; r < rows; r++, from += from_row, to += to_row) {
    for (size_t i = 0; i < whole; i += LANES) {
      const vec x = vec_load(from + i);
      vec_store(to + i, x);
      most = vec_max_int(magnitude(x), most);
    }
    if (whole == count) continue;
    const vec x = vec_load_some(from + whole, count - whole);
    vec_store_some(to + whole, x, count - whole);
    most = vec_max_int(magnitude(x), most);
  }
  return (uint32_t)vec_greatest_int(most);
}

static uint32_t greatest(size_t rows, size_t count, const float *from, size_t from_row, float *to) {
  ivec most = {0};
  for (size_t i = 0; i < count; i += LANES) {
    const size_t left = count - i;
    vec best = left < LANES ? vec_load_some(to + i, left) : vec_load(to + i);
    for (size_t r = 0; r < rows; r++) {
      const float *at = from + r * from_row + i;
      const vec x = left < LANES ? vec_load_some(at, left) : vec_load(at);
      best = vec_choose(x > best, x, best);
      most = vec_max_int(magnitude(x), most);
    }
    if (left < LANES)
      vec_store_some(to + i, best, left);
    else
      vec_store(to + i, best);
  }
  return (uint32_t)vec_greatest_int(most);
}

static uint32_t peak(size_t count, const float *x) {
  ivec most = {0};
  for (size_t i = 0; i < count; i += LANES)
    most = vec_max_int(magnitude(vec_load_some(x + i, count - i)), most);
  return (uint32_t)vec_greatest_int(most);
}

/* out[i] = f(x[i]) */
INLINE void for_all(vec f(vec), size_t count, const float *x, float *out) {
  const size_t whole = count / LANES * LANES;
#pragma GCC unroll 4
  for (size_t i = 0; i < whole; i += LANES) vec_store(out + i, f(vec_load(x + i)));
  if (whole < count)
    vec_store_some(out + whole, f(vec_load_some(x + whole, count - whole)), count - whole);
}

static void exp_all(size_t count, const float *x, float *out) { for_all(vec_exp, count, x, out); }
static void tanh_all(size_t count, const float *x, float *out) { for_all(vec_tanh, count, x, out); }

static void cap_all(float cap, size_t count, float *x) {
  const vec by = vec_all(1 / cap);
  for (size_t i = 0; i < count; i += LANES)
    vec_store_some(x + i, vec_cap(vec_load_some(x + i, count - i), vec_all(cap), by), count - i);
}

static void log_all(size_t count, const float *x, float *out) { for_all(vec_log, count, x, out); }
