/* random_call: layers and calls of every kind, drawn from a seed. */
#include "tests/support/random_call.h"

#include <math.h>
#include <string.h>

uint64_t random_bits(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

size_t random_below(uint64_t *state, size_t n) { return (size_t)(random_bits(state) % n); }

float random_float(uint64_t *state) {
  return (float)((double)(random_bits(state) >> 11) * 0x1p-52 - 1.0);
}

static bool often(uint64_t *state, unsigned percent) { return random_below(state, 100) < percent; }

static void *allocate(struct arena *a, size_t count, size_t size) {
  struct error e = {0};
  void *p = arena_alloc(a, count, size, &e);
  must(p != NULL);
  return p;
}

static float *draw_numbers(struct arena *a, uint64_t *state, size_t count, float size) {
  float *x = allocate(a, count, sizeof *x);
  for (size_t i = 0; i < count; i++) x[i] = size * random_float(state);
  return x;
}

static void set_matrix(struct random_layer *l, unsigned role, size_t out, size_t in, bool bias,
                       uint64_t *state) {
  l->matrix[role].weight =
      draw_numbers(&l->arena, state, out * in, sqrtf(6.0f / (float)(in + out)));
  l->matrix[role].bias = bias ? draw_numbers(&l->arena, state, out, 0.1f) : NULL;
}

static void make_layer(struct random_layer *l, enum gemm_engine engine) {
  struct error e = {0};
  l->layer = layer_new(&l->shape, l->matrix, engine, &e);
  must(l->layer != NULL);
}

/* --- layers --- */

struct drawn {
  bool projected, bias;
};

static void draw_heads(struct layer_shape *s, uint64_t *state) {
  s->kv_heads = 1 + random_below(state, 4);
  s->heads = s->kv_heads * (often(state, 70) ? 1 : 1 + random_below(state, 3));
  s->head_size = 1 + random_below(state, often(state, 20) ? 130 : 24);
  s->value_head_size = often(state, 60) ? s->head_size : 1 + random_below(state, 70);
  s->key_head_size = s->head_size;
  s->sigmoid = often(state, 12);
}

/* The score's matrices are such that scores are of unit scale, as those of dot products are. */
static void draw_score(struct random_layer *l, uint64_t *state) {
  struct layer_shape *s = &l->shape;
  s->score = often(state, 60) ? SCORE_DOT : often(state, 60) ? SCORE_ADDITIVE : SCORE_BILINEAR;
  s->scale = s->score == SCORE_DOT ? 1.0f / sqrtf((float)s->head_size) : 1.0f;
  if (s->score == SCORE_DOT) return;
  if (often(state, 40)) s->key_head_size = 1 + random_below(state, 40);
  const size_t d = s->head_size, d_k = s->key_head_size;
  if (s->score == SCORE_ADDITIVE) {
    s->score_size = 1 + random_below(state, 40);
    set_matrix(l, ROLE_SCORE_QUERY, s->score_size, d, false, state);
    set_matrix(l, ROLE_SCORE_KEY, s->score_size, d_k, false, state);
    set_matrix(l, ROLE_SCORE_VECTOR, 1, s->score_size, false, state);
  } else {
    l->matrix[ROLE_SCORE_WEIGHT].weight =
        draw_numbers(&l->arena, state, d_k * d, 2.0f / sqrtf((float)(d_k * d)));
  }
}

/* Positions: turned heads, or T5's buckets, now and then in both directions, now and then one. */
static void draw_positions(struct random_layer *l, uint64_t *state) {
  struct layer_shape *s = &l->shape;
  if (s->score == SCORE_DOT && often(state, 35)) {
    s->key_head_size = s->head_size += s->head_size % 2;
    s->rope_base = often(state, 70) ? 10000 : 2 + (double)random_below(state, 1000);
  }
  if (often(state, 70)) return;
  s->relative_both = often(state, 50);
  s->relative_buckets = (1 + random_below(state, 20)) * (s->relative_both ? 2 : 1);
  s->relative_distance = s->relative_buckets + 1 + random_below(state, 200);
  l->matrix[ROLE_RELATIVE].weight =
      draw_numbers(&l->arena, state, s->relative_buckets * s->heads, 2.0f);
}

/* `heads` heads of `size` columns, made of an input of some size, which it returns; or the input's
 * columns as they are. */
static size_t draw_projection(struct random_layer *l, unsigned role, size_t heads, size_t size,
                              const struct drawn *d, uint64_t *state) {
  if (!d->projected) return heads * size;
  const size_t in = 1 + random_below(state, l->shape.grouped ? 24 : 90);
  set_matrix(l, role, heads * size, in, d->bias, state);
  return l->shape.grouped ? heads * in : in;
}

void random_layer_init(struct random_layer *l, uint64_t *state, enum gemm_engine engine) {
  memset(l, 0, sizeof *l);
  arena_init(&l->arena, NULL);
  struct layer_shape *s = &l->shape;
  draw_heads(s, state);
  draw_score(l, state);
  draw_positions(l, state);
  const struct drawn d = {.projected = often(state, 80), .bias = often(state, 40)};
  s->grouped = d.projected && often(state, 20);
  s->query_size = draw_projection(l, ROLE_QUERY, s->heads, s->head_size, &d, state);
  s->key_size = draw_projection(l, ROLE_KEY, s->kv_heads, s->key_head_size, &d, state);
  s->value_size = draw_projection(l, ROLE_VALUE, s->kv_heads, s->value_head_size, &d, state);
  s->output_size = s->heads * s->value_head_size;
  if (often(state, d.projected ? 90 : 20)) {
    const size_t wide = s->output_size;
    s->output_size = 1 + random_below(state, 150);
    set_matrix(l, ROLE_OUTPUT, s->output_size, wide, d.bias, state);
  }
  make_layer(l, engine);
}

struct layer_shape plain_shape(size_t heads, size_t size) {
  return (struct layer_shape){.heads = heads,
                              .kv_heads = heads,
                              .head_size = size,
                              .key_head_size = size,
                              .value_head_size = size,
                              .query_size = heads * size,
                              .key_size = heads * size,
                              .value_size = heads * size,
                              .output_size = heads * size,
                              .scale = 1.0f / sqrtf((float)size)};
}

void plain_layer_init(struct random_layer *l, uint64_t *state, size_t heads, size_t size,
                      enum gemm_engine engine) {
  memset(l, 0, sizeof *l);
  arena_init(&l->arena, NULL);
  const size_t d = heads * size;
  l->shape = plain_shape(heads, size);
  for (unsigned role = 0; role < ROLE_PROJECTIONS; role++) set_matrix(l, role, d, d, false, state);
  make_layer(l, engine);
}

void random_layer_done(struct random_layer *l) {
  layer_free(l->layer);
  arena_free(&l->arena);
}

/* --- calls --- */

static void place_items(struct call *c, size_t heads) {
  size_t mask_at = 0, bias_at = 0;
  c->q_rows = c->k_rows = 0;
  for (size_t i = 0; i < c->items; i++) {
    struct item *item = &c->item[i];
    item->q_row = c->q_rows, item->k_row = c->k_rows;
    item->mask_at = mask_at, item->bias_at = bias_at;
    c->q_rows += item->q, c->k_rows += item->k;
    mask_at += item->q * item->k * (c->mask_per_head ? heads : 1);
    bias_at += item->q * item->k * (c->bias_per_head ? heads : 1);
  }
}

static void fill_inputs(struct call *c, const struct layer_shape *s, uint64_t *state,
                        struct arena *a) {
  c->queries = draw_numbers(a, state, c->q_rows * s->query_size, 1.7f);
  c->keys = draw_numbers(a, state, c->k_rows * s->key_size, 1.7f);
  c->values = draw_numbers(a, state, c->k_rows * s->value_size, 1.7f);
}

static void fill_lens(struct call *c, uint64_t *state, struct arena *a) {
  int32_t *lens = allocate(a, c->q_rows, sizeof *lens);
  const bool per_item = often(state, 50);
  for (size_t i = 0; i < c->items; i++) {
    const struct item *item = &c->item[i];
    int32_t len = (int32_t)random_below(state, item->k + 1);
    for (size_t r = 0; r < item->q; r++) {
      if (!per_item) len = (int32_t)random_below(state, item->k + 1);
      lens[item->q_row + r] = len;
    }
  }
  c->lens = lens;
}

static size_t pairs_of(const struct call *c) {
  size_t pairs = 0;
  for (size_t i = 0; i < c->items; i++) pairs += c->item[i].q * c->item[i].k;
  return pairs;
}

/* Some heads are masked out altogether, now and then all of them. */
static void fill_head_mask(struct call *c, size_t heads, uint64_t *state, struct arena *a) {
  float *factor = draw_numbers(a, state, heads, 1.0f);
  const unsigned percent = often(state, 15) ? 100 : 30;
  for (size_t h = 0; h < heads; h++)
    if (often(state, percent)) factor[h] = 0;
  c->head_mask = factor;
}

/* Masks of heads have stretches of zeros, so that one head sees nothing where another does. */
static void fill_mask(struct call *c, size_t heads, uint64_t *state, struct arena *a) {
  const size_t flags = pairs_of(c) * (c->mask_per_head ? heads : 1);
  const unsigned percent = (unsigned)random_below(state, 101);
  const size_t stretch = 1 + random_below(state, 64);
  uint8_t *mask = allocate(a, flags, 1);
  bool dark = false;
  for (size_t i = 0; i < flags; i++) {
    if (c->mask_per_head && i % stretch == 0) dark = often(state, 40);
    mask[i] = !dark && often(state, percent);
  }
  c->mask = mask;
}

static void fill_extras(struct call *c, size_t heads, uint64_t *state, struct arena *a) {
  if (often(state, 60)) fill_lens(c, state, a);
  if (often(state, 40)) fill_mask(c, heads, state, a);
  if (often(state, 30))
    c->bias = draw_numbers(a, state, pairs_of(c) * (c->bias_per_head ? heads : 1), 2.0f);
  if (often(state, 25)) fill_head_mask(c, heads, state, a);
}

/* Cuts an item's keys into up to six segments, some of them empty. */
static void fill_segments(struct call *c, uint64_t *state, struct arena *a) {
  size_t total = 0;
  for (size_t i = 0; i < c->items; i++) {
    c->item[i].segments = random_below(state, 6) + (c->item[i].k > 0);
    c->item[i].segments_at = total;
    total += c->item[i].segments;
  }
  int32_t *end = allocate(a, total, sizeof *end);
  for (size_t i = 0; i < c->items; i++) {
    const size_t first = c->item[i].segments_at, k = c->item[i].k;
    size_t at = 0;
    for (size_t s = 0; s < c->item[i].segments; s++) {
      at += often(state, 25) ? 0 : random_below(state, k - at + 1);
      end[first + s] = (int32_t)(s + 1 == c->item[i].segments ? k : at);
    }
  }
  c->segment_end = end;
}

/* What becomes of the weights, as far as it has a meaning with the layer. */
static void fill_selection(struct call *c, const struct layer_shape *s, uint64_t *state,
                           struct arena *a) {
  c->seed = random_bits(state) >> 11;
  c->want_pointers = often(state, 30);
  if (!s->sigmoid && often(state, 15)) {
    fill_segments(c, state, a);
    return;
  }
  if (often(state, 30)) c->select = s->sigmoid || often(state, 50) ? SELECT_HARD : SELECT_SAMPLE;
  c->uniform_rows = c->select == SELECT_SOFT && often(state, 30);
}

struct call *random_call(const struct random_layer *l, uint64_t *state, size_t most,
                         struct arena *a) {
  struct error e = {0};
  struct call *c = allocate(a, 1, sizeof *c);
  *c = (struct call){.items = random_below(state, 5), .window_left = -1, .window_right = -1};
  c->item = allocate(a, c->items, sizeof *c->item);
  c->bias_per_head = often(state, 50);
  c->mask_per_head = often(state, 50);
  c->causal = often(state, 30);
  c->want = (enum weights)random_below(state, 3);
  if (often(state, 25)) c->window_left = (int64_t)random_below(state, most);
  if (often(state, 25)) c->window_right = (int64_t)random_below(state, most);
  for (size_t i = 0; i < c->items; i++) {
    c->item[i] = (struct item){.q = random_below(state, often(state, 30) ? 4 : most),
                               .k = random_below(state, often(state, 30) ? 4 : most)};
    if (often(state, 40))
      c->item[i].offset = (int64_t)random_below(state, 2 * most) - (int64_t)most;
  }
  place_items(c, l->shape.heads);
  fill_inputs(c, &l->shape, state, a);
  fill_extras(c, l->shape.heads, state, a);
  fill_selection(c, &l->shape, state, a);
  must(layer_prepare(l->layer, c, a, &e) == STATUS_OK);
  return c;
}

struct call *plain_call(const struct random_layer *l, uint64_t *state, size_t items, size_t q,
                        size_t k, enum weights want, struct arena *a) {
  struct error e = {0};
  struct call *c = allocate(a, 1, sizeof *c);
  *c = (struct call){.items = items, .want = want, .window_left = -1, .window_right = -1};
  c->item = allocate(a, items, sizeof *c->item);
  for (size_t i = 0; i < items; i++) c->item[i] = (struct item){.q = q, .k = k};
  place_items(c, l->shape.heads);
  fill_inputs(c, &l->shape, state, a);
  must(layer_prepare(l->layer, c, a, &e) == STATUS_OK);
  return c;
}

struct call *call_again(const struct call *c, struct arena *a) {
  struct call *copy = allocate(a, 1, sizeof *copy);
  memcpy(copy, c, sizeof *copy);
  copy->item = allocate(a, c->items, sizeof *copy->item);
  memcpy(copy->item, c->item, c->items * sizeof *copy->item);
  copy->outputs = copy->weights = copy->segment_weights = NULL;
  copy->pointers = NULL;
  copy->measures = NULL;
  copy->space = NULL;
  copy->run.next = NULL;
  return copy;
}
