/* test_trace: how one query's weights come about, beside the readable twin, and beside what the
 * layer answers: whatever is asked, alone or in company, however the work is cut. Runs at the level
 * that ATTEND_CPU allows. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "core/attention/layer_parts.h"
#include "core/attention/trace.h"
#include "core/reference/attention_ref.h"
#include "tests/support/compare.h"
#include "tests/support/rounds.h"

enum { ROUNDS = 400 };

struct bench {
  struct random_layer l;
  struct arena a;
  uint64_t state;
};

static void bench_init(struct bench *b, uint64_t seed) {
  *b = (struct bench){.state = seed};
  arena_init(&b->a, NULL);
}

static void bench_done(struct bench *b) {
  arena_free(&b->a);
  random_layer_done(&b->l);
}

/* The same request with a trace, unprepared. */
static struct layer_run *traced(struct bench *b, const struct layer_run *c, size_t item,
                                size_t head, size_t row) {
  struct layer_run *again = call_again(c, &b->a);
  again->call.trace = random_room(&b->a, 1, sizeof *again->call.trace);
  *again->call.trace = (struct trace){.item = item, .head = head, .row = row};
  return again;
}

static void prepare(struct bench *b, struct layer_run *c) {
  struct error e = {0};
  assert_int_equal(layer_prepare(b->l.layer, c, &b->a, &e), STATUS_OK);
}

static enum status run(struct bench *b, struct layer_run *c, double work, struct error *e) {
  prepare(b, c);
  compute(b->l.layer, c, work);
  return run_fault(&c->run, e);
}

static void must_run(struct bench *b, struct layer_run *c, double work) {
  struct error e = {0};
  if (run(b, c, work, &e) != STATUS_OK) fail_msg("%s", e.detail);
}

/* A call in which some item has a query, and one of these in some head. */
static struct layer_run *draw_call(struct bench *b, size_t most, size_t *item, size_t *head,
                                   size_t *row) {
  for (;;) {
    struct layer_run *c = random_call(&b->l, &b->state, most, &b->a);
    if (c->geometry.q_rows == 0) continue;
    do *item = random_below(&b->state, c->geometry.items);
    while (c->geometry.item[*item].q == 0);
    *head = random_below(&b->state, b->l.shape.heads);
    *row = random_below(&b->state, c->geometry.item[*item].q);
    return c;
  }
}

/* --- beside the twin --- */

static struct ref_trace place_twin(struct bench *b, const struct trace *t) {
  return (struct ref_trace){.query = random_room(&b->a, t->size, sizeof(double)),
                            .keys = random_room(&b->a, t->keys * t->size, sizeof(double)),
                            .values = random_room(&b->a, t->keys * t->value_size, sizeof(double)),
                            .products = random_room(&b->a, t->keys, sizeof(double)),
                            .scores = random_room(&b->a, t->keys, sizeof(double)),
                            .weights = random_room(&b->a, t->keys, sizeof(double)),
                            .context = random_room(&b->a, t->value_size, sizeof(double))};
}

/* What is exactly 0 is so in both. */
static void near(const char *what, const float *x, const double *right, size_t count,
                 double bound) {
  for (size_t i = 0; i < count; i++)
    if (!(fabs(x[i] - right[i]) <= bound * (1 + fabs(right[i]))) || (right[i] == 0 && x[i] != 0))
      fail_msg("%s %zu: %.9g, should be %.9g", what, i, x[i], right[i]);
}

static void compare_with_twin(struct bench *b, const struct layer_run *c) {
  struct error e = {0};
  const struct trace *t = c->call.trace;
  struct ref_trace right = place_twin(b, t);
  const struct ref_answer answer = {
      .outputs =
          random_room(&b->a, c->geometry.q_rows * b->l.shape.output_size + 1, sizeof(double)),
      .chosen = c->call.select == SELECT_SOFT ? NULL : c->call.pointers,
      .trace = &right};
  if (attention_ref(&b->l.shape, b->l.matrix, &c->call, &answer, &e)) fail_msg("%s", e.detail);
  const double d = sqrt((double)(t->size + t->value_size));
  near("query", t->query, right.query, t->size, 1e-5);
  near("key", t->key, right.keys, t->keys * t->size, 1e-5);
  near("value", t->value, right.values, t->keys * t->value_size, 1e-5);
  near("product", t->product, right.products, t->keys, 1e-5 * d);
  near("score", t->score, right.scores, t->keys, 1e-5 * d);
  near("weight", t->weight, right.weights, t->keys, 2e-6);
  near("context", t->context, right.context, t->value_size, 1e-5);
}

/* --- beside the layer --- */

static void same(const char *what, const float *x, const float *y, size_t count) {
  if (count > 0 && memcmp(x, y, count * sizeof *x) != 0) fail_msg("bits of the %s differ", what);
}

static void compare_traces(const struct layer_run *x, const struct layer_run *y) {
  struct error e = {0};
  if (!same_trace(x->call.trace, y->call.trace, &e)) fail_msg("%s", e.detail);
}

/* The weights that the layer answers with, and the context that it has where nothing multiplies it.
 */
static void compare_with_answer(struct bench *b, const struct layer_run *c) {
  const struct trace *t = c->call.trace;
  const struct item *item = &c->geometry.item[t->item];
  struct layer_run *whole = call_again(c, &b->a);
  whole->call.trace = NULL;
  whole->call.head_mask = NULL;
  whole->call.want = WEIGHTS_PER_HEAD;
  must_run(b, whole, 1e5);
  const size_t d_v = b->l.shape.value_head_size, wide = b->l.shape.heads * d_v;
  same("answer's weights", t->weight,
       whole->call.weights + whole->call.weights_at[t->item] +
           (t->head * item->q + t->row) * item->k,
       item->k);
  same("layer's context", t->context,
       whole->call.space->context + (item->q_row + t->row) * wide + t->head * d_v, d_v);
}

/* What is asked for besides has the same bits with a trace and without. */
static void compare_without(struct bench *b, const struct layer_run *c) {
  struct error e = {0};
  struct layer_run *plain = call_again(c, &b->a);
  plain->call.trace = NULL;
  must_run(b, plain, 1e6);
  if (!same_bits(&b->l, c, plain, &e)) fail_msg("%s", e.detail);
}

static void a_trace_agrees_with_the_twin_and_the_answer(void **unused) {
  (void)unused;
  for (uint64_t seed = 0; seed < rounds(ROUNDS); seed++) {
    struct bench b;
    size_t item, head, row;
    bench_init(&b, 1000 + seed);
    random_layer_init(&b.l, &b.state, seed % 3 ? GEMM_PACKED : GEMM_OPENBLAS);
    const size_t most = seed % 4 ? 30 : 150;
    const struct layer_run *drawn = draw_call(&b, most, &item, &head, &row);
    struct layer_run *c = traced(&b, drawn, item, head, row);
    if (c->call.select != SELECT_SOFT) c->call.want_pointers = true;
    must_run(&b, c, seed % 2 ? 1e4 : 1e9);
    compare_with_twin(&b, c);
    compare_with_answer(&b, c);
    compare_without(&b, c);
    bench_done(&b);
  }
}

/* Other calls beside it, and another cut; and the query alone, in an item of its own. */
static void a_trace_has_the_same_bits_in_any_company(void **unused) {
  (void)unused;
  for (uint64_t seed = 0; seed < rounds(ROUNDS / 4); seed++) {
    struct bench b;
    size_t item, head, row;
    bench_init(&b, 5000 + seed);
    random_layer_init(&b.l, &b.state, GEMM_PACKED);
    const struct layer_run *drawn = draw_call(&b, 60, &item, &head, &row);
    struct layer_run *c = traced(&b, drawn, item, head, row);
    struct layer_run *again = traced(&b, drawn, item, head, row);
    struct layer_run *other = random_call(&b.l, &b.state, 90, &b.a);
    must_run(&b, c, 1e9);
    prepare(&b, again);
    other->run.next = &again->run;
    compute(b.l.layer, other, 1e3);
    compare_traces(c, again);
    if (c->call.select != SELECT_SAMPLE) { /* what is drawn depends on the place */
      struct layer_run *alone =
          traced(&b, call_of_rows(&b.l, drawn, item, row, 1, &b.a), 0, head, 0);
      must_run(&b, alone, 1e5);
      compare_traces(c, alone);
    }
    bench_done(&b);
  }
}

/* Heads that head_mask leaves out are computed where they are traced: of them the outputs take
 * nothing. */
static void a_head_that_is_left_out_has_a_trace(void **unused) {
  (void)unused;
  for (uint64_t seed = 0; seed < rounds(ROUNDS / 4); seed++) {
    struct bench b;
    size_t item, head, row;
    bench_init(&b, 7000 + seed);
    random_layer_init(&b.l, &b.state, GEMM_PACKED);
    struct layer_run *drawn = draw_call(&b, 40, &item, &head, &row);
    drawn->call.select = SELECT_SOFT;
    drawn->call.want = WEIGHTS_NONE;
    drawn->call.want_pointers = false;
    float *mask = random_room(&b.a, b.l.shape.heads, sizeof *mask);
    for (size_t h = 0; h < b.l.shape.heads; h++) mask[h] = h == head ? 0 : (float)(h % 2);
    struct layer_run *full = traced(&b, drawn, item, head, row);
    full->call.head_mask = NULL;
    drawn->call.head_mask = mask;
    struct layer_run *c = traced(&b, drawn, item, head, row);
    must_run(&b, full, 1e5);
    must_run(&b, c, 1e5);
    compare_traces(full, c);
    compare_with_twin(&b, c);
    compare_without(&b, c);
    bench_done(&b);
  }
}

/* --- what is not seen --- */

static void plain_bench(struct bench *b, uint64_t seed, size_t heads, size_t size) {
  bench_init(b, seed);
  plain_layer_init(&b->l, &b->state, heads, size, GEMM_PACKED);
}

static bool is_zero(const float *x, size_t count) {
  bool zero = true;
  for (size_t i = 0; i < count; i++) zero &= x[i] == 0;
  return zero;
}

static void keys_that_are_not_seen_are_zeros(void **unused) {
  (void)unused;
  enum { KEYS = 9, SIZE = 4 };
  struct bench b;
  plain_bench(&b, 1, 2, SIZE);
  struct layer_run *c = plain_call(&b.l, &b.state, 2, 3, KEYS, WEIGHTS_NONE, &b.a);
  c->geometry.lens = (const int32_t[]){KEYS, KEYS, KEYS, KEYS, 4, KEYS};
  struct layer_run *one = traced(&b, c, 1, 1, 1);
  must_run(&b, one, 1e5);
  const struct trace *t = one->call.trace;
  for (size_t j = 0; j < KEYS; j++) {
    const bool hidden = j >= 4;
    assert_int_equal(t->seen[j], !hidden);
    assert_int_equal(is_zero(t->key + j * SIZE, SIZE), hidden);
    assert_int_equal(is_zero(t->value + j * SIZE, SIZE), hidden);
    assert_int_equal(t->product[j] == 0, hidden);
    assert_int_equal(t->score[j] == 0, hidden);
    assert_int_equal(t->weight[j] == 0, hidden);
  }
  compare_with_twin(&b, one);
  bench_done(&b);
}

static void a_query_that_sees_nothing_has_zeros_or_all_values(void **unused) {
  (void)unused;
  enum { KEYS = 5, SIZE = 4 };
  struct bench b;
  plain_bench(&b, 2, 2, SIZE);
  struct layer_run *c = plain_call(&b.l, &b.state, 1, 3, KEYS, WEIGHTS_NONE, &b.a);
  c->geometry.lens = (const int32_t[]){2, 0, 1};
  for (int uniform = 0; uniform < 2; uniform++) {
    c->call.uniform_rows = uniform;
    struct layer_run *blind = traced(&b, c, 0, 1, 1), *other = traced(&b, c, 0, 0, 2);
    must_run(&b, blind, 1e5);
    must_run(&b, other, 1e5);
    const struct trace *t = blind->call.trace;
    assert_true(is_zero(t->query, SIZE) && is_zero(t->key, KEYS * SIZE));
    assert_true(is_zero(t->product, KEYS) && is_zero(t->score, KEYS));
    assert_int_equal(is_zero(t->value, KEYS * SIZE), !uniform);
    assert_int_equal(is_zero(t->context, SIZE), !uniform);
    for (size_t j = 0; j < KEYS; j++) assert_true(t->weight[j] == (uniform ? 0.2f : 0));
    assert_true(is_zero(other->call.trace->value + SIZE, (KEYS - 1) * SIZE));
    compare_with_twin(&b, blind);
    compare_with_twin(&b, other);
  }
  bench_done(&b);
}

static void there_need_be_no_keys(void **unused) {
  (void)unused;
  struct bench b;
  plain_bench(&b, 3, 2, 4);
  const struct layer_run *c = plain_call(&b.l, &b.state, 1, 2, 0, WEIGHTS_NONE, &b.a);
  struct layer_run *one = traced(&b, c, 0, 1, 1);
  must_run(&b, one, 1e5);
  assert_int_equal(one->call.trace->keys, 0);
  assert_true(is_zero(one->call.trace->context, 4));
  bench_done(&b);
}

/* --- keys and values that the caller keeps --- */

static struct kept room_for(struct bench *b, unsigned role, size_t rows) {
  const size_t size = role_kept_size(b->l.layer, role), heads = b->l.shape.kv_heads;
  struct kept k = {.capacity = rows};
  k.rows.row = random_room(&b->a, rows * heads * size, sizeof(float));
  k.rows.row_step = heads * size, k.rows.head_step = size;
  return k;
}

/* The last row of an item, behind others that are kept, and among all of them. */
static void kept_rows_are_traced_as_others(void **unused) {
  (void)unused;
  enum { ROWS = 20, SIZE = 6 };
  struct bench b;
  plain_bench(&b, 4, 2, SIZE);
  struct layer_run *whole = plain_call(&b.l, &b.state, 1, ROWS, ROWS, WEIGHTS_NONE, &b.a);
  whole->geometry.causal = true;
  struct kept_pair kept = {room_for(&b, ROLE_KEY, ROWS), room_for(&b, ROLE_VALUE, ROWS)};
  struct layer_run *begin = call_of_rows(&b.l, whole, 0, 0, ROWS - 1, &b.a);
  struct layer_run *last = call_of_rows(&b.l, whole, 0, ROWS - 1, 1, &b.a);
  begin->call.kept = last->call.kept = &kept;
  begin->geometry.item[0].k = begin->geometry.k_rows = ROWS - 1;
  last->geometry.k_rows = 1;
  last->call.keys += (ROWS - 1) * 2 * SIZE;
  last->call.values += (ROWS - 1) * 2 * SIZE;
  must_run(&b, begin, 1e5);
  kept.key.count = kept.value.count = ROWS - 1;
  whole = traced(&b, whole, 0, 1, ROWS - 1);
  last = traced(&b, last, 0, 1, 0);
  must_run(&b, whole, 1e5);
  must_run(&b, last, 1e5);
  compare_traces(whole, last);
  bench_done(&b);
}

/* --- what it costs --- */

/* Goes through the steps; returns how many units STEP_TRACE has. */
static size_t count_units(const struct bench *b, struct layer_run *c) {
  static _Alignas(64) char scratch[1 << 20];
  struct cursor at;
  struct span span;
  size_t units = 0;
  assert_true(layer_scratch_bytes(b->l.layer) <= sizeof scratch);
  for (run_begin(&at, &c->run); !run_is_done(&at); run_next(&at))
    while (run_cut(&at, 1e5, &span)) {
      if (at.step == STEP_TRACE) units += span.units;
      run_span(&span, scratch);
    }
  return units;
}

/* It is work that the pool knows of; where none is wanted there is none. */
static void a_trace_is_counted_where_it_is_wanted(void **unused) {
  (void)unused;
  struct bench b;
  plain_bench(&b, 8, 2, 4);
  struct layer_run *plain = plain_call(&b.l, &b.state, 3, 5, 300, WEIGHTS_NONE, &b.a);
  struct layer_run *one = traced(&b, plain, 2, 1, 4);
  prepare(&b, one);
  assert_true(one->run.work > plain->run.work);
  assert_int_equal(count_units(&b, plain), 0);
  assert_int_equal(count_units(&b, one), 1);
  bench_done(&b);
}

/* --- faults --- */

static void must_fault(struct bench *b, struct layer_run *c, const char *detail) {
  struct error e = {0};
  assert_int_equal(run(b, c, 1e5, &e), STATUS_NOT_FINITE);
  assert_string_equal(e.detail, detail);
}

/* A layer of one head without matrices: rows are compared as they are. */
static void bare_bench(struct bench *b, float scale) {
  struct error e = {0};
  bench_init(b, 5);
  memset(&b->l, 0, sizeof b->l);
  arena_init(&b->l.arena, NULL);
  b->l.shape = plain_shape(2, 2);
  b->l.shape.scale = scale;
  b->l.layer = layer_new(&b->l.shape, b->l.matrix, GEMM_PACKED, &e);
  assert_non_null(b->l.layer);
}

static void a_product_may_be_beyond_where_its_score_is_not(void **unused) {
  (void)unused;
  struct bench b;
  struct error e = {0};
  bare_bench(&b, 1e-10f);
  struct layer_run *c = plain_call(&b.l, &b.state, 2, 1, 2, WEIGHTS_NONE, &b.a);
  ((float *)c->call.queries)[6] = ((float *)c->call.keys)[10] = 1e20f; /* of item 1, head 1 */
  assert_int_equal(run(&b, call_again(c, &b.a), 1e5, &e), STATUS_OK);
  must_run(&b, traced(&b, c, 0, 1, 0), 1e5);
  must_fault(&b, traced(&b, c, 1, 1, 0),
             "a number in the trace of query 0 of item 1 in head 1 exceeds the float32 range");
  bench_done(&b);
}

/* Where inputs are read in place, nothing looks at the values of a head that is left out. */
static void a_value_of_a_head_that_is_left_out_may_be_beyond(void **unused) {
  (void)unused;
  struct bench b;
  struct error e = {0};
  bare_bench(&b, 1);
  struct layer_run *c = plain_call(&b.l, &b.state, 1, 1, 2, WEIGHTS_NONE, &b.a);
  c->call.head_mask = (const float[]){1, 0};
  ((float *)c->call.values)[3] = INFINITY;
  assert_int_equal(run(&b, call_again(c, &b.a), 1e5, &e), STATUS_OK);
  must_run(&b, traced(&b, c, 0, 0, 0), 1e5);
  must_fault(&b, traced(&b, c, 0, 1, 0),
             "a number in the trace of query 0 of item 0 in head 1 exceeds the float32 range");
  bench_done(&b);
}

int main(void) {
  gemm_blas_init();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_trace_agrees_with_the_twin_and_the_answer),
      cmocka_unit_test(a_trace_has_the_same_bits_in_any_company),
      cmocka_unit_test(a_head_that_is_left_out_has_a_trace),
      cmocka_unit_test(keys_that_are_not_seen_are_zeros),
      cmocka_unit_test(a_query_that_sees_nothing_has_zeros_or_all_values),
      cmocka_unit_test(there_need_be_no_keys),
      cmocka_unit_test(kept_rows_are_traced_as_others),
      cmocka_unit_test(a_trace_is_counted_where_it_is_wanted),
      cmocka_unit_test(a_product_may_be_beyond_where_its_score_is_not),
      cmocka_unit_test(a_value_of_a_head_that_is_left_out_may_be_beyond),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
