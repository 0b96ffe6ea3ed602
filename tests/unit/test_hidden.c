/* test_hidden: what a query does not see changes nothing, not even in bits; what is no number where
 * it does see is an error; and heads that see different things. Runs at the level that ATTEND_CPU
 * allows. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "core/attention/measures.h"
#include "core/attention/sight.h"
#include "tests/support/compare.h"
#include "tests/support/rounds.h"

struct bench {
  struct random_layer l;
  struct arena a;
  uint64_t state;
  struct layer_run *c;
};

static void bench_random(struct bench *b, uint64_t seed, size_t most) {
  *b = (struct bench){.state = seed};
  arena_init(&b->a, NULL);
  random_layer_init(&b->l, &b->state, GEMM_PACKED);
  b->c = random_call(&b->l, &b->state, most, &b->a);
}

static void bench_done(struct bench *b) {
  arena_free(&b->a);
  random_layer_done(&b->l);
}

static void *take(struct bench *b, size_t count, size_t size) {
  struct error e = {0};
  void *p = arena_alloc(&b->a, count, size, &e);
  assert_non_null(p);
  return p;
}

static enum status run(struct bench *b, struct layer_run *c) {
  struct error e = {0};
  assert_int_equal(layer_prepare(b->l.layer, c, &b->a, &e), STATUS_OK);
  compute(b->l.layer, c, 1e5);
  return run_fault(&c->run, &e);
}

static void agrees(struct bench *b, struct layer_run *c) {
  struct error e = {0};
  assert_int_equal(run(b, c), STATUS_OK);
  if (!agrees_with_twin(&b->l, c, &e)) fail_msg("%s", e.detail);
}

static void no_bit_differs(const struct bench *b, const struct layer_run *x,
                           const struct layer_run *y) {
  struct error e = {0};
  if (!same_bits(&b->l, x, y, &e)) fail_msg("%s", e.detail);
  if (!x->call.measures) return;
  assert_int_equal(x->call.measures->rows, y->call.measures->rows);
  assert_memory_equal(x->call.measures->head, y->call.measures->head,
                      b->l.shape.heads * sizeof *x->call.measures->head);
}

static float garbage(struct bench *b) {
  const float any[] = {NAN, -NAN, INFINITY, -INFINITY, 3e38f, -FLT_MAX, 1e-40f};
  return any[random_below(&b->state, sizeof any / sizeof *any)];
}

/* --- what is seen --- */

/* A head that is masked to zero counts only where it is shown. */
static bool head_counts(const struct layer_run *c, size_t head) {
  return !c->call.head_mask || c->call.head_mask[head] != 0 || c->call.want != WEIGHTS_NONE ||
         c->call.want_pointers || c->call.want_measures;
}

static bool pair_is_seen(const struct bench *b, const struct item *item, size_t i, size_t j) {
  for (size_t h = 0; h < b->l.shape.heads; h++)
    if ((head_counts(b->c, h) || !b->c->geometry.mask_per_head) &&
        sight_allows(&b->c->geometry, item, h, i, j))
      return true;
  return false;
}

static bool key_is_seen(const struct bench *b, const struct item *item, size_t j) {
  for (size_t i = 0; i < item->q; i++)
    if (pair_is_seen(b, item, i, j)) return true;
  return false;
}

static bool query_sees(const struct bench *b, const struct item *item, size_t i) {
  for (size_t j = 0; j < item->k; j++)
    if (pair_is_seen(b, item, i, j)) return true;
  return false;
}

/* --- what is hidden does not show --- */

static void spoil(struct bench *b, float *row, size_t size) {
  for (size_t x = 0; x < size; x++) row[x] = garbage(b);
}

static float *copy_of(struct bench *b, const float *x, size_t count) {
  return memcpy(take(b, count, sizeof *x), x, count * sizeof *x);
}

/* Rows of keys and values that no query sees, and of queries that see nothing. */
static void spoil_rows(struct bench *b, struct layer_run *to) {
  const struct layer_shape *s = &b->l.shape;
  const struct layer_run *c = b->c;
  float *queries = copy_of(b, c->call.queries, c->geometry.q_rows * s->query_size);
  float *keys = copy_of(b, c->call.keys, c->geometry.k_rows * s->key_size);
  float *values = copy_of(b, c->call.values, c->geometry.k_rows * s->value_size);
  for (const struct item *item = c->geometry.item; item < c->geometry.item + c->geometry.items;
       item++) {
    for (size_t i = 0; i < item->q; i++)
      if (!query_sees(b, item, i))
        spoil(b, queries + (item->q_row + i) * s->query_size, s->query_size);
    for (size_t j = 0; j < item->k; j++) {
      if (key_is_seen(b, item, j)) continue;
      spoil(b, keys + (item->k_row + j) * s->key_size, s->key_size);
      spoil(b, values + (item->k_row + j) * s->value_size, s->value_size);
    }
  }
  to->call.queries = queries, to->call.keys = keys, to->call.values = values;
}

/* Is the number at `at` of an item's bias added to anything that is seen? */
static bool bias_is_seen(const struct bench *b, const struct item *item, size_t at) {
  const size_t i = at / item->k % item->q, j = at % item->k;
  for (size_t h = 0; h < b->l.shape.heads; h++)
    if ((!b->c->geometry.bias_per_head || h == at / item->k / item->q) &&
        sight_allows(&b->c->geometry, item, h, i, j))
      return true;
  return false;
}

static size_t bias_count(const struct bench *b, const struct item *item) {
  return item->q * item->k * (b->c->geometry.bias_per_head ? b->l.shape.heads : 1);
}

/* A bias of its own for the call, which may have none; and what is seen of it at all. */
static float *own_bias(struct bench *b, size_t *seen) {
  struct layer_run *c = b->c;
  size_t count = 0;
  for (struct item *item = c->geometry.item; item < c->geometry.item + c->geometry.items; item++) {
    item->bias_at = count;
    count += bias_count(b, item);
  }
  float *bias = take(b, count, sizeof *bias);
  for (size_t i = 0; i < count; i++) bias[i] = random_float(&b->state);
  *seen = 0;
  for (const struct item *item = c->geometry.item; item < c->geometry.item + c->geometry.items;
       item++)
    for (size_t i = 0; i < bias_count(b, item); i++) *seen += bias_is_seen(b, item, i);
  c->geometry.bias = bias;
  return bias;
}

static void hidden_rows_do_not_show(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < rounds(90); round++) {
    struct bench b;
    bench_random(&b, 6000 + round, 60);
    b.c->call.uniform_rows = false;
    b.c->call.want_measures = round % 3 == 0;
    struct layer_run *again = call_again(b.c, &b.a);
    spoil_rows(&b, again);
    assert_int_equal(run(&b, b.c), STATUS_OK);
    assert_int_equal(run(&b, again), STATUS_OK);
    no_bit_differs(&b, b.c, again);
    bench_done(&b);
  }
}

static void a_hidden_bias_does_not_show(void **unused) {
  (void)unused;
  size_t hidden = 0;
  for (uint64_t round = 0; round < rounds(90); round++) {
    struct bench b;
    size_t seen;
    bench_random(&b, 7000 + round, round % 2 ? 70 : 6);
    b.c->call.want_measures = round % 3 == 0;
    const float *bias = own_bias(&b, &seen);
    struct layer_run *again = call_again(b.c, &b.a);
    size_t count = 0;
    for (size_t i = 0; i < b.c->geometry.items; i++)
      count += bias_count(&b, &b.c->geometry.item[i]);
    float *dirty = copy_of(&b, bias, count);
    for (size_t n = 0; n < b.c->geometry.items; n++)
      for (size_t i = 0; i < bias_count(&b, &b.c->geometry.item[n]); i++) {
        if (bias_is_seen(&b, &b.c->geometry.item[n], i)) continue;
        dirty[b.c->geometry.item[n].bias_at + i] = garbage(&b);
        hidden++;
      }
    again->geometry.bias = dirty;
    assert_int_equal(run(&b, b.c), STATUS_OK);
    assert_int_equal(run(&b, again), STATUS_OK);
    no_bit_differs(&b, b.c, again);
    agrees(&b, again);
    bench_done(&b);
  }
  assert_true(hidden > 110 * rounds(90));
}

/* One number of the bias that is seen, whatever comes of the scores. */
static void a_bias_that_is_no_number_is_an_error(void **unused) {
  (void)unused;
  size_t faults = 0;
  for (uint64_t round = 0; round < rounds(120); round++) {
    struct bench b;
    size_t seen;
    bench_random(&b, 9000 + round, round % 2 ? 70 : 6);
    b.c->call.head_mask = NULL;
    float *bias = own_bias(&b, &seen);
    if (seen > 0) {
      size_t skip = random_below(&b.state, seen);
      for (size_t n = 0; n < b.c->geometry.items; n++)
        for (size_t i = 0; i < bias_count(&b, &b.c->geometry.item[n]); i++)
          if (bias_is_seen(&b, &b.c->geometry.item[n], i) && skip-- == 0)
            bias[b.c->geometry.item[n].bias_at + i] =
                (const float[]){NAN, INFINITY, -INFINITY}[round % 3];
      assert_int_equal(run(&b, b.c), STATUS_NOT_FINITE);
      faults++;
    }
    bench_done(&b);
  }
  assert_true(faults > rounds(120) / 2);
}

/* --- a mask for each head --- */

enum { HEADS = 2, QUERIES = 3, KEYS = 4 };

/* Row 0: head 0 sees nothing, head 1 key 2. Row 1: no head sees anything. Row 2: one key each. */
static const uint8_t masks[HEADS * QUERIES * KEYS] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0,
                                                      0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0};
static const int32_t only[HEADS][QUERIES] = {{-1, -1, 1}, {2, -1, 0}};

/* `size` decides whether keys lie in the lanes. */
static void bench_masks(struct bench *b, size_t size) {
  *b = (struct bench){.state = 3};
  arena_init(&b->a, NULL);
  arena_init(&b->l.arena, NULL);
  struct error e = {0};
  b->l.shape = plain_shape(HEADS, size);
  b->l.layer = layer_new(&b->l.shape, b->l.matrix, GEMM_PACKED, &e);
  b->c = plain_call(&b->l, &b->state, 1, QUERIES, KEYS, WEIGHTS_PER_HEAD, &b->a);
  b->c->geometry.mask = masks;
  b->c->geometry.mask_per_head = b->c->call.want_pointers = true;
}

static void check_masked(const struct bench *b, size_t size) {
  const struct layer_run *c = b->c;
  for (size_t h = 0; h < HEADS; h++)
    for (size_t i = 0; i < QUERIES; i++) {
      const int32_t key = only[h][i];
      const bool uniform = key < 0 && c->call.uniform_rows;
      assert_int_equal(c->call.pointers[h * QUERIES + i], key);
      for (int32_t j = 0; j < KEYS; j++)
        assert_true(c->call.weights[(h * QUERIES + i) * KEYS + (size_t)j] == (uniform    ? 0.25f
                                                                              : j == key ? 1.0f
                                                                                         : 0.0f));
      for (size_t x = 0; x < size && !uniform; x++) {
        const size_t column = h * size + x;
        const float right = key < 0 ? 0 : c->call.values[(size_t)key * HEADS * size + column];
        const float got = c->call.outputs[i * HEADS * size + column];
        assert_true(memcmp(&got, &right, sizeof got) == 0);
      }
    }
}

static void heads_see_what_their_masks_leave(void **unused) {
  (void)unused;
  for (size_t size = 4; size <= 64; size += 60)
    for (enum select select = SELECT_SOFT; select <= SELECT_SAMPLE; select++)
      for (int uniform = 0; uniform <= (select == SELECT_SOFT); uniform++) {
        struct bench b;
        bench_masks(&b, size);
        b.c->call.select = select;
        b.c->call.uniform_rows = uniform;
        agrees(&b, b.c);
        check_masked(&b, size);
        bench_done(&b);
      }
}

/* A negative factor makes no zero of a blind row negative. */
static void blind_heads_have_plain_zeros(void **unused) {
  (void)unused;
  for (size_t size = 4; size <= 64; size += 60)
    for (int sigmoid = 0; sigmoid < 2; sigmoid++) {
      struct bench b;
      struct error e = {0};
      bench_masks(&b, size);
      b.l.shape.sigmoid = sigmoid;
      layer_free(b.l.layer);
      b.l.layer = layer_new(&b.l.shape, b.l.matrix, GEMM_PACKED, &e);
      b.c->call.head_mask = (const float[]){-1, -2};
      agrees(&b, b.c);
      for (size_t x = 0; x < size; x++) /* of head 0 in row 0, of both in row 1 */
        assert_false(signbit(b.c->call.outputs[x]) ||
                     signbit(b.c->call.outputs[HEADS * size + x]) ||
                     signbit(b.c->call.outputs[(HEADS + 1) * size + x]));
      bench_done(&b);
    }
}

/* Key 2 is seen by head 1 alone. */
static void what_only_a_masked_head_sees_is_hidden(void **unused) {
  (void)unused;
  struct bench b;
  bench_masks(&b, 4);
  b.c->call.head_mask = (const float[]){1, 0};
  b.c->call.want = WEIGHTS_NONE;
  b.c->call.want_pointers = false;
  agrees(&b, b.c);
  struct layer_run *again = call_again(b.c, &b.a);
  float *keys = copy_of(&b, b.c->call.keys, KEYS * HEADS * 4);
  spoil(&b, keys + 2 * HEADS * 4, HEADS * 4);
  keys[2 * HEADS * 4 + 5] = NAN;
  again->call.keys = keys;
  agrees(&b, again);
  no_bit_differs(&b, b.c, again);
  again->call.want_pointers = true;
  assert_int_equal(run(&b, again), STATUS_NOT_FINITE);
  bench_done(&b);
}

/* A row counts if any head sees something; the other heads then weigh nothing in it. */
static void measures_of_heads_that_see_nothing(void **unused) {
  (void)unused;
  for (int uniform = 0; uniform < 2; uniform++) {
    struct bench b;
    bench_masks(&b, 4);
    b.c->call.uniform_rows = uniform;
    b.c->call.want_measures = true;
    assert_int_equal(run(&b, b.c), STATUS_OK);
    const struct measures *m = b.c->call.measures;
    assert_int_equal(m->rows, 2);
    assert_true(m->head[0].confidence == 0.5 && m->head[1].confidence == 1);
    assert_true(m->head[0].distance == 0.5 && m->head[1].distance == 2);
    assert_true(m->head[0].entropy == 0 && m->head[1].entropy == 0);
    /* Row 0: one against nothing, ln 2 / 2. Row 2: one against another, ln 2. */
    assert_true(fabs(m->divergence[1] - 0.75 * log(2)) < 1e-6);
    bench_done(&b);
  }
}

int main(void) {
  gemm_blas_init();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(hidden_rows_do_not_show),
      cmocka_unit_test(a_hidden_bias_does_not_show),
      cmocka_unit_test(a_bias_that_is_no_number_is_an_error),
      cmocka_unit_test(heads_see_what_their_masks_leave),
      cmocka_unit_test(blind_heads_have_plain_zeros),
      cmocka_unit_test(what_only_a_masked_head_sees_is_hidden),
      cmocka_unit_test(measures_of_heads_that_see_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
