/* test_layer_select: keys that are picked, segments, and heads that count for nothing. Runs at the
 * level that ATTEND_CPU allows. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/compare.h"

struct bench {
  struct random_layer l;
  struct arena a;
  uint64_t state;
};

static void bench_init(struct bench *b, uint64_t seed, size_t heads, size_t size) {
  *b = (struct bench){.state = seed};
  arena_init(&b->a, NULL);
  plain_layer_init(&b->l, &b->state, heads, size, GEMM_PACKED);
}

static void bench_done(struct bench *b) {
  arena_free(&b->a);
  random_layer_done(&b->l);
}

static struct layer_run *plain(struct bench *b, size_t items, size_t q, size_t k) {
  return plain_call(&b->l, &b->state, items, q, k, WEIGHTS_PER_HEAD, &b->a);
}

/* Prepares the call as it is now, and computes it. */
static enum status run(struct bench *b, struct layer_run *c, double work) {
  struct error e = {0};
  assert_int_equal(layer_prepare(b->l.layer, c, &b->a, &e), STATUS_OK);
  compute(b->l.layer, c, work);
  return run_fault(&c->run, &e);
}

static void run_and_compare(struct bench *b, struct layer_run *c) {
  struct error e = {0};
  assert_int_equal(run(b, c, 1e5), STATUS_OK);
  if (!agrees_with_twin(&b->l, c, &e)) fail_msg("%s", e.detail);
}

static void no_bit_differs(const struct bench *b, const struct layer_run *x,
                           const struct layer_run *y) {
  struct error e = {0};
  if (!same_bits(&b->l, x, y, &e)) fail_msg("%s", e.detail);
}

static void near(const float *x, const float *y, size_t count, double bound) {
  for (size_t i = 0; i < count; i++)
    if (!(fabs(x[i] - y[i]) <= bound)) fail_msg("number %zu: %.9g and %.9g", i, x[i], y[i]);
}

/* --- picked keys --- */

static struct layer_run *sampling_call(struct bench *b, size_t items, size_t q, size_t k,
                                       uint64_t seed) {
  struct layer_run *c = plain(b, items, q, k);
  c->call.select = SELECT_SAMPLE;
  c->call.seed = seed;
  c->call.want_pointers = true;
  return c;
}

static void sampling_repeats_however_it_is_cut(void **unused) {
  (void)unused;
  struct bench b;
  bench_init(&b, 1, 3, 8);
  struct layer_run *c = sampling_call(&b, 3, 150, 90, 12345678901234), *again = call_again(c, &b.a);
  assert_int_equal(run(&b, c, 1e12), STATUS_OK);
  assert_int_equal(run(&b, again, 1e3), STATUS_OK);
  no_bit_differs(&b, c, again);
  run_and_compare(&b, c);
  bench_done(&b);
}

static void another_seed_draws_other_keys(void **unused) {
  (void)unused;
  struct bench b;
  bench_init(&b, 2, 2, 8);
  struct layer_run *c = sampling_call(&b, 1, 40, 30, 7);
  const uint64_t seeds[] = {8, 7 + ((uint64_t)1 << 32), (uint64_t)1 << 52};
  assert_int_equal(run(&b, c, 1e5), STATUS_OK);
  for (size_t i = 0; i < 3; i++) {
    struct layer_run *other = call_again(c, &b.a);
    other->call.seed = seeds[i];
    assert_int_equal(run(&b, other, 1e5), STATUS_OK);
    assert_memory_not_equal(c->call.pointers, other->call.pointers,
                            2 * 40 * sizeof *c->call.pointers);
  }
  bench_done(&b);
}

static void a_draw_does_not_depend_on_other_items(void **unused) {
  (void)unused;
  struct bench b;
  bench_init(&b, 3, 2, 8);
  struct layer_run *c = sampling_call(&b, 2, 20, 30, 5), *other = call_again(c, &b.a);
  struct layer_run *before = sampling_call(&b, 4, 9, 33, 6);
  float *keys = (float *)plain(&b, 2, 20, 30)->call.keys;
  memcpy(keys, c->call.keys, 30 * 16 * sizeof *keys); /* item 0 as it was, item 1 another one */
  other->call.keys = keys;
  assert_int_equal(run(&b, c, 1e5), STATUS_OK);
  struct error e = {0};
  assert_int_equal(layer_prepare(b.l.layer, other, &b.a, &e), STATUS_OK);
  before->run.next = &other->run;
  compute(b.l.layer, before, 1e5);
  assert_memory_equal(c->call.pointers, other->call.pointers, 2 * 20 * sizeof *c->call.pointers);
  assert_memory_equal(c->call.outputs, other->call.outputs, 20 * 16 * sizeof *c->call.outputs);
  assert_memory_not_equal(c->call.pointers + 40, other->call.pointers + 40,
                          2 * 20 * sizeof *c->call.pointers);
  bench_done(&b);
}

/* All queries and items alike: what differs from row to row is the number drawn. */
static void keys_are_drawn_as_often_as_they_weigh(void **unused) {
  (void)unused;
  enum { ITEMS = 2, QUERIES = 50, KEYS = 9, HEADS = 2, SEEDS = 40 };
  struct bench b;
  bench_init(&b, 4, HEADS, 4);
  struct layer_run *c = sampling_call(&b, ITEMS, QUERIES, KEYS, 0);
  float *queries = (float *)c->call.queries, *keys = (float *)c->call.keys;
  for (size_t i = 1; i < ITEMS * QUERIES; i++) memcpy(queries + i * 8, queries, 8 * sizeof(float));
  memcpy(keys + KEYS * 8, keys, KEYS * 8 * sizeof(float));
  struct layer_run *soft = call_again(c, &b.a);
  soft->call.select = SELECT_SOFT;
  assert_int_equal(run(&b, soft, 1e5), STATUS_OK);
  size_t count[HEADS][KEYS] = {0};
  for (c->call.seed = 0; c->call.seed < SEEDS; c->call.seed++) {
    assert_int_equal(run(&b, c, 1e5), STATUS_OK);
    for (size_t row = 0; row < ITEMS * HEADS * QUERIES; row++)
      count[row / QUERIES % HEADS][c->call.pointers[row]]++;
  }
  const double drawn = ITEMS * QUERIES * SEEDS;
  for (size_t h = 0; h < HEADS; h++)
    for (size_t j = 0; j < KEYS; j++) {
      const double p = soft->call.weights[h * QUERIES * KEYS + j];
      if (fabs((double)count[h][j] - drawn * p) > 5 * sqrt(drawn * p * (1 - p)) + 1)
        fail_msg("key %zu of head %zu: drawn %zu times, weighs %.9g", j, h, count[h][j], p);
    }
  bench_done(&b);
}

/* Equal keys far apart: in one block of scores, in several, in the last one. */
static void the_first_of_the_heaviest_keys_is_taken(void **unused) {
  (void)unused;
  const size_t equal[][2] = {{3, 4}, {0, 299}, {63, 64}, {70, 130}, {128, 290}, {298, 299}};
  struct bench b;
  bench_init(&b, 5, 1, 8);
  for (size_t n = 0; n < sizeof equal / sizeof *equal; n++) {
    struct layer_run *c = plain(&b, 1, 20, 300);
    float *keys = (float *)c->call.keys;
    memset((float *)c->call.queries + 8, 0, 8 * sizeof *keys); /* row 1: all keys weigh alike */
    for (size_t x = 0; x < 8; x++) keys[equal[n][0] * 8 + x] *= 40;
    memcpy(keys + equal[n][1] * 8, keys + equal[n][0] * 8, 8 * sizeof *keys);
    c->call.want_pointers = true;
    struct layer_run *hard = call_again(c, &b.a);
    hard->call.select = SELECT_HARD;
    run_and_compare(&b, c);
    run_and_compare(&b, hard);
    assert_memory_equal(c->call.pointers, hard->call.pointers, 20 * sizeof *c->call.pointers);
    assert_int_equal(c->call.pointers[1], 0);
    size_t heaviest = 0;
    for (size_t i = 0; i < 20; i++) {
      assert_int_not_equal(c->call.pointers[i], equal[n][1]);
      heaviest += (size_t)c->call.pointers[i] == equal[n][0];
    }
    assert_true(heaviest > 5);
  }
  bench_done(&b);
}

/* The same of a single query, in its block and across blocks. A key that is made as long again the
 * other way is the heaviest one or the lightest one. */
static void a_single_query_takes_the_first_as_well(void **unused) {
  (void)unused;
  const size_t equal[][2] = {{3, 4}, {1, 33}, {40, 63}, {5, 69}, {63, 64}, {70, 298}, {297, 299}};
  struct bench b;
  bench_init(&b, 11, 1, 16);
  for (size_t n = 0; n < sizeof equal / sizeof *equal; n++) {
    struct layer_run *c = plain(&b, 1, 1, 300);
    float *keys = (float *)c->call.keys;
    size_t heaviest = 0;
    c->call.want_pointers = true;
    for (int way = 0; way < 2; way++) {
      for (size_t x = 0; x < 16; x++) keys[equal[n][0] * 16 + x] *= way ? -1 : 40;
      memcpy(keys + equal[n][1] * 16, keys + equal[n][0] * 16, 16 * sizeof *keys);
      run_and_compare(&b, c);
      assert_int_not_equal(c->call.pointers[0], equal[n][1]);
      heaviest += (size_t)c->call.pointers[0] == equal[n][0];
    }
    assert_int_equal(heaviest, 1);
    memset((float *)c->call.queries, 0, 16 * sizeof *keys); /* all keys weigh alike */
    run_and_compare(&b, c);
    assert_int_equal(c->call.pointers[0], 0);
  }
  bench_done(&b);
}

static void rows_that_see_nothing_point_nowhere(void **unused) {
  (void)unused;
  struct bench b;
  bench_init(&b, 6, 2, 4);
  for (enum select select = SELECT_SOFT; select <= SELECT_SAMPLE; select++)
    for (int uniform = 0; uniform <= (select == SELECT_SOFT); uniform++) {
      struct layer_run *c = plain(&b, 2, 3, 5);
      c->geometry.lens = (const int32_t[]){5, 0, 2, 0, 0, 1};
      c->call.select = select;
      c->call.uniform_rows = uniform;
      c->call.want_pointers = true;
      run_and_compare(&b, c);
      const bool blind[] = {false, true, false, true, true, false};
      for (size_t row = 0; row < 2 * 2 * 3; row++)
        assert_int_equal(c->call.pointers[row] == -1, blind[row / 6 * 3 + row % 3]);
    }
  bench_done(&b);
}

/* --- segments --- */

static const int32_t *ends(struct bench *b, struct layer_run *c, size_t segments,
                           const int32_t *end) {
  struct error e = {0};
  int32_t *all = arena_alloc(&b->a, c->geometry.items * segments, sizeof *all, &e);
  for (size_t i = 0; i < c->geometry.items; i++) {
    c->geometry.item[i].segments = segments;
    c->geometry.item[i].segments_at = i * segments;
    memcpy(all + i * segments, end, segments * sizeof *all);
  }
  return all;
}

static void one_segment_is_plain_attention(void **unused) {
  (void)unused;
  struct bench b;
  bench_init(&b, 7, 3, 8);
  struct layer_run *c = plain(&b, 2, 30, 70), *cut = call_again(c, &b.a);
  c->geometry.causal = cut->geometry.causal = true;
  c->geometry.item[0].offset = cut->geometry.item[0].offset = -3;
  c->call.want_pointers = cut->call.want_pointers = true;
  cut->geometry.segment_end = ends(&b, cut, 3, (const int32_t[]){0, 70, 70});
  run_and_compare(&b, c);
  run_and_compare(&b, cut);
  near(c->call.outputs, cut->call.outputs, 2 * 30 * 24, 2e-5);
  near(c->call.weights, cut->call.weights, c->call.weight_count, 2e-6);
  for (size_t row = 0; row < 2 * 3 * 30; row++) {
    const bool blind = row < 90 && row % 30 < 3;
    assert_true(cut->call.segment_weights[row * 3 + 1] == (blind ? 0.0f : 1.0f));
    assert_true(cut->call.segment_weights[row * 3] == 0 &&
                cut->call.segment_weights[row * 3 + 2] == 0);
  }
  bench_done(&b);
}

/* The keys are then weighed across the segments, where the bias does not count. */
static void segments_of_one_key_are_attention_without_the_bias(void **unused) {
  (void)unused;
  enum { KEYS = 67 };
  struct bench b;
  bench_init(&b, 8, 2, 8);
  struct layer_run *c = plain(&b, 1, 20, KEYS), *cut = call_again(c, &b.a);
  int32_t end[KEYS];
  for (int32_t j = 0; j < KEYS; j++) end[j] = j + 1;
  cut->geometry.segment_end = ends(&b, cut, KEYS, end);
  struct error e = {0};
  float *bias = arena_alloc(&b.a, 20 * KEYS, sizeof *bias, &e);
  for (size_t i = 0; i < 20 * KEYS; i++) bias[i] = 3 * random_float(&b.state);
  cut->geometry.bias = bias;
  run_and_compare(&b, c);
  run_and_compare(&b, cut);
  near(c->call.outputs, cut->call.outputs, 20 * 16, 2e-5);
  near(c->call.weights, cut->call.weights, c->call.weight_count, 2e-6);
  near(c->call.weights, cut->call.segment_weights, c->call.weight_count, 2e-6);
  bench_done(&b);
}

/* --- heads that count for nothing --- */

/* The layer with numbers in a head's rows of a role that are beyond float32 when they meet. */
static void spoil_head(struct bench *b, enum role role, size_t head) {
  struct error e = {0};
  const size_t size = b->l.shape.head_size, wide = b->l.shape.query_size;
  float *weight = (float *)b->l.matrix[role].weight + head * size * wide;
  for (size_t i = 0; i < size * wide; i++) weight[i] = i % 2 ? 3e38f : -3e38f;
  layer_free(b->l.layer);
  b->l.layer = layer_new(&b->l.shape, b->l.matrix, GEMM_PACKED, &e);
}

static void a_masked_head_is_not_computed(void **unused) {
  (void)unused;
  for (size_t head = 0; head < 3; head++)
    for (enum role role = ROLE_QUERY; role <= ROLE_VALUE; role++) {
      struct bench b;
      bench_init(&b, 9, 3, 8);
      float factor[3] = {1, -0.5f, 2};
      factor[head] = 0;
      struct layer_run *c = plain(&b, 2, 40, 70);
      c->call.head_mask = factor;
      c->call.want = WEIGHTS_NONE;
      struct layer_run *spoilt = call_again(c, &b.a);
      assert_int_equal(run(&b, c, 1e5), STATUS_OK);
      spoil_head(&b, role, head);
      run_and_compare(&b, spoilt);
      no_bit_differs(&b, c, spoilt);
      /* A head whose weights or pointers are wanted is computed, but for its values. */
      const enum status seen = role == ROLE_VALUE ? STATUS_OK : STATUS_NOT_FINITE;
      spoilt->call.want = WEIGHTS_PER_HEAD;
      assert_int_equal(run(&b, spoilt, 1e5), seen);
      spoilt->call.want = WEIGHTS_NONE;
      spoilt->call.want_pointers = true;
      assert_int_equal(run(&b, spoilt, 1e5), seen);
      bench_done(&b);
    }
}

static void all_heads_may_be_masked(void **unused) {
  (void)unused;
  struct bench b;
  bench_init(&b, 10, 2, 8);
  struct layer_run *c = plain(&b, 1, 5, 6);
  c->call.head_mask = (const float[]){0, 0};
  run_and_compare(&b, c);
  for (size_t i = 0; i < 5 * 16; i++) assert_true(c->call.outputs[i] == 0);
  struct layer_run *bare = call_again(c, &b.a);
  bare->call.want = WEIGHTS_NONE;
  run_and_compare(&b, bare);
  no_bit_differs(&b, c, bare);
  bench_done(&b);
}

int main(void) {
  gemm_blas_init();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sampling_repeats_however_it_is_cut),
      cmocka_unit_test(another_seed_draws_other_keys),
      cmocka_unit_test(a_draw_does_not_depend_on_other_items),
      cmocka_unit_test(keys_are_drawn_as_often_as_they_weigh),
      cmocka_unit_test(the_first_of_the_heaviest_keys_is_taken),
      cmocka_unit_test(a_single_query_takes_the_first_as_well),
      cmocka_unit_test(rows_that_see_nothing_point_nowhere),
      cmocka_unit_test(one_segment_is_plain_attention),
      cmocka_unit_test(segments_of_one_key_are_attention_without_the_bias),
      cmocka_unit_test(a_masked_head_is_not_computed),
      cmocka_unit_test(all_heads_may_be_masked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
