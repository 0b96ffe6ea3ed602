/* test_layer: the layer against its readable twin, and the promise that bits depend on nothing but
 * the layer and the call. Runs at the level that ATTEND_CPU allows. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/attention/layer_parts.h"
#include "core/attention/measures.h"
#include "core/reference/attention_ref.h"
#include "tests/support/compare.h"
#include "tests/support/rounds.h"

static void compare(const struct random_layer *l, const struct layer_run *c) {
  struct error e = {0};
  if (!agrees_with_twin(l, c, &e)) fail_msg("%s", e.detail);
}

static void no_bit_differs(const struct random_layer *l, const struct layer_run *x,
                           const struct layer_run *y) {
  struct error e = {0};
  if (!same_bits(l, x, y, &e)) fail_msg("%s", e.detail);
}

static void agrees_with_its_twin(enum gemm_engine engine, uint64_t seed, size_t times,
                                 size_t most) {
  for (size_t round = 0; round < times; round++) {
    uint64_t state = seed + (uint64_t)round;
    struct random_layer l;
    struct arena a;
    arena_init(&a, NULL);
    random_layer_init(&l, &state, engine);
    struct layer_run *c = random_call(&l, &state, most, &a);
    compute(l.layer, c, 1e5);
    compare(&l, c);
    arena_free(&a);
    random_layer_done(&l);
  }
}

static void small_calls_agree_with_the_twin(void **unused) {
  (void)unused;
  agrees_with_its_twin(GEMM_PACKED, 1000, rounds(400), 12);
}

static void larger_calls_agree_with_the_twin(void **unused) {
  (void)unused;
  agrees_with_its_twin(GEMM_PACKED, 2000, rounds(12), 300);
}

static void openblas_agrees_with_the_twin(void **unused) {
  (void)unused;
  agrees_with_its_twin(GEMM_OPENBLAS, 3000, rounds(100), 20);
}

/* Leaves each item one query, or some more; its rows move up. */
static struct layer_run *with_few_queries(const struct random_layer *l, const struct layer_run *all,
                                          uint64_t *state, struct arena *a) {
  struct error e = {0};
  struct layer_run *c = call_again(all, a);
  int32_t *lens = arena_alloc(a, c->geometry.q_rows, sizeof *lens, &e);
  c->geometry.q_rows = 0;
  for (size_t i = 0; i < c->geometry.items; i++) {
    struct item *item = &c->geometry.item[i];
    const size_t most = 1 + random_below(state, 8);
    item->q = item->q < most ? item->q : most;
    for (size_t r = 0; all->geometry.lens && r < item->q; r++)
      lens[c->geometry.q_rows + r] = all->geometry.lens[item->q_row + r];
    item->q_row = c->geometry.q_rows;
    c->geometry.q_rows += item->q;
  }
  if (all->geometry.lens) c->geometry.lens = lens;
  assert_int_equal(layer_prepare(l->layer, c, a, &e), STATUS_OK);
  return c;
}

static void few_queries_agree_with_the_twin(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < rounds(60); round++) {
    uint64_t state = 8000 + round;
    struct random_layer l;
    struct arena a;
    arena_init(&a, NULL);
    random_layer_init(&l, &state, GEMM_PACKED);
    const struct layer_run *all = random_call(&l, &state, 300, &a);
    struct layer_run *c = with_few_queries(&l, all, &state, &a);
    compute(l.layer, c, 1e5);
    compare(&l, c);
    arena_free(&a);
    random_layer_done(&l);
  }
}

static void no_neighbour_changes_a_bit(enum gemm_engine engine, uint64_t seed) {
  enum { CALLS = 6 };
  for (size_t round = 0; round < rounds(40); round++) {
    uint64_t state = seed + (uint64_t)round;
    struct random_layer l;
    struct arena a;
    struct error e = {0};
    arena_init(&a, NULL);
    random_layer_init(&l, &state, engine);
    struct layer_run *alone[CALLS], *merged[CALLS];
    for (int i = 0; i < CALLS; i++) {
      alone[i] = random_call(&l, &state, i % 2 ? 5 : 90, &a);
      merged[i] = call_again(alone[i], &a);
      if (random_below(&state, 2)) merged[i]->call.want = WEIGHTS_NONE;
      if (random_below(&state, 2)) merged[i]->call.want_pointers = !merged[i]->call.want_pointers;
      assert_int_equal(layer_prepare(l.layer, merged[i], &a, &e), STATUS_OK);
      if (i) merged[i - 1]->run.next = &merged[i]->run;
      compute(l.layer, alone[i], 1e12);
    }
    compute(l.layer, merged[0], 3e4 * (double)(1 + random_below(&state, 50)));
    for (int i = 0; i < CALLS; i++) no_bit_differs(&l, alone[i], merged[i]);
    arena_free(&a);
    random_layer_done(&l);
  }
}

static void merging_changes_no_bit(void **unused) {
  (void)unused;
  no_neighbour_changes_a_bit(GEMM_PACKED, 4000);
  no_neighbour_changes_a_bit(GEMM_INT8, 4100);
  no_neighbour_changes_a_bit(GEMM_INT8_BLOCK, 4200);
}

static void merging_changes_no_bit_with_openblas(void **unused) {
  (void)unused;
  no_neighbour_changes_a_bit(GEMM_OPENBLAS, 5000);
}

static void multiply(const float *x, size_t count, float by) {
  for (size_t i = 0; i < count; i++) ((float *)x)[i] *= by;
}

/* Inputs that few draws have: scores so far apart that sums are rescaled again and again; values
 * whose sums leave float32; values so small that the least of the products are zeros with a sign.
 * True if they are huge. */
static bool exaggerate(const struct random_layer *l, const struct layer_run *c, uint64_t *state) {
  static const float query[] = {1, 1, 3, 30}, value[] = {1, 1, 1, 0x1p126f, 0x1p122f, 0x1p-126f};
  const float by = query[random_below(state, 4)], huge = value[random_below(state, 6)];
  const bool keys = huge > 1 && c->geometry.segment_end; /* their means may be huge, too */
  multiply(c->call.queries, c->geometry.q_rows * l->shape.query_size, keys ? by / huge : by);
  multiply(c->call.keys, c->geometry.k_rows * l->shape.key_size, keys ? huge : 1);
  multiply(c->call.values, c->geometry.k_rows * l->shape.value_size, huge);
  return huge > 1;
}

/* Cuts the queries of an item anywhere; asks for this and that beside the outputs. */
static void parts_are_of_the_whole(const struct random_layer *l, const struct layer_run *whole,
                                   size_t item, bool measured, uint64_t *state) {
  const size_t q = whole->geometry.item[item].q;
  for (size_t first = 0, count; first < q; first += count) {
    struct arena a;
    struct error e = {0};
    arena_init(&a, NULL);
    const size_t most = random_below(state, 2) ? 4 : q;
    count = 1 + random_below(state, most < q - first ? most : q - first);
    struct layer_run *part = call_of_rows(l, whole, item, first, count, &a);
    if (random_below(state, 3) == 0) part->call.want = WEIGHTS_NONE;
    part->call.want_measures = measured && random_below(state, 2);
    assert_int_equal(layer_prepare(l->layer, part, &a, &e), STATUS_OK);
    compute(l->layer, part, 1e6);
    if (run_fault(&part->run, &e) != STATUS_OK) fail_msg("%s", e.detail);
    if (!same_bits_of_rows(l, whole, item, first, part, &e))
      fail_msg("queries %zu to %zu of %zu: %s", first, first + count, q, e.detail);
    arena_free(&a);
  }
}

/* A query alone, with a few others or with all of its item has the same bits. */
static void company_changes_no_bit(void **unused) {
  (void)unused;
  size_t whole_calls = 0;
  for (uint64_t round = 0; round < rounds(150); round++) {
    uint64_t state = 30000 + round;
    struct random_layer l;
    struct arena a;
    struct error e = {0};
    arena_init(&a, NULL);
    random_layer_init(&l, &state, GEMM_PACKED);
    struct layer_run *c = random_call(&l, &state, round % 4 ? 40 : 200, &a);
    const bool huge = exaggerate(&l, c, &state); /* then measures are beyond float32 */
    if (c->call.select == SELECT_SAMPLE)
      c->call.select = SELECT_HARD; /* a draw is of an item and a query */
    c->call.want_measures = !huge && random_below(&state, 4) == 0;
    assert_int_equal(layer_prepare(l.layer, c, &a, &e), STATUS_OK);
    compute(l.layer, c, 1e6);
    const bool whole = run_fault(&c->run, &e) == STATUS_OK;
    for (size_t i = 0; whole && i < c->geometry.items; i++)
      parts_are_of_the_whole(&l, c, i, !huge, &state);
    whole_calls += whole;
    arena_free(&a);
    random_layer_done(&l);
  }
  assert_in_range(whole_calls, rounds(150) * 2 / 3, rounds(150));
}

/* A call whose queries are its keys and values, with some of everything that leaves rows or heads
 * out. */
static struct layer_run *self_call(const struct random_layer *l, uint64_t *state, struct arena *a) {
  struct error e = {0};
  const size_t rows = 1 + random_below(state, 150);
  struct layer_run *c =
      plain_call(l, state, 1 + random_below(state, 3), rows, rows, WEIGHTS_NONE, a);
  int32_t *lens = arena_alloc(a, c->geometry.q_rows, sizeof *lens, &e);
  float *mask = arena_alloc(a, l->shape.heads, sizeof *mask, &e);
  for (size_t i = 0; i < c->geometry.q_rows; i++) lens[i] = (int32_t)random_below(state, rows + 1);
  for (size_t h = 0; h < l->shape.heads; h++) mask[h] = (float)random_below(state, 2);
  if (random_below(state, 2)) c->geometry.lens = lens;
  if (random_below(state, 2)) c->call.head_mask = mask;
  c->call.uniform_rows = random_below(state, 2);
  c->geometry.causal = random_below(state, 3) == 0;
  c->call.want = random_below(state, 2) ? WEIGHTS_PER_HEAD : WEIGHTS_NONE;
  c->call.keys = c->call.values = c->call.queries;
  return c;
}

static void self_attention_is_attention(enum gemm_engine engine) {
  enum { CALLS = 5 };
  for (uint64_t round = 0; round < rounds(20); round++) {
    uint64_t state = 9000 + round;
    struct random_layer l;
    struct arena a;
    struct error e = {0};
    arena_init(&a, NULL);
    (round % 4 == 3 ? parts_layer_init : plain_layer_init)(&l, &state, 1 + random_below(&state, 4),
                                                           1 + random_below(&state, 40), engine);
    struct layer_run *self[CALLS], *copy[CALLS], *between[CALLS]; /* the copy once more, merged */
    for (int i = 0; i < CALLS; i++) {
      self[i] = self_call(&l, &state, &a);
      copy[i] = call_again(self[i], &a);
      const size_t size = self[i]->geometry.q_rows * l.shape.query_size * sizeof(float);
      float *rows = arena_alloc(&a, 1, size, &e);
      copy[i]->call.keys = copy[i]->call.values = memcpy(rows, self[i]->call.queries, size);
      between[i] = call_again(copy[i], &a);
      assert_int_equal(layer_prepare(l.layer, self[i], &a, &e), STATUS_OK);
      assert_int_equal(layer_prepare(l.layer, copy[i], &a, &e), STATUS_OK);
      assert_int_equal(layer_prepare(l.layer, between[i], &a, &e), STATUS_OK);
      compute(l.layer, copy[i], 1e12);
      self[i]->run.next = &between[i]->run;
      if (i) between[i - 1]->run.next = &self[i]->run;
    }
    compute(l.layer, self[0], 3e4 * (double)(1 + random_below(&state, 50)));
    for (int i = 0; i < CALLS; i++) {
      no_bit_differs(&l, copy[i], self[i]);
      no_bit_differs(&l, copy[i], between[i]);
    }
    arena_free(&a);
    random_layer_done(&l);
  }
}

static void self_attention_in_one_walk_changes_no_bit(void **unused) {
  (void)unused;
  self_attention_is_attention(GEMM_PACKED);
  self_attention_is_attention(GEMM_OPENBLAS);
  self_attention_is_attention(GEMM_INT8);
  self_attention_is_attention(GEMM_INT8_BLOCK);
}

/* Bytes change the outputs and the norms of heads a little: a hidden head stays hidden, and a
 * head's contribution has no bias. */
static void bytes_hide_and_measure_heads(void **unused) {
  enum { HEADS = 4, SIZE = 8, ROWS = 20 };
  static const float mask[HEADS] = {1, 0, 1, 1};
  (void)unused;
  for (int hides = 0; hides < 2; hides++) {
    uint64_t state = 90;
    struct random_layer l;
    struct arena a;
    struct error e = {0};
    arena_init(&a, NULL);
    plain_layer_init(&l, &state, HEADS, SIZE, GEMM_PACKED);
    l.matrix[ROLE_OUTPUT].bias = random_floats(&a, &state, HEADS * SIZE, 5);
    double norm[2] = {0}, off = 0, all = 0;
    struct layer_run *c[2] = {plain_call(&l, &state, 1, ROWS, ROWS, WEIGHTS_NONE, &a)};
    c[1] = call_again(c[0], &a);
    for (int i = 0; i < 2; i++) {
      struct layer *made = layer_new(&l.shape, l.matrix, i ? GEMM_INT8 : GEMM_PACKED, &e);
      c[i]->call.head_mask = hides ? mask : NULL;
      c[i]->call.want_measures = !hides;
      assert_int_equal(layer_prepare(made, c[i], &a, &e), STATUS_OK);
      if (hides) /* the place of a hidden head is not written */
        for (size_t k = 0; k < ROWS * HEADS * SIZE; k++) c[i]->call.space->context[k] = 100;
      compute(made, c[i], 1e6);
      for (size_t h = 0; !hides && h < HEADS; h++) norm[i] += c[i]->call.measures->head[h].norm;
      layer_free(made);
    }
    for (size_t k = 0; k < ROWS * HEADS * SIZE; k++) {
      const double x = (double)c[0]->call.outputs[k];
      off += pow(x - (double)c[1]->call.outputs[k], 2), all += x * x;
    }
    assert_true(off > 0 && sqrt(off / all) < 0.03);
    assert_true(hides || fabs(norm[1] / norm[0] - 1) < 0.03);
    arena_free(&a);
    random_layer_done(&l);
  }
}

/* Inputs at one place are not the same rows where items have other numbers of keys than of
 * queries. */
static void other_rows_at_one_place_are_attended_to(void **unused) {
  (void)unused;
  const size_t list[][4] = {{3, 5, 10, 2}, {2, 3, 3, 2}, {4, 0, 0, 4}, {3, 5, 9, 5}};
  for (size_t n = 0; n < sizeof list / sizeof *list; n++) {
    uint64_t state = 70 + n;
    struct random_layer l;
    struct arena a;
    struct error e = {0};
    arena_init(&a, NULL);
    plain_layer_init(&l, &state, 2, 5, GEMM_PACKED);
    struct layer_run *c = plain_call(&l, &state, 2, 10, 10, WEIGHTS_PER_HEAD, &a);
    c->call.keys = c->call.values = c->call.queries;
    c->geometry.item[0] = (struct item){.q = list[n][0], .k = list[n][2]};
    c->geometry.item[1] =
        (struct item){.q = list[n][1], .k = list[n][3], .q_row = list[n][0], .k_row = list[n][2]};
    c->geometry.q_rows = list[n][0] + list[n][1], c->geometry.k_rows = list[n][2] + list[n][3];
    assert_int_equal(layer_prepare(l.layer, c, &a, &e), STATUS_OK);
    compute(l.layer, c, 1e6);
    compare(&l, c);
    arena_free(&a);
    random_layer_done(&l);
  }
}

/* Nor where their sizes differ: keys or values are so wide that a strip has room for few of them.
 */
static void wider_rows_at_one_place_are_attended_to(void **unused) {
  (void)unused;
  enum { ROWS = 64, NARROW = 16, WIDE = 8192 };
  for (unsigned wide = ROLE_KEY; wide <= ROLE_VALUE; wide++) {
    uint64_t state = 80;
    struct random_layer l = {.shape = plain_shape(1, NARROW)};
    struct arena a;
    struct error e = {0};
    arena_init(&a, NULL);
    arena_init(&l.arena, NULL);
    *(wide == ROLE_KEY ? &l.shape.key_size : &l.shape.value_size) = WIDE;
    float *weight = arena_alloc(&l.arena, NARROW * WIDE, sizeof *weight, &e);
    for (size_t i = 0; i < NARROW * WIDE; i++) weight[i] = random_float(&state) / 64;
    l.matrix[wide].weight = weight;
    l.layer = layer_new(&l.shape, l.matrix, GEMM_PACKED, &e);
    struct layer_run *c = plain_call(&l, &state, 1, ROWS, ROWS, WEIGHTS_PER_HEAD, &a);
    const float *rows = wide == ROLE_KEY ? c->call.keys : c->call.values;
    c->call.queries = c->call.keys = c->call.values = rows;
    compute(l.layer, c, 1e9);
    compare(&l, c);
    arena_free(&a);
    random_layer_done(&l);
  }
}

static void rows_of_weights_sum_to_one(void **unused) {
  (void)unused;
  uint64_t state = 7;
  struct random_layer l;
  struct arena a;
  arena_init(&a, NULL);
  plain_layer_init(&l, &state, 2, 32, GEMM_PACKED);
  struct layer_run *c = plain_call(&l, &state, 1, 70, 5000, WEIGHTS_PER_HEAD, &a);
  compute(l.layer, c, 1e7);
  for (size_t row = 0; row < 2 * 70; row++) {
    double sum = 0;
    for (size_t j = 0; j < 5000; j++) sum += c->call.weights[row * 5000 + j];
    if (!(fabs(sum - 1) <= 1e-6)) fail_msg("row %zu sums to %.9g", row, sum);
  }
  compare(&l, c);
  arena_free(&a);
  random_layer_done(&l);
}

/* One query, one key, sizes of one: the numbers go straight through, however large. */
struct bare {
  struct random_layer l;
  struct arena a;
  struct layer_run *c;
};

static void bare_init(struct bare *b, size_t keys, float cap) {
  memset(b, 0, sizeof *b);
  arena_init(&b->a, NULL);
  arena_init(&b->l.arena, NULL);
  b->l.shape = plain_shape(1, 1);
  b->l.shape.cap = cap;
  struct error e = {0};
  b->l.layer = layer_new(&b->l.shape, b->l.matrix, GEMM_AUTO, &e);
  uint64_t state = 1;
  b->c = plain_call(&b->l, &state, 1, 1, keys, WEIGHTS_PER_HEAD, &b->a);
}

static enum status bare_run(struct bare *b, const float *q, const float *k, const float *v) {
  struct error e = {0};
  b->c->call.queries = q, b->c->call.keys = k, b->c->call.values = v;
  assert_int_equal(layer_prepare(b->l.layer, b->c, &b->a, &e), STATUS_OK);
  compute(b->l.layer, b->c, 1e9);
  return run_fault(&b->c->run, &e);
}

static void bare_done(struct bare *b) {
  arena_free(&b->a);
  random_layer_done(&b->l);
}

/* Scores that climb from block to block make the online softmax rescale again and again. */
static void climbing_scores_agree_with_the_twin(void **unused) {
  (void)unused;
  for (float slope = -3; slope <= 3; slope += 0.75f) {
    struct bare b;
    float keys[700], values[700];
    uint64_t state = 9;
    for (int j = 0; j < 700; j++) keys[j] = slope * (float)j, values[j] = random_float(&state);
    bare_init(&b, 700, 0);
    assert_int_equal(bare_run(&b, &(float){1}, keys, values), STATUS_OK);
    compare(&b.l, b.c);
    bare_done(&b);
  }
}

/* One query's scores fall from block to block, so far that the exponential of the difference the
 * other way round exceeds the float32 range, while those of the query beside it rise. Additive
 * scores are kept from the first pass to the second, where what lies behind a block's last one in
 * its vector is no score. */
static void scores_far_below_zero_agree_with_the_twin(void **unused) {
  (void)unused;
  for (size_t keys = 1; keys <= 127; keys += 9) {
    uint64_t state = keys;
    struct random_layer l;
    struct arena a;
    struct error e = {0};
    arena_init(&a, NULL);
    for (;;) {
      random_layer_init(&l, &state, GEMM_PACKED);
      if (l.shape.score == SCORE_ADDITIVE && !l.shape.sigmoid) break;
      random_layer_done(&l);
    }
    struct layer_run *c = plain_call(&l, &state, 1, 2, keys, WEIGHTS_PER_HEAD, &a);
    float *bias = arena_alloc(&a, 2 * keys, sizeof *bias, &e);
    for (size_t j = 0; j < keys; j++) {
      bias[j] = j < 64 ? -95 : -190;
      bias[keys + j] = j < 64 ? -111 : -91;
    }
    c->geometry.bias = bias;
    assert_int_equal(layer_prepare(l.layer, c, &a, &e), STATUS_OK);
    compute(l.layer, c, 1e9);
    compare(&l, c);
    arena_free(&a);
    random_layer_done(&l);
  }
}

/* With a cap, too: the capped score would not show it. */
static void check_scores_beyond_float(float cap) {
  struct bare b;
  bare_init(&b, 2, cap);
  assert_int_equal(bare_run(&b, &(float){1e20f}, (float[]){1, 1e20f}, (float[]){1, 2}),
                   STATUS_NOT_FINITE);
  assert_int_equal(bare_run(&b, &(float){-1e20f}, (float[]){1, 1e20f}, (float[]){1, 2}),
                   STATUS_NOT_FINITE);
  assert_int_equal(bare_run(&b, &(float){INFINITY}, (float[]){1, 1}, (float[]){1, 2}),
                   STATUS_NOT_FINITE);
  assert_int_equal(bare_run(&b, &(float){1e20f}, (float[]){1, 1e18f}, (float[]){1, 2}), STATUS_OK);
  compare(&b.l, b.c);
  bare_done(&b);
}

static void scores_beyond_float_are_an_error(void **unused) {
  (void)unused;
  check_scores_beyond_float(0);
  check_scores_beyond_float(3);
}

static void huge_finite_scores_and_values_are_right(void **unused) {
  (void)unused;
  struct bare b;
  bare_init(&b, 3, 0);
  const float v[] = {FLT_MAX, FLT_MAX, -FLT_MAX};
  assert_int_equal(bare_run(&b, &(float){1e19f}, (float[]){1e19f, 1e19f, -3e19f}, v), STATUS_OK);
  assert_true(fabsf(b.c->call.outputs[0] / FLT_MAX - 1) < 1e-6f);
  assert_true(b.c->call.weights[0] == 0.5f && b.c->call.weights[1] == 0.5f &&
              b.c->call.weights[2] == 0);
  assert_int_equal(bare_run(&b, &(float){0}, (float[]){1, 2, 3}, v), STATUS_OK);
  assert_true(fabsf(b.c->call.outputs[0] / FLT_MAX - 1.0f / 3) < 1e-6f);
  bare_done(&b);
}

/* The sum of the weighted values leaves float32 unless it is shrunk, with a softmax while its
 * weights are not yet over their sum: of a query alone, of many, on two levels, with sigmoids. */
static void huge_values_are_right(void **unused) {
  (void)unused;
  enum { SIZE = 16, KEYS = 100 };
  const size_t queries[] = {1, 2, 40};
  const int32_t ends[] = {60, KEYS};
  for (int n = 0; n < 9; n++) {
    uint64_t state = 12;
    struct random_layer l = {.shape = plain_shape(1, SIZE)};
    struct arena a;
    struct error e = {0};
    arena_init(&a, NULL);
    arena_init(&l.arena, NULL);
    l.shape.sigmoid = n / 3 == 1;
    l.layer = layer_new(&l.shape, l.matrix, GEMM_PACKED, &e);
    struct layer_run *c = plain_call(&l, &state, 1, queries[n % 3], KEYS, WEIGHTS_PER_HEAD, &a);
    for (size_t i = 0; i < c->geometry.q_rows * SIZE; i++) ((float *)c->call.queries)[i] = 1;
    for (size_t i = 0; i < KEYS * SIZE; i++) {
      ((float *)c->call.keys)[i] = 0.1f * random_float(&state) - 1.5f; /* scores of -6 */
      ((float *)c->call.values)[i] = 3e38f;
    }
    if (n / 3 == 2) c->geometry.segment_end = ends, c->geometry.item[0].segments = 2;
    assert_int_equal(layer_prepare(l.layer, c, &a, &e), STATUS_OK);
    compute(l.layer, c, 1e6);
    compare(&l, c);
    arena_free(&a);
    random_layer_done(&l);
  }
}

/* A query is scaled before it meets the keys: what overflows there is an error, and not lost. */
static void a_scaled_query_beyond_float_is_an_error(void **unused) {
  (void)unused;
  struct bare b;
  bare_init(&b, 2, 0);
  b.l.shape.scale = 1e10f;
  struct error e = {0};
  layer_free(b.l.layer);
  b.l.layer = layer_new(&b.l.shape, b.l.matrix, GEMM_AUTO, &e);
  b.c->call.uniform_rows = true;
  assert_int_equal(bare_run(&b, &(float){1e30f}, (float[]){1e-30f, 2e-30f}, (float[]){1, 5}),
                   STATUS_NOT_FINITE);
  assert_int_equal(bare_run(&b, &(float){1e20f}, (float[]){1e-30f, 2e-30f}, (float[]){1, 1}),
                   STATUS_OK);
  assert_true(b.c->call.outputs[0] == 1);
  bare_done(&b);
}

/* Only rounding takes the mean key of a segment beyond its keys: where these are the greatest
 * floats, that is an error, and not lost. */
static void a_mean_key_beyond_float_is_an_error(void **unused) {
  (void)unused;
  enum { KEYS = 60 };
  size_t faults = 0;
  for (size_t keys = 1; keys <= KEYS; keys++) {
    struct bare b;
    float k[KEYS], v[KEYS];
    const int32_t end = (int32_t)keys;
    for (size_t j = 0; j < keys; j++) k[j] = FLT_MAX, v[j] = 1;
    bare_init(&b, keys, 0);
    b.c->geometry.segment_end = &end;
    b.c->geometry.item[0].segments = 1;
    const enum status status = bare_run(&b, &(float){1}, k, v);
    if (status == STATUS_OK)
      assert_true(fabsf(b.c->call.outputs[0] - 1) < 1e-6f);
    else
      faults++;
    bare_done(&b);
  }
  assert_in_range(faults, 1, KEYS / 2);
}

/* Inputs so large that scores and outputs leave float32 now and then: what the twin finds beyond
 * it, the layer finds too, and what the layer answers is right. */
static void what_is_beyond_float_is_never_answered(void **unused) {
  (void)unused;
  size_t beyond = 0;
  for (uint64_t round = 0; round < rounds(300); round++) {
    uint64_t state = 20000 + round;
    struct random_layer l;
    struct arena a;
    struct error e = {0};
    arena_init(&a, NULL);
    random_layer_init(&l, &state, GEMM_PACKED);
    struct layer_run *c = random_call(&l, &state, 8, &a);
    const float by = ldexpf(1, (int)random_below(&state, 127));
    float *queries = (float *)c->call.queries, *keys = (float *)c->call.keys,
          *values = (float *)c->call.values;
    for (size_t i = 0; i < c->geometry.q_rows * l.shape.query_size; i++) queries[i] *= by;
    for (size_t i = 0; i < c->geometry.k_rows * l.shape.key_size; i++) keys[i] *= by;
    for (size_t i = 0; i < c->geometry.k_rows * l.shape.value_size; i++) values[i] *= by;
    compute(l.layer, c, 1e5);
    if (run_fault(&c->run, &e) != STATUS_OK) {
      beyond++;
    } else {
      for (size_t i = 0; i < c->geometry.q_rows * l.shape.output_size; i++)
        assert_true(isfinite(c->call.outputs[i]));
      double *outputs = calloc(c->geometry.q_rows * l.shape.output_size + 1, sizeof *outputs);
      const struct ref_answer answer = {.outputs = outputs};
      assert_int_equal(attention_ref(&l.shape, l.matrix, &c->call, &answer, &e), STATUS_OK);
      free(outputs);
    }
    arena_free(&a);
    random_layer_done(&l);
  }
  assert_in_range(beyond, rounds(300) / 15, rounds(300) - rounds(300) / 15);
}

/* A pair that the query may not see does not count, though its score exceeds the float32 range. */
static void hidden_scores_beyond_float_are_fine(void **unused) {
  (void)unused;
  struct random_layer l = {.shape = plain_shape(1, 1)};
  struct arena a;
  struct error e = {0};
  arena_init(&a, NULL);
  arena_init(&l.arena, NULL);
  l.layer = layer_new(&l.shape, l.matrix, GEMM_AUTO, &e);
  uint64_t state = 1;
  struct layer_run *c = plain_call(&l, &state, 1, 2, 2, WEIGHTS_PER_HEAD, &a);
  c->call.queries = (float[]){1e20f, 1e-20f}, c->call.keys = (float[]){1, 1e20f},
  c->call.values = (float[]){5, 7};
  c->geometry.causal = true;
  assert_int_equal(layer_prepare(l.layer, c, &a, &e), STATUS_OK);
  compute(l.layer, c, 1e9);
  assert_int_equal(run_fault(&c->run, &e), STATUS_OK);
  assert_true(c->call.outputs[0] == 5);
  arena_free(&a);
  random_layer_done(&l);
}

static void the_first_fault_is_told(void **unused) {
  (void)unused;
  uint64_t state = 11;
  struct random_layer l;
  struct arena a;
  struct error e = {0};
  arena_init(&a, NULL);
  plain_layer_init(&l, &state, 2, 8, GEMM_PACKED);
  struct layer_run *c = plain_call(&l, &state, 3, 5, 200, WEIGHTS_NONE, &a);
  float *keys = (float *)c->call.keys;
  for (size_t x = 0; x < 16; x++) keys[(400 + 7) * 16 + x] = keys[(200 + 150) * 16 + x] = 3e38f;
  compute(l.layer, c, 1e3);
  assert_int_equal(run_fault(&c->run, &e), STATUS_NOT_FINITE);
  assert_string_equal(e.detail, "the projection of key 150 of item 1 exceeds the float32 range");
  arena_free(&a);
  random_layer_done(&l);
}

/* Rows that are read where they came in are told as rows that were projected are, whether or not
 * they are chosen, and in whichever head a query sees them. */
static void the_first_fault_in_place_is_told(void **unused) {
  (void)unused;
  static const struct {
    bool key;
    size_t row, column;
    const char *detail;
  } faults[] = {{false, 57, 3, "the projection of value 17 of item 1 exceeds the float32 range"},
                {false, 23, 15, "the projection of value 23 of item 0 exceeds the float32 range"},
                {true, 90, 9, "the projection of key 10 of item 2 exceeds the float32 range"}};
  uint64_t state = 12;
  struct random_layer l = {.shape = plain_shape(2, 8)};
  struct arena a;
  struct error e = {0};
  arena_init(&a, NULL);
  l.layer = layer_new(&l.shape, l.matrix, GEMM_PACKED, &e);
  assert_non_null(l.layer);
  struct layer_run *first = plain_call(&l, &state, 3, 2, 40, WEIGHTS_NONE, &a);
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    struct error told = {0};
    struct layer_run *c = call_again(first, &a);
    float *rows = (float *)(faults[i].key ? c->call.keys : c->call.values);
    rows[faults[i].row * 16 + faults[i].column] = INFINITY;
    assert_int_equal(layer_prepare(l.layer, c, &a, &e), STATUS_OK);
    compute(l.layer, c, 1e3);
    assert_int_equal(run_fault(&c->run, &told), STATUS_NOT_FINITE);
    assert_string_equal(told.detail, faults[i].detail);
  }
  layer_free(l.layer);
  arena_free(&a);
}

/* A call of one item whose key `bad` weighs nothing; where `masked`, the second head does not even
 * see it. */
static struct layer_run *call_with_idle_key(const struct random_layer *l, size_t queries,
                                            size_t bad, bool masked, struct arena *a) {
  enum { KEYS = 40 };
  struct error e = {0};
  uint64_t state = 13;
  struct layer_run *c = plain_call(l, &state, 1, queries, KEYS, WEIGHTS_NONE, a);
  for (size_t x = 0; x < queries * 16; x++) ((float *)c->call.queries)[x] = 1;
  for (size_t x = 0; x < 16; x++) ((float *)c->call.keys)[bad * 16 + x] = -1000;
  if (!masked) return c;
  uint8_t *mask = arena_alloc(a, 2 * queries * KEYS, sizeof *mask, &e);
  memset(mask, 1, 2 * queries * KEYS);
  for (size_t i = queries; i < 2 * queries; i++) mask[i * KEYS + bad] = 0;
  c->geometry.mask = mask, c->geometry.mask_per_head = true;
  return c;
}

/* What is not finite leads to an error wherever a query may see it, be the item's queries few or
 * many: also in a value that is not chosen, and in a head's part of a key that only another head
 * sees. */
static void what_weighs_nothing_is_looked_at(void **unused) {
  (void)unused;
  static const struct {
    enum select select;
    bool key;
    const char *detail;
  } cases[] = {
      {SELECT_HARD, false, "the projection of value 7 of item 0 exceeds the float32 range"},
      {SELECT_SAMPLE, false, "the projection of value 7 of item 0 exceeds the float32 range"},
      {SELECT_SOFT, true, "the projection of key 7 of item 0 exceeds the float32 range"}};
  struct random_layer l = {.shape = plain_shape(2, 8)};
  struct error e = {0};
  l.layer = layer_new(&l.shape, l.matrix, GEMM_PACKED, &e);
  assert_non_null(l.layer);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (size_t queries = 1; queries <= 21; queries += 20) {
      struct arena a;
      struct error told = {0};
      arena_init(&a, NULL);
      struct layer_run *c = call_with_idle_key(&l, queries, 7, cases[i].key, &a);
      ((float *)(cases[i].key ? c->call.keys : c->call.values))[7 * 16 + 15] = NAN;
      c->call.select = cases[i].select;
      assert_int_equal(layer_prepare(l.layer, c, &a, &e), STATUS_OK);
      compute(l.layer, c, 1e3);
      assert_int_equal(run_fault(&c->run, &told), STATUS_NOT_FINITE);
      assert_string_equal(told.detail, cases[i].detail);
      arena_free(&a);
    }
  layer_free(l.layer);
}

/* Two items of two queries, of which one sees all keys and the other, here and there, none. */
static struct layer_run *wide_call_in_place(const struct random_layer *l, uint64_t *state,
                                            const float *head_mask, struct arena *a) {
  enum { KEYS = 3000 };
  struct error e = {0};
  struct layer_run *c = plain_call(l, state, 2, 2, KEYS, WEIGHTS_NONE, a);
  int32_t *lens = arena_alloc(a, 4, sizeof *lens, &e);
  assert_non_null(lens);
  for (size_t i = 0; i < 4; i++) lens[i] = i % 2 && random_below(state, 2) ? 0 : KEYS;
  c->geometry.lens = lens;
  c->call.head_mask = head_mask;
  c->call.uniform_rows = random_below(state, 2);
  c->call.want = (enum weights)random_below(state, 3);
  return c;
}

/* Heads that are units of their own are computed together where they follow each other in a span,
 * but for those that are left out. */
static void spans_of_heads_change_no_bit(void **unused) {
  (void)unused;
  enum { HEADS = 6 };
  static const float head_mask[HEADS] = {0, 1, 0, 1, 0.5f, 1};
  struct random_layer l = {.shape = plain_shape(HEADS, 16)};
  struct error e = {0};
  uint64_t state = 21;
  l.layer = layer_new(&l.shape, l.matrix, GEMM_PACKED, &e);
  assert_non_null(l.layer);
  for (size_t round = 0; round < rounds(12); round++) {
    struct arena a;
    arena_init(&a, NULL);
    struct layer_run *first =
        wide_call_in_place(&l, &state, random_below(&state, 3) ? head_mask : NULL, &a);
    struct layer_run *c[2];
    for (int i = 0; i < 2; i++) {
      c[i] = call_again(first, &a);
      assert_int_equal(layer_prepare(l.layer, c[i], &a, &e), STATUS_OK);
      compute(l.layer, c[i], i == 0 ? 1 : 1e12);
      assert_int_equal(run_fault(&c[i]->run, &e), STATUS_OK);
      compare(&l, c[i]);
    }
    no_bit_differs(&l, c[0], c[1]);
    arena_free(&a);
  }
  layer_free(l.layer);
}

int main(void) {
  gemm_blas_init();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(small_calls_agree_with_the_twin),
      cmocka_unit_test(larger_calls_agree_with_the_twin),
      cmocka_unit_test(openblas_agrees_with_the_twin),
      cmocka_unit_test(few_queries_agree_with_the_twin),
      cmocka_unit_test(merging_changes_no_bit),
      cmocka_unit_test(merging_changes_no_bit_with_openblas),
      cmocka_unit_test(company_changes_no_bit),
      cmocka_unit_test(self_attention_in_one_walk_changes_no_bit),
      cmocka_unit_test(bytes_hide_and_measure_heads),
      cmocka_unit_test(other_rows_at_one_place_are_attended_to),
      cmocka_unit_test(wider_rows_at_one_place_are_attended_to),
      cmocka_unit_test(rows_of_weights_sum_to_one),
      cmocka_unit_test(climbing_scores_agree_with_the_twin),
      cmocka_unit_test(scores_far_below_zero_agree_with_the_twin),
      cmocka_unit_test(scores_beyond_float_are_an_error),
      cmocka_unit_test(a_scaled_query_beyond_float_is_an_error),
      cmocka_unit_test(huge_finite_scores_and_values_are_right),
      cmocka_unit_test(huge_values_are_right),
      cmocka_unit_test(a_mean_key_beyond_float_is_an_error),
      cmocka_unit_test(what_is_beyond_float_is_never_answered),
      cmocka_unit_test(hidden_scores_beyond_float_are_fine),
      cmocka_unit_test(the_first_fault_is_told),
      cmocka_unit_test(the_first_fault_in_place_is_told),
      cmocka_unit_test(what_weighs_nothing_is_looked_at),
      cmocka_unit_test(spans_of_heads_change_no_bit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
