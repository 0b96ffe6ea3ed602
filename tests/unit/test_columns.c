/* test_columns: the columns of a matrix are shared out where a batch has few rows; that changes no
 * bit of an answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/attention/layer_parts.h"
#include "core/base/size.h"
#include "tests/support/compare.h"
#include "tests/support/rounds.h"

enum { ROUNDS = 12, CALLS = 3, SPANS_MOST = 4096 };

static struct layer_run *again(const struct random_layer *l, const struct layer_run *c,
                               struct arena *a) {
  struct error e = {0};
  struct layer_run *copy = call_again(c, a);
  assert_int_equal(layer_prepare(l->layer, copy, a, &e), STATUS_OK);
  return copy;
}

/* Whether the queries' columns are shared out, and the output's, is seen by the way. */
struct shared {
  bool query, output;
};

/* The spans that may be computed in any order, the last one first. */
static void compute_backwards(struct cursor *at, double work, void *scratch) {
  static struct span span[SPANS_MOST];
  size_t spans = 0;
  while (spans < SPANS_MOST && run_cut(at, work, &span[spans])) spans++;
  assert_true(spans < SPANS_MOST);
  while (spans > 0) run_span(&span[--spans], scratch);
}

static struct shared compute_spans(const struct layer *l, struct layer_run *first, double work) {
  void *scratch = aligned_alloc(64, size_round_up(layer_scratch_bytes(l) + 64, 64));
  struct shared shared = {false, false};
  struct cursor at;
  for (run_begin(&at, &first->run); !run_is_done(&at); run_next(&at)) {
    const bool parts = at.columns && at.columns < at.program->step[at.step]->columns;
    shared.query |= parts && at.step == STEP_QUERY;
    shared.output |= parts && at.step == STEP_OUTPUT;
    compute_backwards(&at, work, scratch);
  }
  free(scratch);
  return shared;
}

static void no_bit_differs(const struct random_layer *l, const struct layer_run *x,
                           const struct layer_run *y) {
  struct error e = {0};
  if (!same_bits(l, x, y, &e)) fail_msg("%s", e.detail);
}

/* Calls of few rows, merged, beside each of them in a batch with so many rows that these are shared
 * out instead. */
static void sharing_columns_changes_no_bit(void **unused) {
  (void)unused;
  const size_t count = size_max(rounds(ROUNDS), 6); /* in fewer, columns may not be shared */
  static const enum gemm_engine engines[] = {GEMM_PACKED, GEMM_INT8, GEMM_INT8_BLOCK};
  size_t query = 0, output = 0;
  for (uint64_t round = 0; round < count; round++) {
    uint64_t state = 700 + round;
    struct random_layer l;
    struct arena a;
    arena_init(&a, NULL);
    wide_layer_init(&l, &state, engines[round % 3]);
    struct layer_run *few[CALLS];
    for (int i = 0; i < CALLS; i++) {
      few[i] = round % 3 ? random_call(&l, &state, 1 + random_below(&state, 12), &a)
                         : plain_call(&l, &state, 1, 30, 30, WEIGHTS_NONE, &a);
      if (round % 3 == 0) few[i]->call.keys = few[i]->call.values = few[i]->call.queries;
      if (i) few[i - 1]->run.next = &few[i]->run;
    }
    const struct shared shared =
        compute_spans(l.layer, few[0], 1e5 * (double)(1 + random_below(&state, 60)));
    query += shared.query, output += shared.output;
    for (int i = 0; i < CALLS; i++) {
      struct layer_run *one = again(&l, few[i], &a);
      struct layer_run *many = plain_call(&l, &state, 2, 150, 150, WEIGHTS_NONE, &a);
      one->run.next = &many->run;
      assert_false(compute_spans(l.layer, one, 1e12).query);
      no_bit_differs(&l, few[i], one);
    }
    arena_free(&a);
    random_layer_done(&l);
  }
  assert_true(query && output);
}

/* A layer of turned heads of some size, about 2400 columns wide in each of its three matrices. */
static void turned_layer_init(struct random_layer *l, size_t size, uint64_t *state) {
  enum { IN = 200, WIDE = 2400 };
  struct error e = {0};
  *l = (struct random_layer){.shape = plain_shape(WIDE / size, size)};
  arena_init(&l->arena, NULL);
  l->shape.rope_base = 10000;
  l->shape.query_size = l->shape.key_size = l->shape.value_size = IN;
  for (unsigned role = ROLE_QUERY; role <= ROLE_VALUE; role++) {
    const size_t count = l->shape.heads * size * IN;
    float *weight = arena_alloc(&l->arena, count, sizeof *weight, &e);
    assert_non_null(weight);
    for (size_t i = 0; i < count; i++) weight[i] = 0.1f * random_float(state);
    l->matrix[role].weight = weight;
  }
  l->layer = layer_new(&l->shape, l->matrix, GEMM_PACKED, &e);
  assert_non_null(l->layer);
}

/* A head is turned by the unit that makes all of its columns, whatever its size. */
static void turned_heads_are_not_cut(void **unused) {
  (void)unused;
  static const size_t sizes[] = {24, 48, 64, 80, 96, 120};
  uint64_t state = 31;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    struct random_layer l;
    struct arena a;
    arena_init(&a, NULL);
    turned_layer_init(&l, sizes[i], &state);
    struct layer_run *few = plain_call(&l, &state, 1, 20, 20, WEIGHTS_NONE, &a);
    struct layer_run *one = again(&l, few, &a);
    one->run.next = &plain_call(&l, &state, 1, 150, 150, WEIGHTS_NONE, &a)->run;
    assert_true(compute_spans(l.layer, few, 1).query);
    assert_false(compute_spans(l.layer, one, 1e12).query);
    no_bit_differs(&l, few, one);
    arena_free(&a);
    random_layer_done(&l);
  }
}

/* As wide, each head made of inputs of its own. */
static void grouped_layer_init(struct random_layer *l, size_t heads, size_t size) {
  struct error e = {0};
  *l = (struct random_layer){.shape = plain_shape(heads, size)};
  arena_init(&l->arena, NULL);
  l->shape.grouped = true;
  float *weight = arena_alloc(&l->arena, heads * size * size, sizeof *weight, &e);
  assert_non_null(weight);
  memset(weight, 0, heads * size * size * sizeof *weight);
  for (unsigned role = ROLE_QUERY; role <= ROLE_VALUE; role++) l->matrix[role].weight = weight;
  l->layer = layer_new(&l->shape, l->matrix, GEMM_PACKED, &e);
  assert_non_null(l->layer);
}

/* OpenBLAS and matrices in groups keep their columns together. */
static void some_matrices_stay_whole(void **unused) {
  (void)unused;
  uint64_t state = 5;
  struct random_layer l;
  struct arena a;
  arena_init(&a, NULL);
  wide_layer_init(&l, &state, GEMM_OPENBLAS);
  struct layer_run *c = plain_call(&l, &state, 1, 60, 60, WEIGHTS_NONE, &a);
  const struct shared shared = compute_spans(l.layer, c, 1e5);
  assert_false(shared.query || shared.output);
  arena_free(&a);
  random_layer_done(&l);
  grouped_layer_init(&l, 12, 80);
  c = plain_call(&l, &state, 1, 120, 120, WEIGHTS_NONE, &a);
  assert_false(compute_spans(l.layer, c, 1e5).query);
  arena_free(&a);
  random_layer_done(&l);
}

/* One row of a large matrix is cut into several spans. */
static void one_row_is_work_for_many(void **unused) {
  (void)unused;
  enum { DEPTH = 256, COLUMNS = 40000 };
  struct random_layer l = {.shape = plain_shape(1, DEPTH)};
  struct error e = {0};
  struct arena a;
  uint64_t state = 9;
  arena_init(&a, NULL);
  float *weight = calloc((size_t)DEPTH * COLUMNS, sizeof *weight);
  l.shape.output_size = COLUMNS;
  l.matrix[ROLE_OUTPUT].weight = weight;
  l.layer = layer_new(&l.shape, l.matrix, GEMM_PACKED, &e);
  assert_non_null(l.layer);
  struct layer_run *c = plain_call(&l, &state, 1, 1, 1, WEIGHTS_NONE, &a);
  void *scratch = aligned_alloc(64, size_round_up(layer_scratch_bytes(l.layer) + 64, 64));
  size_t spans = 0;
  struct span span;
  struct cursor at;
  for (run_begin(&at, &c->run); !run_is_done(&at); run_next(&at))
    for (; run_cut(&at, 2e6, &span); run_span(&span, scratch)) spans += at.step == STEP_OUTPUT;
  assert_in_range(spans, 4, 40);
  free(scratch);
  layer_free(l.layer);
  free(weight);
  arena_free(&a);
}

int main(void) {
  gemm_blas_init();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sharing_columns_changes_no_bit),
      cmocka_unit_test(turned_heads_are_not_cut),
      cmocka_unit_test(some_matrices_stay_whole),
      cmocka_unit_test(one_row_is_work_for_many),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
