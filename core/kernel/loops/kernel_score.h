/* kernel_score: the scores of a block of keys for a panel of queries.
 *
 * A part of kernel_loops.h. Scores are computed and biases added; then the score of every masked
 * key becomes -infinity, whatever it was. */

/* --- the two ways to compare --- */

/* Like product, for additive scores: c = start + sum over x of vector[x] tanh(a + b). The sums of
 * one row stay in registers. */
INLINE void additive_rows(const struct kernel_product *p, const float *vector, const int vectors) {
  for (size_t i = 0; i < p->rows; i++) {
    const float *a = p->a + i * p->a_row, *b = p->b;
    vec sum[VECTORS];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
      sum[v] = vec_load(p->start + i * p->start_row + (size_t)v * LANES);
    for (size_t x = 0; x < p->depth; x++, a += p->a_step, b += p->b_row) {
      const vec number = vec_all(*a), by = vec_all(vector[x]);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; v++)
        sum[v] = vec_fma(by, vec_tanh(vec_load(b + (size_t)v * LANES) + number), sum[v]);
    }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) vec_store(p->c + i * p->c_row + (size_t)v * LANES, sum[v]);
  }
}

static void additive_panel(const struct kernel_product *p, const float *vector) {
  switch (p->vectors) { /* the constant lets the compiler keep the lanes in registers */
  case 1:
    additive_rows(p, vector, 1);
    break;
  case 2:
    additive_rows(p, vector, 2);
    break;
#if VECTORS == 4
  case 3:
    additive_rows(p, vector, 3);
    break;
  case 4:
    additive_rows(p, vector, 4);
    break;
#endif
  default:
    __builtin_unreachable();
  }
}

/* Adds the numbers of a head from number `x` on to the scores of rows and columns. */
static void compare(const struct kernel_tile *t, size_t x, const struct kernel_product *p) {
  if (t->vector)
    additive_panel(p, t->vector + x);
  else
    product(p);
}

/* The same for `panels` whole panels of columns, side by side. */
static void compare_panels(const struct kernel_tile *t, size_t x, struct kernel_product p,
                           size_t panels) {
  if (!t->vector) {
    product_panels(p, panels, PANEL);
    return;
  }
  for (; panels > 0; panels--, product_move(&p, 1, PANEL)) additive_panel(&p, t->vector + x);
}

/* The place of a key's block, which is complete. */
static size_t place_of(const struct kernel_tile *t, size_t key) {
  return t->blocks->place[key / KERNEL_KEYS];
}

static const float *key_at(const struct kernel_tile *t, size_t key) {
  const size_t place = t->blocks && key < t->turned ? place_of(t, key) * t->blocks->key_step : 0;
  if (key < t->turned)
    return t->key + place + (key - key % KERNEL_KEYS) * t->key_row + key % KERNEL_KEYS;
  return t->blocks ? t->blocks->key + (key - t->turned) * t->key_row : t->key + key * t->key_row;
}

static const float *value_at(const struct kernel_tile *t, size_t key) {
  if (!t->blocks) return t->value + key * t->value_row;
  if (key >= t->turned) return t->blocks->value + (key - t->turned) * t->value_row;
  return t->value + place_of(t, key) * t->blocks->value_step + key * t->value_row;
}

/* --- with queries in the lanes --- */

/* If the keys are transposed, all of them are in one block. */
static void scores_by_query(const struct attend *a, const struct panel *p, size_t key, size_t keys,
                            float *scores) {
  const struct kernel_tile *t = a->t;
  const bool turned = key < t->turned;
  compare(t, 0,
          &(struct kernel_product){.rows = keys,
                                   .depth = t->head_size,
                                   .vectors = p->vectors,
                                   .a = key_at(t, key),
                                   .a_row = turned ? 1 : t->key_row,
                                   .a_step = turned ? KERNEL_KEYS : 1,
                                   .b = p->query,
                                   .b_row = panel_width(p),
                                   .start = no_sums,
                                   .c = scores,
                                   .c_row = panel_width(p)});
}

/* --- with keys in the lanes --- */

enum {
  AHEAD = 1024,      /* distance of prefetching, in floats */
  ROWS_AHEAD = 2048, /* the same in a stream of rows */
  LINE = 16          /* floats of a cache line */
};

static size_t rows_ahead(size_t size) { return ROWS_AHEAD / (size + 1) + 1; }

/* Transposes a cache line of each of LANES keys. */
INLINE void turn_lines(const float *from, size_t from_row, float *to) {
#pragma GCC unroll 2
  for (size_t i = 0; i < LANES; i += HAVE_TURN)
#pragma GCC unroll 4
    for (size_t c = 0; c < LINE; c += 4)
      turn_fours(from + i * from_row + c, from_row, to + c * KERNEL_KEYS + i, KERNEL_KEYS);
}

/* Transposes the numbers x .. x + depth - 1 of a block's keys, and prefetches the lines that will
 * be transposed later. */
static void turn_keys(const struct kernel_tile *t, size_t key, size_t keys, size_t x, size_t depth,
                      float *to) {
  const size_t row = t->key_row, rows = rows_ahead(t->head_size);
  const size_t ahead = (rows < LANES ? LANES : rows) * row;
  for (size_t r = 0; r < keys; r += LANES) {
    const float *from = key_at(t, key + r) + x;
    for (size_t c = 0; c < depth; c += LINE) {
      float *at = to + c * KERNEL_KEYS + r;
      for (size_t i = 0; i < LANES; i++) __builtin_prefetch(from + ahead + i * row + c, 0, 2);
      if (keys - r >= LANES && depth - c >= LINE)
        turn_lines(from + c, row, at);
      else
        turn(from + c, row, keys - r, depth - c < LINE ? depth - c : LINE, 1, at, KERNEL_KEYS);
    }
  }
}

/* Transposes a complete block. */
static void turn_block_of_keys(size_t size, const float *rows, float *block) {
  for (size_t r = 0; r < KERNEL_KEYS; r += LANES)
    turn(rows + r * size, size, LANES, size, 1, block + r, KERNEL_KEYS);
}

/* Returns the numbers x .. x + depth - 1 of a transposed block, and prefetches what follows. */
static const float *turned_keys(const struct kernel_tile *t, size_t key, size_t x, size_t depth) {
  const float *from = key_at(t, key) + x * KERNEL_KEYS;
  for (size_t c = 0; c < depth * KERNEL_KEYS; c += LINE) __builtin_prefetch(from + AHEAD + c);
  return from;
}

/* Compares with `keys` keys in the lanes: whole panels, then the remaining vectors. */
static void compare_keys(const struct kernel_tile *t, size_t x, struct kernel_product p,
                         size_t keys) {
  const size_t vectors = (keys + LANES - 1) / LANES;
  p.vectors = VECTORS;
  compare_panels(t, x, p, vectors / VECTORS);
  if (vectors % VECTORS == 0) return;
  product_move(&p, vectors / VECTORS, PANEL);
  p.vectors = vectors % VECTORS;
  compare(t, x, &p);
}

/* Computes the same chains of multiply-adds. `p` describes some queries, and the place of their
 * scores with the keys of one of the tile's blocks, [queries, KERNEL_KEYS]. */
static void scores_by_key(const struct attend *a, size_t key, size_t keys,
                          struct kernel_product p) {
  const struct kernel_tile *t = a->t;
  const bool turned = key < t->turned;
  const size_t most = turned ? AHEAD / KERNEL_KEYS : a->depth;
  p.b = a->extra, p.b_row = p.c_row = KERNEL_KEYS;
  p.start = no_sums;
  for (size_t x = 0; x < t->head_size; x += p.depth) {
    p.depth = t->head_size - x < most ? t->head_size - x : most;
    if (turned)
      p.b = turned_keys(t, key, x, p.depth);
    else
      turn_keys(t, key, keys, x, p.depth, a->extra);
    compare_keys(t, x, p, keys);
    p.a += p.depth * p.a_step;
    p.start = p.c, p.start_row = p.c_row;
  }
}

/* --- either way --- */

/* Returns whether keys in the lanes are faster for additive scores, where a tanh is most of the
 * work: queries would leave most lanes idle. */
static bool keys_fill_lanes(const struct kernel_tile *t, const struct panel *p, size_t key,
                            size_t keys) {
  if (!t->vector || key < t->turned || p->vectors > 1) return false;
  return 5 * p->count * ((keys + LANES - 1) / LANES) <= 4 * keys;
}

static void panel_scores(const struct attend *a, const struct panel *p, size_t key, size_t keys) {
  const size_t width = panel_width(p);
  if (keys_fill_lanes(a->t, p, key, keys)) {
    float scores[LANES * KERNEL_KEYS];
    scores_by_key(a, key, keys,
                  (struct kernel_product){
                      .rows = p->count, .a = p->query, .a_row = 1, .a_step = width, .c = scores});
    turn(scores, KERNEL_KEYS, p->count, keys, 1, a->scores, width);
    return;
  }
  for (size_t r = 0, most = keys; r < keys; r += most) {
    if (key + r < a->t->turned) most = KERNEL_KEYS - (key + r) % KERNEL_KEYS;
    most = most < keys - r ? most : keys - r;
    scores_by_query(a, p, key + r, most, a->scores + r * width);
  }
}

static void cap_scores(const struct attend *a, const struct panel *p, size_t keys) {
  const vec cap = vec_all(a->t->cap), by = vec_all(1 / a->t->cap);
  for (size_t i = 0; i < keys * panel_width(p); i += LANES)
    vec_store(a->scores + i, vec_cap(vec_load(a->scores + i), cap, by));
}

/* The scores of one vector of lanes, with a key for each lane in `key` [head_size, width]. */
INLINE vec score_own_key(const struct attend *a, const struct panel *p, const float *key,
                         size_t v) {
  const struct kernel_tile *t = a->t;
  vec sum = vec_all(0);
  for (size_t x = 0; x < t->head_size; x++) {
    const size_t at = x * panel_width(p) + v * LANES;
    const vec q = vec_load(p->query + at), k = vec_load(key + at);
    sum = t->vector ? vec_fma(vec_all(t->vector[x]), vec_tanh(q + k), sum) : vec_fma(q, k, sum);
  }
  return t->cap > 0 ? vec_cap(sum, vec_all(t->cap), vec_all(1 / t->cap)) : sum;
}

/* --- DeBERTa's positions --- */

/* Each row of the tables is multiplied only once with a vector of queries, or with as many keys, as
 * far as a distance between them and the block, or the panel, has it. The products are in a small
 * array; from there they are added to the scores of their distances. */

enum {
  DISTANCES = KERNEL_KEYS + LANES - 1, /* most between a vector of queries and a block's keys */
  POSITIONS = PANEL + 2 * LANES        /* room for those between LANES keys and a panel's queries */
};

/* The rows of the LANES distances from this one on. */
static const int32_t *position_rows(const struct kernel_tile *t, int64_t distance) {
  const int64_t reach = t->disentangled.reach, least = -reach - LANES;
  return t->disentangled.row + (distance < least ? least : distance > reach ? reach : distance);
}

/* The distance from a key to a query of the panel. */
static int64_t distance_of(const struct attend *a, const struct panel *p, size_t query,
                           size_t key) {
  return a->t->disentangled.first + (int64_t)(p->first + query) - (int64_t)key;
}

/* Moves lane i of each row to where that of lane 0, i distances less, is: one bit of i after the
 * other. `from` has as many more rows than the result as the bit. */
INLINE vec moved_lanes(const float *from, const float *later, const int bit) {
  const ivec moves = (lane_numbers() & ivec_all(bit)) != ivec_all(0);
  return vec_choose(moves, vec_load(later), vec_load(from));
}

/* Multiplies a vector of queries with the position keys of all distances. Lane i of row x of the
 * result is the product with that of distance `nearest` + x + i. */
static void multiply_positions(const struct attend *a, const struct panel *p, size_t v,
                               int64_t nearest, size_t keys, float *result) {
  const struct kernel_tile *t = a->t;
  float sums[DISTANCES * LANES];
  const size_t distances = keys + LANES - 1;
  const int32_t least = *position_rows(t, nearest);
  const int32_t most = *position_rows(t, nearest + (int64_t)distances - 1);
  product(&(struct kernel_product){.rows = (size_t)(most - least + 1),
                                   .depth = t->head_size,
                                   .vectors = 1,
                                   .a = t->disentangled.key + (size_t)least * t->head_size,
                                   .a_row = t->head_size,
                                   .a_step = 1,
                                   .b = p->query + v * LANES,
                                   .b_row = panel_width(p),
                                   .start = no_sums,
                                   .c = sums,
                                   .c_row = LANES});
  size_t rows = distances - 1;
  for (size_t x = 0; x < rows; x++) {
    const int32_t *row = position_rows(t, nearest + (int64_t)x);
    vec_store(result + x * LANES,
              moved_lanes(sums + (row[0] - least) * LANES, sums + (row[1] - least) * LANES, 1));
  }
#pragma GCC unroll 4
  for (size_t bit = 2; bit < LANES; bit *= 2) {
    rows -= bit;
    for (size_t x = 0; x < rows; x++)
      vec_store(result + x * LANES,
                moved_lanes(result + x * LANES, result + (x + bit) * LANES, (int)bit));
  }
}

static void add_position_keys(const struct attend *a, const struct panel *p, size_t key,
                              size_t keys) {
  float sums[DISTANCES * LANES];
  for (size_t v = 0; v < p->vectors; v++) {
    multiply_positions(a, p, v, distance_of(a, p, v * LANES, key + keys - 1), keys, sums);
    for (size_t r = 0; r < keys; r++) {
      float *s = a->scores + r * panel_width(p) + v * LANES;
      vec_store(s, vec_load(s) + vec_load(sums + (keys - 1 - r) * LANES));
    }
  }
}

/* Multiplies some keys, at most LANES and all in one block, with the position queries of all
 * distances, from row `least` on. */
static void multiply_keys(const struct attend *a, size_t key, size_t keys, int32_t least,
                          int32_t most, float *result) {
  const struct kernel_tile *t = a->t;
  const bool turned = key < t->turned;
  const size_t vectors = (size_t)(most - least) / LANES + 1;
  struct kernel_product p = {.rows = keys,
                             .depth = t->head_size,
                             .a = key_at(t, key),
                             .a_row = turned ? 1 : t->key_row,
                             .a_step = turned ? KERNEL_KEYS : 1,
                             .b = t->disentangled.query + least,
                             .b_row = t->disentangled.query_row,
                             .start = no_sums,
                             .c = result,
                             .c_row = POSITIONS};
  for (size_t done = 0; done < vectors; done += p.vectors) {
    p.vectors = vectors - done < VECTORS ? vectors - done : VECTORS;
    p.b = t->disentangled.query + (size_t)least + done * LANES;
    p.c = result + done * LANES;
    product(&p);
  }
}

static void add_position_queries(const struct attend *a, const struct panel *p, size_t key,
                                 size_t keys) {
  const struct kernel_tile *t = a->t;
  const size_t width = panel_width(p);
  float sums[LANES * POSITIONS];
  for (size_t r = 0, count; r < keys; r += count) {
    const size_t whole = key + r < t->turned ? KERNEL_KEYS - (key + r) % KERNEL_KEYS : keys;
    count = keys - r < LANES ? keys - r : LANES;
    if (count > whole) count = whole;
    const int32_t least = *position_rows(t, distance_of(a, p, 0, key + r + count - 1));
    const int32_t most = *position_rows(t, distance_of(a, p, width - 1, key + r));
    multiply_keys(a, key + r, count, least, most, sums);
    for (size_t i = 0; i < count; i++)
      for (size_t v = 0; v < p->vectors; v++) {
        float *s = a->scores + (r + i) * width + v * LANES;
        const int32_t *row = position_rows(t, distance_of(a, p, v * LANES, key + r + i));
        ivec lane;
        memcpy(&lane, row, sizeof lane);
        const vec near = vec_load(sums + i * POSITIONS + (row[0] - least));
        vec_store(s, vec_load(s) + __builtin_shuffle(near, lane - ivec_all(row[0])));
      }
  }
}

/* --- biases, and what is hidden --- */

static void add_bias(const struct attend *a, const struct panel *p, size_t key, size_t keys) {
  const struct kernel_tile *t = a->t;
  const size_t width = panel_width(p);
  for (size_t v = 0; v < p->vectors; v++) {
    turn(t->bias + (p->first + v * LANES) * t->bias_row + key, t->bias_row, rows_of_vector(p, v),
         keys, 1, a->extra + v * LANES, width);
    for (size_t r = 0; r < keys; r++) {
      float *s = a->scores + r * width + v * LANES;
      vec_store(s, vec_load(s) + vec_load(a->extra + r * width + v * LANES));
    }
  }
}

/* The distance grows with the key and falls with the query: a key's row is a part of the line of
 * numbers, in reverse order. */
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

/* A score that is not finite becomes +infinity. Masking then replaces it by -infinity, unless its
 * key is visible. */
static void mark_not_finite(const struct attend *a, const struct panel *p, size_t keys) {
  for (size_t i = 0; i < keys * panel_width(p); i += LANES) {
    const vec score = vec_load(a->scores + i);
    const ivec finite = (score - score) == vec_all(0);
    vec_store(a->scores + i, vec_choose(finite, score, vec_all(INFINITY)));
  }
}

/* Returns whether a visible key has a score that was not finite. */
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
    turn(flag, KERNEL_KEYS, count, keys, 1, a->extra + v * LANES, width);
    for (size_t r = 0; r < keys; r++) {
      float *s = a->scores + r * width + v * LANES;
      const ivec seen = vec_load(a->extra + r * width + v * LANES) != vec_all(0);
      vec_store(s, vec_choose(seen, vec_load(s), vec_all(-INFINITY)));
    }
  }
}

/* Computes the scores of a block for a panel, -infinity for masked keys. False if the score of a
 * visible key is not finite. */
static bool score_block(const struct attend *a, const struct panel *p, size_t key, size_t keys) {
  const struct kernel_tile *t = a->t;
  panel_scores(a, p, key, keys);
  if (t->disentangled.key) add_position_keys(a, p, key, keys);
  if (t->disentangled.query) add_position_queries(a, p, key, keys);
  if (t->cap > 0) cap_scores(a, p, keys);
  if (t->bias) add_bias(a, p, key, keys);
  if (t->relative) add_relative(a, p, key, keys);
  if (t->careful) mark_not_finite(a, p, keys);
  if ((int32_t)key < p->all_from || (int32_t)(key + keys) > p->all_to)
    hide_by_range(a, p, key, keys);
  if (t->mask) hide_by_mask(a, p, key, keys);
  return !t->careful || !some_is_marked(a, p, keys);
}
