/* kernel_measure: measures of all heads over one panel of queries and a stretch of keys, block
 * by block.
 *
 * A part of kernel_loops.h.
 *
 * Attention has stored each query's greatest score and the factor of its weights. With these the
 * weights of a block are computed again, for all heads, and the measures summed, before the next
 * block. Sums within a block are float32, in lanes; across blocks and queries they are double. A
 * query without visible keys has weights of 0, and so adds nothing. */

enum {
  MEASURE_FLOATS = 131072, /* of scratch, if possible: half a MiB */
  MEASURE_LANES = 7        /* floats per head and query, in addition to the query and the weights */
};

struct measure {
  const struct kernel_measure *m;
  struct attend a; /* for the current head */
  struct panel p;
  size_t width, keys;  /* of a block */
  double *entropy;     /* [heads, width] the sum of -A ln A so far */
  float *query;        /* [heads][head_size, width], scaled */
  float *weights;      /* [heads][keys, width] */
  float *order;        /* [heads, width] sum of A ln A in this block */
  float *top, *factor; /* [heads, width] these make a score a weight; of the current segment */
  /* On two levels: these make the score of a segment its weight; and one segment. */
  float *upper_top, *upper_factor; /* [heads, width] */
  struct segments segments;
};

/* --- the layout of the scratch --- */

struct measure_size {
  size_t vectors, keys, floats;
};

static size_t measure_floats(size_t head_size, size_t heads, size_t width, size_t keys) {
  const size_t scores = heads * keys > KERNEL_KEYS ? heads * keys : KERNEL_KEYS;
  return width * (heads * (head_size + MEASURE_LANES) + scores + KERNEL_KEYS + head_size + 4);
}

#ifdef UNIFORM /* the keys of a block are those of the widest vectors */
enum { WIDEST = KERNEL_PANEL_MAX, NARROWEST = KERNEL_LANES_MAX };
#else
enum { WIDEST = VECTORS * LANES, NARROWEST = LANES };
#endif

/* A block that is small compared with its pairs of heads costs more to begin than to compute: with
 * many heads there are fewer queries at a time, and in the end more scratch. */
static struct measure_size measure_size(size_t head_size, size_t heads) {
  size_t width = WIDEST, keys = KERNEL_KEYS;
  while (measure_floats(head_size, heads, width, keys) > MEASURE_FLOATS &&
         (width > NARROWEST || keys == KERNEL_KEYS))
    if (keys == KERNEL_KEYS)
      keys /= 2;
    else
      keys = KERNEL_KEYS, width /= 2;
  width = width < VECTORS * LANES ? width : VECTORS * LANES;
  return (struct measure_size){width / LANES, keys, measure_floats(head_size, heads, width, keys)};
}

static size_t measure_queries(size_t head_size, size_t heads) {
  return LANES * measure_size(head_size, heads).vectors;
}

static size_t measure_scratch(size_t head_size, size_t heads) {
  return measure_size(head_size, heads).floats;
}

static void measure_place(struct measure *x, float *scratch) {
  const struct kernel_measure *m = x->m;
  const size_t heads = m->heads, width = x->width;
  x->entropy = (double *)scratch;
  x->query = scratch + 2 * heads * width;
  x->weights = x->query + heads * m->head->head_size * width;
  x->order = x->weights + (heads * x->keys > KERNEL_KEYS ? heads * x->keys : KERNEL_KEYS) * width;
  x->top = x->order + heads * width;
  x->factor = x->top + heads * width;
  x->upper_top = x->factor + heads * width;
  x->upper_factor = x->upper_top + heads * width;
  x->a.extra = x->upper_factor + heads * width;
  x->segments.key = x->a.extra + KERNEL_KEYS * width;
  x->segments.score = x->segments.key + m->head->head_size * width;
  x->p.lost = x->segments.score + width;
  x->p.from = (int32_t *)(x->p.lost + width);
  x->p.to = x->p.from + width;
}

/* Copies a head's `top` and `factor` from attention. If one key was chosen, there is only the key.
 */
static void recall_normalisers(struct measure *x, const struct kernel_tile *t, size_t h) {
  float *top = t->segment_end ? x->upper_top : x->top;
  float *factor = t->segment_end ? x->upper_factor : x->factor;
  for (size_t i = 0; i < x->width && t->select == SELECT_SOFT; i++) {
    top[h * x->width + i] = i < x->p.count ? t->top[i] : 0;
    factor[h * x->width + i] = i < x->p.count ? t->factor[i] : 0;
  }
}

/* Lanes past the last query are idle: all their scores are -infinity. */
static void measure_open(struct measure *x, const struct kernel_measure *m, float *scratch) {
  const struct measure_size size = measure_size(m->head->head_size, m->heads);
  const size_t count = m->head->queries;
  *x = (struct measure){.m = m, .keys = size.keys};
  x->p = (struct panel){.count = count, .vectors = (count + LANES - 1) / LANES};
  x->width = x->p.vectors * LANES;
  measure_place(x, scratch);
  x->a.depth = x->width;
  panel_ranges(&x->p, m->head);
  if (count < x->width)
    x->p.all_to = 0; /* so that ranges are applied to all blocks, and mask idle lanes */
  for (size_t h = 0; h < m->heads; h++) {
    const struct kernel_tile *t = &m->head[h];
    turn_queries(t, &x->p, x->query + h * t->head_size * x->width);
    recall_normalisers(x, t, h);
    memset(x->entropy + h * x->width, 0, x->width * sizeof *x->entropy);
  }
}

/* --- one block --- */

/* Sets the panel to this head. */
static void set_head(struct measure *x, size_t h) {
  x->a.t = &x->m->head[h];
  x->p.query = x->query + h * x->a.t->head_size * x->width;
  x->p.top = x->top + h * x->width;
  x->p.sum = x->factor + h * x->width;
}

/* The chosen key has all the weight. */
static void weigh_chosen(const struct measure *x, size_t key, size_t keys) {
  memset(x->a.scores, 0, keys * x->width * sizeof(float));
  for (size_t i = 0; i < x->p.count; i++) {
    const int32_t j = x->a.t->pointers[i];
    if (j >= (int32_t)key && j < (int32_t)(key + keys))
      x->a.scores[((size_t)j - key) * x->width + i] = 1.0f;
  }
}

/* Computes the weights of a block for one head. */
static void head_weights(struct measure *x, size_t h, size_t key, size_t keys) {
  set_head(x, h);
  x->a.scores = x->weights + h * x->keys * x->width;
  if (x->a.t->select != SELECT_SOFT)
    weigh_chosen(x, key, keys);
  else
    weigh(&x->a, &x->p, x->p.sum, key, keys);
}

/* Computes the factors of one head's weights for a segment: attention within it again. */
static void enter_segment(struct measure *x, size_t h, size_t segment, size_t from, size_t to) {
  set_head(x, h);
  const struct kernel_tile *t = x->a.t;
  x->a.scores = x->weights;
  x->segments.top = x->upper_top + h * x->width;
  x->segments.sum = x->upper_factor + h * x->width;
  x->p.gathers = 1;
  x->p.gather[0] = (struct panel_gather){t->key, t->key_row, t->head_size, x->segments.key, NULL};
  attend_segment(&x->a, &x->p, &x->segments, from, to);
  if (x->p.started) weigh_segment(t, &x->p, &x->segments, segment);
}

/* The sum of the lanes: of the uniform kernels in double, so that how many there are hardly matters
 * (1e-16). */
INLINE double lanes_sum(vec v) {
#ifdef UNIFORM
  double sum = 0;
  for (int i = 0; i < LANES; i++) sum += (double)v[i];
  return sum;
#else
  return (double)vec_sum(v);
#endif
}

/* Adds the measures of one head; halves the weights, for the divergences. */
INLINE void measure_head(struct measure *x, size_t h, size_t key, size_t keys, const bool order) {
  const ivec magnitude = ivec_all(0x7fffffff);
  vec reach = {0};
  for (size_t v = 0; v < x->p.vectors; v++) {
    const size_t at = h * x->width + v * LANES;
    vec away, sum = {0};
#ifdef UNIFORM
    x->m->distance[h] += lanes_sum(reach);
    reach = (vec){0};
#endif
    for (int i = 0; i < LANES; i++)
      away[i] = (float)((double)(x->m->row + v * LANES + (size_t)i) - (double)key);
    for (size_t r = 0; r < keys; r++) {
      float *w = x->weights + (h * x->keys + r) * x->width + v * LANES;
      const vec p = vec_load(w);
      reach = vec_fma(p, (vec)((ivec)away & magnitude), reach);
      away -= vec_all(1.0f);
      if (order) sum = vec_fma(p, vec_log(p), sum);
      vec_store(w, p * vec_all(0.5f));
    }
    vec_store(x->order + at, sum);
    for (size_t i = 0; order && i < LANES; i++) x->entropy[at + i] -= (double)sum[i];
  }
  x->m->distance[h] += lanes_sum(reach);
}

/* The Jensen-Shannon divergence of two heads in a block. x ln x is summed in one order, so equal
 * heads have a divergence of exactly 0. */
INLINE double block_divergence(const struct measure *x, size_t g, size_t h, size_t keys) {
  const float *one = x->weights + g * x->keys * x->width;
  const float *other = x->weights + h * x->keys * x->width;
  double all = 0;
  vec divergence = {0};
  for (size_t v = 0; v < x->p.vectors; v++) {
    vec sum = {0};
#ifdef UNIFORM
    all += lanes_sum(divergence);
    divergence = (vec){0};
#endif
    for (size_t r = 0; r < keys; r++) {
      const size_t at = r * x->width + v * LANES;
      const vec mean = vec_load(one + at) + vec_load(other + at);
      sum = vec_fma(mean, vec_log(mean), sum);
    }
    const vec both = vec_load(x->order + g * x->width + v * LANES) +
                     vec_load(x->order + h * x->width + v * LANES);
    divergence += both * vec_all(0.5f) - sum;
  }
  return all + lanes_sum(divergence);
}

static void measure_block(struct measure *x, size_t key, size_t keys) {
  const struct kernel_measure *m = x->m;
  for (size_t h = 0; h < m->heads; h++) {
    head_weights(x, h, key, keys);
    if (m->divergence)
      measure_head(x, h, key, keys, true);
    else
      measure_head(x, h, key, keys, false);
  }
  double *divergence = m->divergence;
  for (size_t g = 0; divergence && g < m->heads; g++)
    for (size_t h = g + 1; h < m->heads; h++) *divergence++ += block_divergence(x, g, h, keys);
}

/* --- all blocks --- */

/* The factor from a query's sum of -A ln A to its entropy. */
static double entropy_factor(const struct kernel_tile *t, size_t i) {
  const size_t seen = keys_seen(t, i);
  return seen > 1 ? 1 / log((double)seen) : 0;
}

static void measure_close(const struct measure *x) {
  const struct kernel_measure *m = x->m;
  for (size_t i = 0; m->divergence && i < x->p.count; i++) {
    double by = 0;
    for (size_t h = 0; h < m->heads; h++) {
      if (h == 0 || m->head[h].mask != m->head->mask) by = entropy_factor(&m->head[h], i);
      m->entropy[h] += x->entropy[h * x->width + i] * by;
    }
  }
}

static void measure_keys(struct measure *x, size_t from, size_t to) {
  for (size_t key = from; key < to; key += x->keys) {
    const size_t keys = to - key < x->keys ? to - key : x->keys;
    if (panel_sees(&x->p, key, keys)) measure_block(x, key, keys);
  }
}

/* The segment of `key`: the last one that does not begin after it. */
static size_t segment_of(const struct kernel_tile *t, size_t key) {
  size_t low = 0, high = t->segments;
  while (low + 1 < high) {
    const size_t middle = (low + high) / 2;
    if (segment_end(t, middle - 1) <= key)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/* Stores the tops and factors of a segment that continues after this stretch of keys, for
 * resume_segment. */
static void leave_segment(const struct measure *x) {
  for (size_t h = 0; h < x->m->heads; h++) {
    const struct kernel_tile *t = &x->m->head[h];
    memcpy(t->segment_top, x->top + h * x->width, x->p.count * sizeof(float));
    memcpy(t->segment_factor, x->factor + h * x->width, x->p.count * sizeof(float));
  }
}

static void resume_segment(const struct measure *x) {
  memset(x->top, 0, x->m->heads * x->width * sizeof(float));
  memset(x->factor, 0, x->m->heads * x->width * sizeof(float));
  for (size_t h = 0; h < x->m->heads; h++) {
    const struct kernel_tile *t = &x->m->head[h];
    memcpy(x->top + h * x->width, t->segment_top, x->p.count * sizeof(float));
    memcpy(x->factor + h * x->width, t->segment_factor, x->p.count * sizeof(float));
  }
}

static void measure_segments(struct measure *x, size_t from, size_t to) {
  const struct kernel_tile *t = x->m->head;
  size_t at = from;
  for (size_t s = segment_of(t, from); at < to && s < t->segments; s++) {
    const size_t begin = s ? segment_end(t, s - 1) : 0, end = segment_end(t, s);
    if (begin == end) continue;
    if (begin < from) resume_segment(x);
    for (size_t h = 0; h < x->m->heads && begin >= from; h++) enter_segment(x, h, s, begin, end);
    if (end > to && begin >= from) leave_segment(x);
    measure_keys(x, at, end < to ? end : to);
    at = end;
  }
}

static void measure(const struct kernel_measure *m, float *scratch) {
  const size_t to = m->to < m->head->keys ? m->to : m->head->keys;
  struct measure x;
  if (m->from >= to) return;
  measure_open(&x, m, scratch);
  if (m->head->segment_end)
    measure_segments(&x, m->from, to);
  else
    measure_keys(&x, m->from, to);
  measure_close(&x);
}

/* --- products in double --- */

typedef float half_vec __attribute__((vector_size(LANES * 2)));
typedef double double_vec __attribute__((vector_size(LANES * 4)));

INLINE double_vec load_doubles(const float *p, size_t n) {
  half_vec v = {0};
  memcpy(&v, p, n * sizeof(float));
  return __builtin_convertvector(v, double_vec);
}

static double dot(size_t count, const float *x, const float *y) {
  enum { STEP = LANES / 2 };
  double_vec even = {0}, odd = {0};
  size_t i = 0;
  for (; i + 2 * STEP <= count; i += 2 * STEP) {
    even += load_doubles(x + i, STEP) * load_doubles(y + i, STEP);
    odd += load_doubles(x + i + STEP, STEP) * load_doubles(y + i + STEP, STEP);
  }
  for (; i < count; i += STEP) {
    const size_t n = count - i < STEP ? count - i : STEP;
    even += load_doubles(x + i, n) * load_doubles(y + i, n);
  }
  double lane[STEP];
  even += odd;
  memcpy(lane, &even, sizeof lane);
  for (int n = STEP / 2; n > 0; n /= 2)
    for (int j = 0; j < n; j++) lane[j] += lane[j + n];
  return lane[0];
}
