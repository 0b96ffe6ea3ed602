/* kernel_attend: attention of some queries of one head over an item's keys, block by block.
 *
 * A part of kernel_loops.h. Several panels share a block of keys while it is in cache. Weights,
 * where they are wanted, are made in a second pass: the outputs do not depend on them. */

/* One block for one panel. False if a score is beyond float32. */
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

static bool attend_blocks(struct attend *a) {
  for (size_t key = 0; key < a->t->keys; key += KERNEL_KEYS) {
    const size_t keys = block_keys(key, a->t->keys);
    for (size_t i = 0; i < a->panels; i++)
      if (panel_sees(&a->panel[i], key, keys) && !attend_block(a, &a->panel[i], key, keys))
        return false;
  }
  return true;
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

/* --- all of it --- */

static size_t attend_scratch(size_t head_size, size_t value_head_size) {
  return attend_panels(head_size, value_head_size) * panel_floats(head_size, value_head_size) +
         2 * KERNEL_KEYS * PANEL + segments_floats(head_size, value_head_size);
}

static bool attend(const struct kernel_tile *t, float *scratch) {
  if (attend_as_few(t)) return attend_few(t, scratch);
  struct attend a = {.t = t, .scores = scratch, .extra = scratch + KERNEL_KEYS * PANEL};
  float *place = a.extra + KERNEL_KEYS * PANEL;
  for (size_t first = 0; first < t->queries; first += PANEL) {
    struct panel *p = &a.panel[a.panels++];
    place = panel_open(p, t, first, place);
    if (t->select == SELECT_SOFT) gather_values(p, t);
  }
  if (t->segment_end) return attend_by_segments(&a, place);
  if (!attend_blocks(&a)) return false;
  for (size_t i = 0; i < a.panels; i++) attend_close(&a, &a.panel[i]);
  if (t->weights && t->select == SELECT_SOFT) write_weights(&a);
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
static void log_all(size_t count, const float *x, float *out) { for_all(vec_log, count, x, out); }
