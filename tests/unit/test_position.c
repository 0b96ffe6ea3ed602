/* test_position: rotary and relative positions against values worked out by hand, and the memory
 * they take. Runs at the level that ATTEND_CPU allows.
 *
 * With sigmoids a score can be read off its weight. That positions agree with the twin, whatever
 * else there is, and that no neighbour changes a bit, other tests see: random layers have them. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/compare.h"

struct bench {
  struct random_layer l;
  struct arena a;
  struct layer_run *c;
};

/* Nothing is projected; `shape` is complete. */
static void bench_init(struct bench *b, const struct layer_shape *shape, const float *table,
                       size_t q, size_t k) {
  struct error e = {0};
  uint64_t state = 3;
  *b = (struct bench){.l = {.shape = *shape}};
  arena_init(&b->a, NULL);
  arena_init(&b->l.arena, NULL);
  b->l.matrix[ROLE_RELATIVE].weight = table;
  b->l.layer = layer_new(&b->l.shape, b->l.matrix, GEMM_PACKED, &e);
  assert_non_null(b->l.layer);
  b->c = plain_call(&b->l, &state, 1, q, k, WEIGHTS_PER_HEAD, &b->a);
}

static void bench_done(struct bench *b) {
  arena_free(&b->a);
  random_layer_done(&b->l);
}

static enum status run(struct bench *b) {
  struct error e = {0};
  assert_int_equal(layer_prepare(b->l.layer, b->c, &b->a, &e), STATUS_OK);
  compute(b->l.layer, b->c, 1e5);
  return run_fault(&b->c->run, &e);
}

static void agrees(struct bench *b) {
  struct error e = {0};
  assert_int_equal(run(b), STATUS_OK);
  if (!agrees_with_twin(&b->l, b->c, &e)) fail_msg("%s", e.detail);
}

static double score_of(float weight) { return log((double)weight / (1 - (double)weight)); }

static void near(double got, double right, double bound) {
  if (!(fabs(got - right) <= bound)) fail_msg("%.9g, should be %.9g", got, right);
}

/* --- rotary --- */

static struct layer_shape rotary_shape(size_t heads, size_t size, double base) {
  struct layer_shape s = plain_shape(heads, size);
  s.sigmoid = true;
  s.scale = 1;
  s.rope_base = base;
  return s;
}

/* A query (1, 0) against keys (1, 0) and (0, 1): cosine and sine of how far it is ahead. */
static void a_pair_is_turned_by_its_distance(void **unused) {
  (void)unused;
  enum { QUERIES = 5, KEYS = 70 };
  const int64_t offsets[] = {0, 3, -7, 1000, ((int64_t)1 << 31) - 100};
  for (size_t n = 0; n < sizeof offsets / sizeof *offsets; n++)
    for (int odd = 0; odd < 2; odd++) {
      struct bench b;
      const struct layer_shape shape = rotary_shape(1, 2, 10000);
      bench_init(&b, &shape, NULL, QUERIES, KEYS);
      float queries[2 * QUERIES], keys[2 * KEYS];
      for (size_t i = 0; i < 2 * QUERIES; i++) queries[i] = i % 2 == 0;
      for (size_t j = 0; j < 2 * KEYS; j++) keys[j] = j % 2 == (size_t)odd;
      b.c->call.queries = queries, b.c->call.keys = keys;
      b.c->geometry.item[0].offset = offsets[n];
      agrees(&b);
      for (size_t i = 0; i < QUERIES; i++)
        for (size_t j = 0; j < KEYS; j++) {
          const double ahead = (double)i + (double)offsets[n] - (double)j;
          near(score_of(b.c->call.weights[i * KEYS + j]), odd ? sin(ahead) : cos(ahead), 1e-6);
        }
      bench_done(&b);
    }
}

/* Four numbers are two pairs, of halves and not of neighbours; the second turns by base^(-1/2). */
static void halves_are_paired(void **unused) {
  (void)unused;
  enum { QUERIES = 3, KEYS = 40, HEADS = 2, SIZE = 4 };
  static const float query[SIZE] = {1, 2, 0.5f, -1}, key[SIZE] = {1, 1, -0.25f, 0.75f};
  struct bench b;
  const struct layer_shape shape = rotary_shape(HEADS, SIZE, 100);
  bench_init(&b, &shape, NULL, QUERIES, KEYS);
  float queries[QUERIES * HEADS * SIZE], keys[KEYS * HEADS * SIZE];
  for (size_t i = 0; i < QUERIES * HEADS; i++) memcpy(queries + i * SIZE, query, sizeof query);
  for (size_t j = 0; j < KEYS * HEADS; j++) memcpy(keys + j * SIZE, key, sizeof key);
  b.c->call.queries = queries, b.c->call.keys = keys;
  b.c->geometry.item[0].offset = -11;
  agrees(&b);
  for (size_t h = 0; h < HEADS; h++)
    for (size_t i = 0; i < QUERIES; i++)
      for (size_t j = 0; j < KEYS; j++) {
        const double ahead = (double)i - 11 - (double)j;
        double right = 0;
        for (size_t t = 0; t < 2; t++) { /* as complex numbers: q times the conjugate of k */
          const double re = query[t] * key[t] + query[t + 2] * key[t + 2];
          const double im = query[t + 2] * key[t] - query[t] * key[t + 2];
          const double angle = ahead * (t ? 0.1 : 1);
          right += re * cos(angle) - im * sin(angle);
        }
        near(score_of(b.c->call.weights[(h * QUERIES + i) * KEYS + j]), right, 2e-6);
      }
  bench_done(&b);
}

/* Bases and positions whose angles are beyond what the kernel turns by. */
static void angles_may_be_huge(void **unused) {
  (void)unused;
  const double bases[] = {1e-3, 1, 1e300};
  for (size_t n = 0; n < 3; n++) {
    struct bench b;
    const struct layer_shape shape = rotary_shape(1, 6, bases[n]);
    bench_init(&b, &shape, NULL, 4, 9);
    b.c->geometry.item[0].offset = (int64_t)1 << 40;
    agrees(&b);
    bench_done(&b);
  }
}

/* What a key gives and what a query sees depends on their positions, not on the rows beside them:
 * an item of many rows, and items of one row each at the same positions. */
static void rows_are_turned_alike_wherever_they_are(void **unused) {
  (void)unused;
  enum { ROWS = 150, KEYS = 20, SIZE = 16 };
  struct bench b;
  struct error e = {0};
  const struct layer_shape shape = rotary_shape(1, SIZE, 10000);
  bench_init(&b, &shape, NULL, ROWS, KEYS);
  b.c->geometry.item[0].offset = -5;
  struct layer_run *apart = call_again(b.c, &b.a);
  apart->geometry.items = ROWS;
  apart->geometry.item = arena_alloc(&b.a, ROWS, sizeof *apart->geometry.item, &e);
  float *keys = arena_alloc(&b.a, ROWS * KEYS * SIZE, sizeof *keys, &e);
  float *values = arena_alloc(&b.a, ROWS * KEYS * SIZE, sizeof *values, &e);
  for (size_t i = 0; i < ROWS; i++) {
    apart->geometry.item[i] =
        (struct item){.q = 1, .k = KEYS, .q_row = i, .k_row = i * KEYS, .offset = (int64_t)i - 5};
    memcpy(keys + i * KEYS * SIZE, b.c->call.keys, KEYS * SIZE * sizeof *keys);
    memcpy(values + i * KEYS * SIZE, b.c->call.values, KEYS * SIZE * sizeof *values);
  }
  apart->geometry.k_rows = ROWS * KEYS;
  apart->call.keys = keys, apart->call.values = values;
  assert_int_equal(run(&b), STATUS_OK);
  assert_int_equal(layer_prepare(b.l.layer, apart, &b.a, &e), STATUS_OK);
  compute(b.l.layer, apart, 1e12);
  assert_int_equal(apart->call.weight_count, ROWS * KEYS);
  assert_memory_equal(apart->call.weights, b.c->call.weights, ROWS * KEYS * sizeof(float));
  bench_done(&b);
}

/* The base follows the length of each item, whatever is beside it. A pair of numbers of an item of
 * n keys turns by (base (factor n / trained - factor + 1)^2)^(-1/2): 4 / (4 - 2) is 2. */
static void base_follows(double factor) {
  enum { ITEMS = 5, SIZE = 4, TRAINED = 8 };
  static const size_t lengths[ITEMS] = {TRAINED, TRAINED + 1, 3, 40, TRAINED + 1};
  struct bench b;
  struct error e = {0};
  struct layer_shape shape = rotary_shape(1, SIZE, 100);
  shape.rope_stretch = (struct layer_stretch){.factor = factor, .trained = TRAINED};
  bench_init(&b, &shape, NULL, 64, 64);
  float rows[2 * 64 * SIZE];
  for (size_t i = 0; i < 2 * 64 * SIZE; i++) rows[i] = i % SIZE % 2 && i % SIZE < 2;
  struct layer_run *beside = call_again(b.c, &b.a);
  beside->geometry.items = ITEMS;
  beside->geometry.item = arena_alloc(&b.a, ITEMS, sizeof *beside->geometry.item, &e);
  beside->geometry.q_rows = beside->geometry.k_rows = 0;
  for (size_t i = 0; i < ITEMS; i++) {
    const size_t at = beside->geometry.q_rows;
    beside->geometry.item[i] =
        (struct item){.q = lengths[i], .k = lengths[i], .q_row = at, .k_row = at};
    beside->geometry.q_rows = beside->geometry.k_rows += lengths[i];
  }
  beside->call.queries = beside->call.keys = beside->call.values = rows;
  assert_int_equal(layer_prepare(b.l.layer, beside, &b.a, &e), STATUS_OK);
  compute(b.l.layer, beside, 1e12);
  for (size_t n = 0, at = 0; n < ITEMS; at += lengths[n] * lengths[n], n++) {
    struct layer_run *alone = call_again(b.c, &b.a);
    const size_t k = lengths[n];
    alone->geometry.item[0].q = alone->geometry.item[0].k = k;
    alone->geometry.q_rows = alone->geometry.k_rows = k;
    alone->call.queries = alone->call.keys = alone->call.values = rows;
    assert_int_equal(layer_prepare(b.l.layer, alone, &b.a, &e), STATUS_OK);
    compute(b.l.layer, alone, 1e5);
    if (!agrees_with_twin(&b.l, alone, &e)) fail_msg("%s", e.detail);
    assert_memory_equal(alone->call.weights, beside->call.weights + at, k * k * sizeof(float));
    const double times = factor > 0 ? factor : 1, length = (double)(k > TRAINED ? k : TRAINED);
    const double longer = times * length / TRAINED - (times - 1);
    for (size_t i = 0; i < k; i++)
      for (size_t j = 0; j < k; j++)
        near(score_of(alone->call.weights[i * k + j]), cos(((double)i - (double)j) * 0.1 / longer),
             1e-6);
  }
  bench_done(&b);
}

static void a_base_may_follow_the_length_of_an_item(void **unused) {
  (void)unused;
  base_follows(2);
  base_follows(0); /* is read as 1 */
}

/* Two numbers that are none too large make one that is, half a quarter turn on. */
static void what_turns_beyond_float_is_told(void **unused) {
  (void)unused;
  struct bench b;
  struct error e = {0};
  struct layer_shape shape = rotary_shape(1, 2, 10000);
  shape.scale = 1e-38f;
  bench_init(&b, &shape, NULL, 2, 1);
  const float queries[] = {3e38f, -3e38f, 3e38f, -3e38f}, keys[] = {1, 0};
  b.c->call.queries = queries, b.c->call.keys = keys;
  assert_int_equal(run(&b), STATUS_NOT_FINITE);
  run_fault(&b.c->run, &e);
  assert_string_equal(e.detail, "the projection of query 1 of item 0 exceeds the float32 range");
  b.c->geometry.item[0].offset = 1; /* the first one's turn */
  assert_int_equal(run(&b), STATUS_NOT_FINITE);
  bench_done(&b);
}

/* --- relative --- */

enum { ONE_WAY = 32, DISTANCE = 128 };

static struct layer_shape relative_shape(size_t heads, size_t buckets, size_t distance, bool both) {
  struct layer_shape s = plain_shape(heads, 3);
  s.sigmoid = true;
  s.relative_buckets = buckets;
  s.relative_distance = distance;
  s.relative_both = both;
  return s;
}

/* Numbers that tell the bucket and the head. */
static float entry(size_t bucket, size_t head) { return (float)bucket / 16 - (float)head - 0.5f; }

static void fill_table(float *table, size_t buckets, size_t heads) {
  for (size_t i = 0; i < buckets * heads; i++) table[i] = entry(i / heads, i % heads);
}

/* The bucket of `r` by the least distances of all buckets of one direction. */
static size_t bucket_of(const size_t *least, size_t count, bool both, int64_t r) {
  const size_t distance = r <= 0 ? (size_t)-r : both ? (size_t)r : 0;
  size_t b = 0;
  while (b + 1 < count && least[b + 1] <= distance) b++;
  return both && r > 0 ? count + b : b;
}

static void check_buckets(const size_t *least, size_t count, bool both, size_t distance,
                          int64_t offset) {
  enum { HEADS = 2, QUERIES = 20, KEYS = 300 };
  float table[2 * ONE_WAY * HEADS];
  static float zeros[KEYS * HEADS * 3];
  struct bench b;
  fill_table(table, both ? 2 * count : count, HEADS);
  const struct layer_shape shape = relative_shape(HEADS, both ? 2 * count : count, distance, both);
  bench_init(&b, &shape, table, QUERIES, KEYS);
  b.c->call.queries = zeros; /* nothing but the table counts */
  b.c->geometry.item[0].offset = offset;
  agrees(&b);
  for (size_t h = 0; h < HEADS; h++)
    for (size_t i = 0; i < QUERIES; i++)
      for (size_t j = 0; j < KEYS; j++) {
        const int64_t r = (int64_t)j - (int64_t)i - offset;
        near(score_of(b.c->call.weights[(h * QUERIES + i) * KEYS + j]),
             entry(bucket_of(least, count, both, r), h), 2e-5);
      }
  bench_done(&b);
}

/* T5's own numbers: 8 to 128 in eight steps of sqrt 2, and 16 to 128 in 16 of 8^(1/16). */
static const size_t encoder[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91};
static const size_t decoder[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                 16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113};

static void t5s_buckets_are_right(void **unused) {
  (void)unused;
  const int64_t offsets[] = {0, 150, 299, -40, 100000, -100000, (int64_t)1 << 40};
  for (size_t n = 0; n < sizeof offsets / sizeof *offsets; n++) {
    check_buckets(encoder, 16, true, DISTANCE, offsets[n]);
    check_buckets(decoder, 32, false, DISTANCE, offsets[n]);
    check_buckets(encoder, 16, false, DISTANCE, offsets[n]);
  }
}

/* Where (max/e)^(step) is a whole number, the bucket begins right there. */
static void whole_powers_begin_a_bucket(void **unused) {
  (void)unused;
  const struct {
    size_t count, distance, least[12];
  } list[] = {
      {1, 5, {0}},
      {2, 5, {0, 1}},
      {3, 9, {0, 1, 3}},
      {4, 32, {0, 1, 2, 8}},
      {6, 81, {0, 1, 2, 3, 9, 27}},
      {8, 64, {0, 1, 2, 3, 4, 8, 16, 32}},
      {10, 16807, {0, 1, 2, 3, 4, 5, 26, 129, 653, 3313}},
      {12, 96, {0, 1, 2, 3, 4, 5, 6, 10, 16, 24, 39, 61}},
  };
  for (size_t n = 0; n < sizeof list / sizeof *list; n++)
    for (int both = 0; both < 2; both++)
      for (int64_t offset = 0; offset <= 3600; offset += 120)
        check_buckets(list[n].least, list[n].count, both, list[n].distance, offset);
}

/* --- ALiBi --- */

/* The slopes that the paper's code gives for so many heads, as powers of two. */
static void slopes_follow_the_number_of_heads(void **unused) {
  (void)unused;
  enum { QUERIES = 20, KEYS = 300, MOST = 16 };
  static const struct {
    size_t heads;
    double power[MOST];
  } list[] = {{1, {8}},
              {2, {4, 8}},
              {3, {4, 8, 2}},
              {6, {2, 4, 6, 8, 1, 3}},
              {8, {1, 2, 3, 4, 5, 6, 7, 8}},
              {12, {1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5}},
              {16, {0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5, 6, 6.5, 7, 7.5, 8}}};
  static const int64_t offsets[] = {0, 150, 299, -40};
  static float zeros[KEYS * MOST * 3];
  for (size_t n = 0; n < sizeof list / sizeof *list; n++)
    for (size_t o = 0; o < sizeof offsets / sizeof *offsets; o++) {
      const size_t heads = list[n].heads;
      struct layer_shape shape = relative_shape(heads, 0, 0, false);
      struct bench b;
      shape.alibi = true;
      bench_init(&b, &shape, NULL, QUERIES, KEYS);
      b.c->call.queries = zeros; /* nothing but the distance counts */
      b.c->geometry.item[0].offset = offsets[o];
      agrees(&b);
      for (size_t h = 0; h < heads; h++)
        for (size_t i = 0; i < QUERIES; i++)
          for (size_t j = 0; j < KEYS; j++) {
            const double r = fabs((double)j - (double)i - (double)offsets[o]);
            const double score = -r * exp2(-list[n].power[h]);
            if (score < -60) continue; /* its weight is about to be none */
            near(score_of(b.c->call.weights[(h * QUERIES + i) * KEYS + j]), score, 2e-5);
          }
      bench_done(&b);
    }
}

/* It counts beside a bias of the call, and in the bound on scores: neither is beyond it alone. */
static void relative_positions_are_summed_with_care(void **unused) {
  (void)unused;
  struct bench b;
  const float table[] = {3.4e38f, -1}, huge[] = {8e37f, 0, 0, 0};
  struct layer_shape shape = relative_shape(1, 2, 4, false);
  bench_init(&b, &shape, table, 2, 2);
  assert_int_equal(run(&b), STATUS_OK);
  b.c->geometry.bias = huge; /* of a pair in the first bucket */
  assert_int_equal(run(&b), STATUS_NOT_FINITE);
  b.c->geometry.lens = (const int32_t[]){0, 2}; /* no query sees that pair any more */
  assert_int_equal(run(&b), STATUS_OK);
  bench_done(&b);
}

/* --- disentangled --- */

enum { SPAN = 256 };

/* Distances in rising order, and the rows that they have, counted from that of distance 0. */
struct rows {
  size_t span, reach, count;
  struct {
    int64_t distance;
    int row;
  } of[24];
};

/* One number of each row tells which it is. The query, or the key, is 1. */
static void check_rows(const struct rows *rows, bool keys, int64_t offset) {
  enum { HEADS = 1, QUERIES = 40, KEYS = 1300 };
  static float table[2 * SPAN], ones[KEYS], zeros[KEYS];
  const float one = 1;
  struct layer_shape shape = plain_shape(HEADS, 1);
  struct error e = {0};
  uint64_t state = 3;
  struct bench b = {.l = {.shape = shape}};
  struct layer_shape *s = &b.l.shape;
  s->sigmoid = true;
  s->position_span = rows->span, s->position_reach = rows->reach;
  s->position_keys = keys, s->position_queries = !keys;
  for (size_t i = 0; i < 2 * rows->span; i++) table[i] = ((float)i - (float)rows->span) / 64;
  for (size_t i = 0; i < KEYS; i++) ones[i] = 1;
  arena_init(&b.a, NULL);
  arena_init(&b.l.arena, NULL);
  b.l.matrix[ROLE_POSITION].weight = table;
  b.l.matrix[keys ? ROLE_POSITION_KEY : ROLE_POSITION_QUERY].weight = &one;
  b.l.matrix[keys ? ROLE_POSITION_QUERY : ROLE_POSITION_KEY].weight = &one;
  b.l.layer = layer_new(s, b.l.matrix, GEMM_PACKED, &e);
  assert_non_null(b.l.layer);
  b.c = plain_call(&b.l, &state, 1, QUERIES, KEYS, WEIGHTS_PER_HEAD, &b.a);
  b.c->call.queries = keys ? ones : zeros;
  b.c->call.keys = keys ? zeros : ones;
  b.c->geometry.item[0].offset = offset;
  agrees(&b);
  for (size_t n = 0; n < rows->count; n++)
    for (int64_t i = 0; i < QUERIES; i++) {
      const int64_t j = i + offset - rows->of[n].distance;
      if (j >= 0 && j < KEYS)
        near(score_of(b.c->call.weights[i * KEYS + j]), rows->of[n].row / 64.0, 2e-5);
    }
  bench_done(&b);
}

/* DeBERTa's own numbers; few distances, which skip rows; and a row for each distance. */
static void debertas_rows_are_right(void **unused) {
  (void)unused;
  static const struct rows list[] = {
      {256, 512, 22, {{-600, -256}, {-513, -256}, {-512, -256}, {-511, -255}, {-506, -255},
                      {-505, -254}, {-132, -131}, {-131, -131}, {-130, -130}, {-129, -129},
                      {-128, -128}, {-1, -1},     {0, 0},       {1, 1},       {128, 128},
                      {129, 129},   {130, 130},   {131, 131},   {132, 131},   {505, 254},
                      {511, 255},   {600, 255}}},
      {8,
       64,
       16,
       {{-64, -8},
        {-63, -7},
        {-26, -7},
        {-25, -6},
        {-11, -6},
        {-10, -5},
        {-5, -5},
        {-4, -4},
        {4, 4},
        {5, 5},
        {10, 5},
        {11, 6},
        {25, 6},
        {26, 7},
        {63, 7},
        {64, 7}}},
      {256,
       256,
       8,
       {{-131, -133},
        {-130, -131},
        {-129, -130},
        {-128, -128},
        {128, 128},
        {129, 130},
        {130, 131},
        {131, 133}}},
      {12, 0, 6, {{-13, -12}, {-12, -12}, {-11, -11}, {10, 10}, {11, 11}, {12, 11}}}};
  const int64_t offsets[] = {0, 620, 1290, -30, (int64_t)1 << 40};
  for (size_t n = 0; n < sizeof list / sizeof *list; n++)
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++)
      for (int keys = 0; keys < 2; keys++) check_rows(&list[n], keys, offsets[i]);
}

/* A product of a position counts in the bound on scores, and in the trace. */
static void positions_beyond_float_are_told(void **unused) {
  (void)unused;
  enum { ROWS = 12 }; /* more than are read in place */
  static const float table[] = {0, 3e38f};
  static float one[ROWS], four[ROWS];
  for (size_t i = 0; i < ROWS; i++) one[i] = 1, four[i] = 4;
  struct error e = {0};
  uint64_t state = 3;
  struct bench b = {.l = {.shape = plain_shape(1, 1)}};
  b.l.shape.position_span = 1, b.l.shape.position_keys = true;
  arena_init(&b.a, NULL);
  arena_init(&b.l.arena, NULL);
  b.l.matrix[ROLE_POSITION].weight = table; /* of keys after the query, and of the others */
  b.l.matrix[ROLE_POSITION_KEY].weight = b.l.matrix[ROLE_POSITION_QUERY].weight = one;
  b.l.layer = layer_new(&b.l.shape, b.l.matrix, GEMM_PACKED, &e);
  assert_non_null(b.l.layer);
  b.c = plain_call(&b.l, &state, 1, ROWS, ROWS, WEIGHTS_NONE, &b.a);
  b.c->call.keys = one;
  b.c->call.queries = one;
  assert_int_equal(run(&b), STATUS_OK);
  b.c->call.queries = four;
  assert_int_equal(run(&b), STATUS_NOT_FINITE);
  bench_done(&b);
}

/* --- memory --- */

static void layers_that_do_not_fit_are_refused(void **unused) {
  (void)unused;
  const struct layer_matrix matrix[ROLE_COUNT] = {0};
  struct layer_shape shapes[3] = {plain_shape(2, 2), plain_shape(2, 2), plain_shape(2, 2)};
  shapes[0].relative_buckets = SIZE_MAX / 2 - 1; /* too many to count */
  shapes[1].relative_buckets = SIZE_MAX / 64;    /* and to have */
  shapes[2].head_size = SIZE_MAX / 64 * 2;
  shapes[2].rope_base = 10000;
  for (size_t n = 0; n < 3; n++) {
    struct error e = {0};
    assert_null(layer_new(&shapes[n], matrix, GEMM_PACKED, &e));
    assert_int_equal(e.status, STATUS_OUT_OF_MEMORY);
  }
}

/* However little there is: the call is prepared, or refused. */
static void relative_positions_are_charged(void **unused) {
  (void)unused;
  enum { ROWS = 3000 };
  float table[2 * ONE_WAY];
  size_t refused = 0, bytes[2];
  fill_table(table, ONE_WAY, 2);
  for (int relative = 0; relative < 2; relative++) {
    struct bench b;
    const struct layer_shape shape = relative_shape(2, relative ? ONE_WAY : 0, DISTANCE, false);
    bench_init(&b, &shape, table, ROWS, ROWS);
    b.c->call.want = WEIGHTS_NONE;
    for (bytes[relative] = 0;; bytes[relative] += 4096) {
      struct budget budget;
      struct arena a;
      struct error e = {0};
      budget_init(&budget, bytes[relative]);
      arena_init(&a, &budget);
      const enum status status = layer_prepare(b.l.layer, b.c, &a, &e);
      arena_free(&a);
      assert_int_equal(atomic_load(&budget.used), 0);
      if (status == STATUS_OK) break;
      assert_string_equal(e.limit, "memory_budget_bytes");
      refused++;
    }
    bench_done(&b);
  }
  assert_true(refused > 0);
  assert_true(bytes[1] >= bytes[0] + 2 * 2 * ROWS * sizeof(float));
}

int main(void) {
  gemm_blas_init();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_pair_is_turned_by_its_distance),
      cmocka_unit_test(halves_are_paired),
      cmocka_unit_test(angles_may_be_huge),
      cmocka_unit_test(rows_are_turned_alike_wherever_they_are),
      cmocka_unit_test(a_base_may_follow_the_length_of_an_item),
      cmocka_unit_test(what_turns_beyond_float_is_told),
      cmocka_unit_test(t5s_buckets_are_right),
      cmocka_unit_test(whole_powers_begin_a_bucket),
      cmocka_unit_test(relative_positions_are_summed_with_care),
      cmocka_unit_test(slopes_follow_the_number_of_heads),
      cmocka_unit_test(layers_that_do_not_fit_are_refused),
      cmocka_unit_test(debertas_rows_are_right),
      cmocka_unit_test(positions_beyond_float_are_told),
      cmocka_unit_test(relative_positions_are_charged),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
