/* kernel_panel: a panel of queries: the state of their attention during the pass over the keys.
 *
 * A part of kernel_loops.h.
 *
 * Queries are in the lanes: a panel holds up to VECTORS * LANES of them, transposed once. The
 * scores of a block of keys have one row per key, so the softmax runs down the columns and needs no
 * sums across lanes. Contexts are summed transposed, and transposed back at the end. */

enum { GROUP_MAX = 4 };

/* Rows that are summed by the weights of their keys. */
struct panel_gather {
  const float *row; /* [keys, columns] with stride `step` */
  size_t step, columns;
  float *sum;          /* [columns, width] */
  const float *shrink; /* [width] factors of the weights; NULL: 1 */
};

/* The state of one panel: `vectors` vectors of queries. */
struct panel {
  size_t first, count; /* which queries of the tile */
  size_t vectors;
  int32_t some_from, some_to;    /* keys outside are masked for all queries */
  int32_t all_from, all_to;      /* keys inside are masked for no query, except by `mask` */
  bool started;                  /* whether some block has been added */
  float *query;                  /* [head_size, width], scaled */
  float *context;                /* [value_head_size, width] */
  struct panel_gather gather[2]; /* the sums of values, and on two levels of keys */
  size_t gathers;
  float *top;      /* [width] greatest score so far, up to `slack` less */
  float *sum;      /* [width] of the exponentials; at the end its inverse */
  float *lost;     /* [width] rounding error of `sum` */
  float *best;     /* [width] the greatest score or weight so far, if a key is chosen */
  int32_t *chosen; /* [width] its key; -1: none yet */
  int32_t *from, *to;
  float shrink[PANEL]; /* factors of the weights of queries whose context overflowed, else 1 */
};

struct attend {
  const struct kernel_tile *t;
  struct panel panel[GROUP_MAX];
  size_t panels;
  float *scores; /* [KERNEL_KEYS, PANEL] */
  float *extra;  /* [KERNEL_KEYS, depth] transposed bias, mask or keys of a block; or its weights
                    scaled down */
  size_t depth;  /* at least a panel's width */
  size_t next;   /* first key of the block to prefetch; 0: none */
};

static size_t panel_width(const struct panel *p) { return p->vectors * LANES; }

/* --- the layout of the scratch --- */

static size_t panel_floats(size_t head_size, size_t value_head_size) {
  return PANEL * (head_size + value_head_size + 7);
}

/* How many panels fit in about 256 KiB; at least one. */
static size_t attend_panels(size_t head_size, size_t value_head_size) {
  size_t fit = 65536 / panel_floats(head_size, value_head_size);
  return fit < 1 ? 1 : fit > GROUP_MAX ? GROUP_MAX : fit;
}

static size_t attend_queries(size_t head_size, size_t value_head_size) {
  return PANEL * attend_panels(head_size, value_head_size);
}

/* --- transposing rows to columns and back --- */

/* to[c][i] = factor from[i][c] for LANES columns, or the first n of them, and for count <= rows
 * rows i; the lanes after these become 0. */
INLINE void turn_block(const float *from, size_t from_row, size_t count, const size_t rows,
                       size_t n, vec factor, float *to, size_t to_row) {
  vec r[LANES];
#pragma GCC unroll 16
  for (size_t i = 0; i < rows; i++)
    r[i] = i < count ? vec_load_some(from + i * from_row, n) * factor : vec_all(0);
  if (rows == QUARTER)
    vec_transpose_quarter(r);
  else
    vec_transpose(r);
  if (n >= LANES) {
#pragma GCC unroll 16
    for (size_t i = 0; i < LANES; i++) vec_store(to + i * to_row, r[i]);
  } else {
#pragma GCC unroll 16
    for (size_t i = 0; i < LANES; i++)
      if (i < n) vec_store(to + i * to_row, r[i]);
  }
}

/* The same for LANES rows, four columns at a time. Returns how many columns it transposed. */
static size_t turn_lanes(const float *from, size_t from_row, size_t columns, float factor,
                         float *to, size_t to_row) {
  size_t c = 0;
  for (; c + 4 <= columns; c += 4)
#pragma GCC unroll 2
    for (size_t i = 0; i < LANES; i += HAVE_TURN)
      turn_fours(from + i * from_row + c, from_row, to + c * to_row + i, to_row);
  for (size_t i = 0; factor != 1 && i < c; i++)
    vec_store(to + i * to_row, vec_load(to + i * to_row) * vec_all(factor));
  return c;
}

/* The same for any number of columns, and for LANES rows, or the first `count` of them. */
static void turn(const float *from, size_t from_row, size_t count, size_t columns, float factor,
                 float *to, size_t to_row) {
  size_t c = count < LANES ? 0 : turn_lanes(from, from_row, columns, factor, to, to_row);
  for (from += c, to += c * to_row; c < columns; c += LANES, from += LANES, to += LANES * to_row)
    if (count <= QUARTER)
      turn_block(from, from_row, count, QUARTER, columns - c, vec_all(factor), to, to_row);
    else
      turn_block(from, from_row, count, LANES, columns - c, vec_all(factor), to, to_row);
}

/* to[i][r] (+)= factor[i] from[r][i] for LANES rows r, or the first n of them, and for
 * count <= columns columns i. A zero has no sign: that of a sum over keys that weigh nothing would
 * depend on how many of these there were. */
INLINE void turn_block_back(const float *from, size_t from_row, size_t n, vec factor, float *to,
                            size_t to_row, size_t count, const size_t columns, bool add) {
  vec r[LANES];
#pragma GCC unroll 16
  for (size_t i = 0; i < LANES; i++)
    r[i] = i < n ? vec_fma(vec_load(from + i * from_row), factor, vec_all(0)) : vec_all(0);
  if (columns == QUARTER)
    vec_transpose_to_quarter(r);
  else
    vec_transpose(r);
#pragma GCC unroll 16
  for (size_t i = 0; i < columns; i++)
    if (i < count) {
      float *place = to + i * to_row;
      vec_store_some(place, add ? r[i] + vec_load_some(place, n) : r[i], n);
    }
}

/* The same for any number of rows. */
static void turn_back(const float *from, size_t from_row, size_t rows, vec factor, float *to,
                      size_t to_row, size_t count, bool add) {
  for (size_t c = 0; c < rows; c += LANES, from += LANES * from_row, to += LANES)
    if (count <= QUARTER)
      turn_block_back(from, from_row, rows - c, factor, to, to_row, count, QUARTER, add);
    else
      turn_block_back(from, from_row, rows - c, factor, to, to_row, count, LANES, add);
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

/* Resets the sums. */
static void panel_clear(struct panel *p) {
  p->started = false;
  for (size_t v = 0; v < p->vectors; v++) {
    vec_store(p->top + v * LANES, vec_all(-FLT_MAX));
    vec_store(p->sum + v * LANES, vec_all(0));
    vec_store(p->lost + v * LANES, vec_all(0));
  }
}

/* Resets the choice of a key, whose score or weight must exceed `floor`. */
static void panel_choose_from(struct panel *p, float floor) {
  for (size_t i = 0; i < panel_width(p); i++) p->best[i] = floor, p->chosen[i] = -1;
}

/* Transposes and scales the queries of a panel. */
static void turn_queries(const struct kernel_tile *t, const struct panel *p, float *to) {
  for (size_t v = 0; v < p->vectors; v++)
    turn(t->query + (p->first + v * LANES) * t->query_row, t->query_row, rows_of_vector(p, v),
         t->head_size, t->scale, to + v * LANES, panel_width(p));
}

/* Initializes a panel, except for its `query`. Returns the scratch after it. */
static float *panel_open(struct panel *p, const struct kernel_tile *t, size_t first, float *place) {
  p->first = first;
  p->count = t->queries - first < PANEL ? t->queries - first : PANEL;
  p->gathers = 0;
  p->vectors = (p->count + LANES - 1) / LANES;
  p->query = place;
  p->context = p->query + PANEL * t->head_size;
  p->top = p->context + PANEL * t->value_head_size;
  p->sum = p->top + PANEL;
  p->lost = p->sum + PANEL;
  p->best = p->lost + PANEL;
  p->chosen = (int32_t *)(p->best + PANEL);
  p->from = p->chosen + PANEL;
  p->to = p->from + PANEL;
  panel_ranges(p, t);
  panel_clear(p);
  panel_choose_from(p, -INFINITY);
  return place + panel_floats(t->head_size, t->value_head_size);
}

static bool panel_sees(const struct panel *p, size_t key, size_t keys) {
  return (int32_t)key < p->some_to && (int32_t)(key + keys) > p->some_from;
}

/* How many keys the block that begins at `key` has, before `end`. */
static size_t block_keys(size_t key, size_t end) {
  return end - key < KERNEL_KEYS ? end - key : KERNEL_KEYS;
}

/* --- sums that overflow --- */

/* How many keys query `i` of the tile attends to. */
static size_t keys_seen(const struct kernel_tile *t, size_t i) {
  const size_t all = (size_t)(t->to[i] - t->from[i]);
  if (!t->mask) return all;
  const uint8_t *mask = t->mask + i * t->mask_row + t->from[i];
  size_t seen = 0;
  for (size_t j = 0; j < all; j++) seen += mask[j] != 0;
  return seen;
}

/* A power of two that keeps weighted sums over `keys` keys inside float32, whatever the values: a
 * weight is less than 256. Masked keys do not count: from .. to - 1 may hold keys that are visible
 * only in other heads, and whether these are computed depends on the request. */
static float shrink_for(size_t keys) {
  float shrink = 0x1p-10f;
  for (; keys > 0; keys /= 2) shrink /= 2;
  return shrink;
}

/* Finds the queries with a sum that is not finite; sets `shrink`, 1 for the others. False if there
 * are none. */
static bool find_shrinks(const struct kernel_tile *t, const struct panel *p, const float *sum,
                         size_t columns, float *shrink) {
  const size_t width = panel_width(p);
  bool some = false;
  for (size_t i = 0; i < width; i++) {
    bool finite = true;
    for (size_t x = 0; i < p->count && x < columns; x++)
      finite &= isfinite(sum[x * width + i]) != 0;
    shrink[i] = finite ? 1.0f : shrink_for(keys_seen(t, p->first + i));
    some |= !finite;
  }
  return some;
}
