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

bool random_often(uint64_t *state, unsigned percent) { return random_below(state, 100) < percent; }

double random_work(uint64_t *state) { return pow(10, (double)random_below(state, 9)); }

void *random_room(struct arena *a, size_t count, size_t size) {
  struct error e = {0};
  void *p = arena_alloc(a, count, size, &e);
  must(p != NULL);
  return p;
}

float *random_floats(struct arena *a, uint64_t *state, size_t count, float size) {
  float *x = random_room(a, count, sizeof *x);
  for (size_t i = 0; i < count; i++) x[i] = size * random_float(state);
  return x;
}

static void set_matrix(struct random_layer *l, unsigned role, size_t out, size_t in, bool bias,
                       uint64_t *state) {
  l->matrix[role].weight =
      random_floats(&l->arena, state, out * in, sqrtf(6.0f / (float)(in + out)));
  l->matrix[role].bias = bias ? random_floats(&l->arena, state, out, 0.1f) : NULL;
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
  s->heads = s->kv_heads * (random_often(state, 70) ? 1 : 1 + random_below(state, 3));
  s->head_size = 1 + random_below(state, random_often(state, 20) ? 130 : 24);
  s->value_head_size = random_often(state, 60) ? s->head_size : 1 + random_below(state, 70);
  s->key_head_size = s->head_size;
  s->sigmoid = random_often(state, 12);
}

/* The score's matrices are such that scores are of unit scale, as those of dot products are. */
static void draw_score(struct random_layer *l, uint64_t *state) {
  struct layer_shape *s = &l->shape;
  s->score = random_often(state, 60)   ? SCORE_DOT
             : random_often(state, 60) ? SCORE_ADDITIVE
                                       : SCORE_BILINEAR;
  s->scale = s->score == SCORE_DOT ? 1.0f / sqrtf((float)s->head_size) : 1.0f;
  uint64_t apart = *state + 1;
  if (s->score == SCORE_DOT && random_often(&apart, 20))
    s->cap = 0.5f + (float)random_below(&apart, 20) / 4;
  if (s->score == SCORE_DOT) return;
  if (random_often(state, 40)) s->key_head_size = 1 + random_below(state, 40);
  const size_t d = s->head_size, d_k = s->key_head_size;
  if (s->score == SCORE_ADDITIVE) {
    s->score_size = 1 + random_below(state, 40);
    set_matrix(l, ROLE_SCORE_QUERY, s->score_size, d, false, state);
    set_matrix(l, ROLE_SCORE_KEY, s->score_size, d_k, false, state);
    set_matrix(l, ROLE_SCORE_VECTOR, 1, s->score_size, false, state);
  } else {
    l->matrix[ROLE_SCORE_WEIGHT].weight =
        random_floats(&l->arena, state, d_k * d, 2.0f / sqrtf((float)(d_k * d)));
  }
}

/* Positions: turned heads, ALiBi, or T5's buckets, now and then in both directions, now and then
 * one. */
static void draw_positions(struct random_layer *l, uint64_t *state) {
  struct layer_shape *s = &l->shape;
  if (s->score == SCORE_DOT && random_often(state, 35)) {
    s->key_head_size = s->head_size += s->head_size % 2;
    s->rope_base = random_often(state, 70) ? 10000 : 2 + (double)random_below(state, 1000);
  }
  if (random_often(state, 70)) return;
  uint64_t own = *state;
  s->alibi = random_often(&own, 35);
  if (s->alibi) return;
  s->relative_both = random_often(state, 50);
  s->relative_buckets = (1 + random_below(state, 20)) * (s->relative_both ? 2 : 1);
  s->relative_distance = s->relative_buckets + 1 + random_below(state, 200);
  l->matrix[ROLE_RELATIVE].weight =
      random_floats(&l->arena, state, s->relative_buckets * s->heads, 2.0f);
}

/* Disentangled positions, with projections of their own: keys have another input. */
static void draw_disentangled(struct random_layer *l, bool bias, uint64_t state) {
  struct layer_shape *s = &l->shape;
  if (s->score != SCORE_DOT || s->grouped || random_often(&state, 70)) return;
  const unsigned terms = 1 + (unsigned)random_below(&state, 3);
  s->position_keys = terms & 1, s->position_queries = terms & 2;
  s->position_span = 2 + 2 * random_below(&state, random_often(&state, 30) ? 90 : 12);
  if (random_often(&state, 60))
    s->position_reach = s->position_span / 2 + 2 + random_below(&state, 200);
  else
    s->position_span -= random_below(&state, 2);
  l->matrix[ROLE_POSITION].weight =
      random_floats(&l->arena, &state, 2 * s->position_span * s->query_size, 1);
  set_matrix(l, ROLE_POSITION_KEY, s->kv_heads * s->head_size, s->query_size, bias, &state);
  set_matrix(l, ROLE_POSITION_QUERY, s->heads * s->head_size, s->query_size, bias, &state);
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
  const struct drawn d = {.projected = random_often(state, 80), .bias = random_often(state, 40)};
  s->grouped = d.projected && random_often(state, 20);
  s->query_size = draw_projection(l, ROLE_QUERY, s->heads, s->head_size, &d, state);
  s->key_size = draw_projection(l, ROLE_KEY, s->kv_heads, s->key_head_size, &d, state);
  s->value_size = draw_projection(l, ROLE_VALUE, s->kv_heads, s->value_head_size, &d, state);
  draw_disentangled(l, d.bias, *state);
  s->output_size = s->heads * s->value_head_size;
  if (random_often(state, d.projected ? 90 : 20)) {
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

void parts_layer_init(struct random_layer *l, uint64_t *state, size_t kv_heads, size_t size,
                      enum gemm_engine engine) {
  memset(l, 0, sizeof *l);
  arena_init(&l->arena, NULL);
  struct layer_shape *s = &l->shape;
  *s = plain_shape(2 * kv_heads, size);
  s->kv_heads = kv_heads;
  s->grouped = true;
  set_matrix(l, ROLE_QUERY, s->query_size, size, false, state);
  set_matrix(l, ROLE_KEY, kv_heads * size, 2 * size, false, state);
  set_matrix(l, ROLE_VALUE, kv_heads * size, 2 * size, false, state);
  make_layer(l, engine);
}

void wide_layer_init(struct random_layer *l, uint64_t *state, enum gemm_engine engine) {
  static const size_t sizes[] = {16, 24, 64, 80, 100};
  memset(l, 0, sizeof *l);
  arena_init(&l->arena, NULL);
  struct layer_shape *s = &l->shape;
  const size_t in = 200 + random_below(state, 200), shared = 1 + random_below(state, 3);
  s->head_size = s->key_head_size = s->value_head_size = sizes[random_below(state, 5)];
  s->kv_heads = 1 + 700 / (s->head_size * shared);
  s->heads = s->kv_heads * shared;
  draw_score(l, state);
  if (s->score == SCORE_DOT && random_often(state, 50)) s->rope_base = 10000;
  s->query_size = s->key_size = s->value_size = in;
  s->output_size = 300 + random_below(state, 1200);
  const bool bias = random_often(state, 50);
  set_matrix(l, ROLE_QUERY, s->heads * s->head_size, in, bias, state);
  set_matrix(l, ROLE_KEY, s->kv_heads * s->key_head_size, in, bias, state);
  set_matrix(l, ROLE_VALUE, s->kv_heads * s->value_head_size, in, bias, state);
  set_matrix(l, ROLE_OUTPUT, s->output_size, s->heads * s->value_head_size, bias, state);
  make_layer(l, engine);
}

void random_layer_done(struct random_layer *l) {
  layer_free(l->layer);
  arena_free(&l->arena);
}

/* --- calls --- */

static void place_items(struct layer_run *c, size_t heads) {
  size_t mask_at = 0, bias_at = 0;
  c->geometry.q_rows = c->geometry.k_rows = 0;
  for (size_t i = 0; i < c->geometry.items; i++) {
    struct item *item = &c->geometry.item[i];
    item->q_row = c->geometry.q_rows, item->k_row = c->geometry.k_rows;
    item->mask_at = mask_at, item->bias_at = bias_at;
    c->geometry.q_rows += item->q, c->geometry.k_rows += item->k;
    mask_at += item->q * item->k * (c->geometry.mask_per_head ? heads : 1);
    bias_at += item->q * item->k * (c->geometry.bias_per_head ? heads : 1);
  }
}

static void fill_inputs(struct layer_run *c, const struct layer_shape *s, uint64_t *state,
                        struct arena *a) {
  c->call.queries = random_floats(a, state, c->geometry.q_rows * s->query_size, 1.7f);
  c->call.keys = random_floats(a, state, c->geometry.k_rows * s->key_size, 1.7f);
  c->call.values = random_floats(a, state, c->geometry.k_rows * s->value_size, 1.7f);
}

static void fill_lens(struct layer_run *c, uint64_t *state, struct arena *a) {
  int32_t *lens = random_room(a, c->geometry.q_rows, sizeof *lens);
  const bool per_item = random_often(state, 50);
  for (size_t i = 0; i < c->geometry.items; i++) {
    const struct item *item = &c->geometry.item[i];
    int32_t len = (int32_t)random_below(state, item->k + 1);
    for (size_t r = 0; r < item->q; r++) {
      if (!per_item) len = (int32_t)random_below(state, item->k + 1);
      lens[item->q_row + r] = len;
    }
  }
  c->geometry.lens = lens;
}

static size_t pairs_of(const struct layer_run *c) {
  size_t pairs = 0;
  for (size_t i = 0; i < c->geometry.items; i++)
    pairs += c->geometry.item[i].q * c->geometry.item[i].k;
  return pairs;
}

/* Some heads are masked out altogether, now and then all of them. */
static void fill_head_mask(struct layer_run *c, size_t heads, uint64_t *state, struct arena *a) {
  float *factor = random_floats(a, state, heads, 1.0f);
  const unsigned percent = random_often(state, 15) ? 100 : 30;
  for (size_t h = 0; h < heads; h++)
    if (random_often(state, percent)) factor[h] = 0;
  c->call.head_mask = factor;
}

/* Masks of heads have stretches of zeros, so that one head sees nothing where another does. */
static void fill_mask(struct layer_run *c, size_t heads, uint64_t *state, struct arena *a) {
  const size_t flags = pairs_of(c) * (c->geometry.mask_per_head ? heads : 1);
  const unsigned percent = (unsigned)random_below(state, 101);
  const size_t stretch = 1 + random_below(state, 64);
  uint8_t *mask = random_room(a, flags, 1);
  bool dark = false;
  for (size_t i = 0; i < flags; i++) {
    if (c->geometry.mask_per_head && i % stretch == 0) dark = random_often(state, 40);
    mask[i] = !dark && random_often(state, percent);
  }
  c->geometry.mask = mask;
}

static void fill_extras(struct layer_run *c, size_t heads, uint64_t *state, struct arena *a) {
  if (random_often(state, 60)) fill_lens(c, state, a);
  if (random_often(state, 40)) fill_mask(c, heads, state, a);
  if (random_often(state, 30))
    c->geometry.bias =
        random_floats(a, state, pairs_of(c) * (c->geometry.bias_per_head ? heads : 1), 2.0f);
  if (random_often(state, 25)) fill_head_mask(c, heads, state, a);
}

/* Cuts an item's keys into up to six segments, some of them empty. */
static void fill_segments(struct layer_run *c, uint64_t *state, struct arena *a) {
  size_t total = 0;
  for (size_t i = 0; i < c->geometry.items; i++) {
    c->geometry.item[i].segments = random_below(state, 6) + (c->geometry.item[i].k > 0);
    c->geometry.item[i].segments_at = total;
    total += c->geometry.item[i].segments;
  }
  int32_t *end = random_room(a, total, sizeof *end);
  for (size_t i = 0; i < c->geometry.items; i++) {
    const size_t first = c->geometry.item[i].segments_at, k = c->geometry.item[i].k;
    size_t at = 0;
    for (size_t s = 0; s < c->geometry.item[i].segments; s++) {
      at += random_often(state, 25) ? 0 : random_below(state, k - at + 1);
      end[first + s] = (int32_t)(s + 1 == c->geometry.item[i].segments ? k : at);
    }
  }
  c->geometry.segment_end = end;
}

/* What becomes of the weights, as far as it has a meaning with the layer. */
static void fill_selection(struct layer_run *c, const struct layer_shape *s, uint64_t *state,
                           struct arena *a) {
  c->call.seed = random_bits(state) >> 11;
  c->call.want_pointers = random_often(state, 30);
  if (!s->sigmoid && random_often(state, 15)) {
    fill_segments(c, state, a);
    return;
  }
  if (random_often(state, 30))
    c->call.select = s->sigmoid || random_often(state, 50) ? SELECT_HARD : SELECT_SAMPLE;
  c->call.uniform_rows = c->call.select == SELECT_SOFT && random_often(state, 30);
}

struct layer_run *random_call(const struct random_layer *l, uint64_t *state, size_t most,
                              struct arena *a) {
  struct error e = {0};
  struct layer_run *c = random_room(a, 1, sizeof *c);
  *c = (struct layer_run){.geometry.items = random_below(state, 5),
                          .geometry.window_left = -1,
                          .geometry.window_right = -1};
  c->geometry.item = random_room(a, c->geometry.items, sizeof *c->geometry.item);
  c->geometry.bias_per_head = random_often(state, 50);
  c->geometry.mask_per_head = random_often(state, 50);
  c->geometry.causal = random_often(state, 30);
  c->call.want = (enum weights)random_below(state, 3);
  if (random_often(state, 25)) c->geometry.window_left = (int64_t)random_below(state, most);
  if (random_often(state, 25)) c->geometry.window_right = (int64_t)random_below(state, most);
  for (size_t i = 0; i < c->geometry.items; i++) {
    c->geometry.item[i] =
        (struct item){.q = random_below(state, random_often(state, 30) ? 4 : most),
                      .k = random_below(state, random_often(state, 30) ? 4 : most)};
    if (random_often(state, 40))
      c->geometry.item[i].offset = (int64_t)random_below(state, 2 * most) - (int64_t)most;
  }
  place_items(c, l->shape.heads);
  fill_inputs(c, &l->shape, state, a);
  fill_extras(c, l->shape.heads, state, a);
  fill_selection(c, &l->shape, state, a);
  must(layer_prepare(l->layer, c, a, &e) == STATUS_OK);
  return c;
}

struct layer_run *plain_call(const struct random_layer *l, uint64_t *state, size_t items, size_t q,
                             size_t k, enum weights want, struct arena *a) {
  struct error e = {0};
  struct layer_run *c = random_room(a, 1, sizeof *c);
  *c = (struct layer_run){.geometry.items = items,
                          .call.want = want,
                          .geometry.window_left = -1,
                          .geometry.window_right = -1};
  c->geometry.item = random_room(a, items, sizeof *c->geometry.item);
  for (size_t i = 0; i < items; i++) c->geometry.item[i] = (struct item){.q = q, .k = k};
  place_items(c, l->shape.heads);
  fill_inputs(c, &l->shape, state, a);
  must(layer_prepare(l->layer, c, a, &e) == STATUS_OK);
  return c;
}

struct layer_run *call_again(const struct layer_run *c, struct arena *a) {
  struct layer_run *copy = random_room(a, 1, sizeof *copy);
  memcpy(copy, c, sizeof *copy);
  copy->geometry.item = random_room(a, c->geometry.items, sizeof *copy->geometry.item);
  memcpy(copy->geometry.item, c->geometry.item, c->geometry.items * sizeof *copy->geometry.item);
  copy->call.geometry = &copy->geometry;
  copy->call.outputs = copy->call.weights = copy->call.segment_weights = NULL;
  copy->call.pointers = NULL;
  copy->call.measures = NULL;
  copy->call.space = NULL;
  copy->run.next = NULL;
  return copy;
}

/* Of an item's [planes, q, size] numbers those of the queries first .. first + count - 1. */
static void *rows_of(const void *all, size_t planes, size_t q, size_t size, size_t first,
                     size_t count, struct arena *a) {
  char *rows = random_room(a, planes * count, size);
  for (size_t p = 0; p < planes; p++)
    memcpy(rows + p * count * size, (const char *)all + (p * q + first) * size, count * size);
  return rows;
}

struct layer_run *call_of_rows(const struct random_layer *l, const struct layer_run *c, size_t item,
                               size_t first, size_t count, struct arena *a) {
  struct error e = {0};
  struct layer_run *part = call_again(c, a);
  const struct item *whole = &c->geometry.item[item];
  const size_t heads = l->shape.heads;
  part->geometry.items = 1, part->geometry.q_rows = count, part->geometry.k_rows = whole->k;
  part->geometry.item[0] = (struct item){.q = count,
                                         .k = whole->k,
                                         .offset = whole->offset + (int64_t)first,
                                         .segments = whole->segments};
  part->call.queries += (whole->q_row + first) * l->shape.query_size;
  part->call.keys += whole->k_row * l->shape.key_size;
  part->call.values += whole->k_row * l->shape.value_size;
  if (c->geometry.lens) part->geometry.lens += whole->q_row + first;
  if (c->geometry.segment_end) part->geometry.segment_end += whole->segments_at;
  if (c->geometry.mask)
    part->geometry.mask =
        rows_of(c->geometry.mask + whole->mask_at, c->geometry.mask_per_head ? heads : 1, whole->q,
                whole->k, first, count, a);
  if (c->geometry.bias)
    part->geometry.bias =
        rows_of(c->geometry.bias + whole->bias_at, c->geometry.bias_per_head ? heads : 1, whole->q,
                whole->k * sizeof *c->geometry.bias, first, count, a);
  must(layer_prepare(l->layer, part, a, &e) == STATUS_OK);
  return part;
}
