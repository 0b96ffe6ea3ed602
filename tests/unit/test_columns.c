/* test_columns: the columns of a matrix are shared out where a batch has few rows; that changes no
 * bit of an answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/attention/layer_parts.h"
#include "core/run/size.h"
#include "tests/support/compare.h"

enum { ROUNDS = 24, CALLS = 3 };

static struct call *again(const struct random_layer *l, const struct call *c, struct arena *a) {
  struct error e = {0};
  struct call *copy = call_again(c, a);
  assert_int_equal(layer_prepare(l->layer, copy, a, &e), STATUS_OK);
  return copy;
}

/* Whether the queries' columns are shared out, and the output's, is seen by the way. */
struct shared {
  bool query, output;
};

static struct shared compute_spans(const struct layer *l, struct call *first, double work) {
  void *scratch = aligned_alloc(64, size_round_up(layer_scratch_bytes(l) + 64, 64));
  struct shared shared = {false, false};
  struct span span;
  for (struct cursor at = run_begin(&first->run); !run_is_done(&at); at = run_next(&at)) {
    const bool parts = at.columns && at.columns < at.program->step[at.step]->columns;
    shared.query |= parts && at.step == STEP_QUERY;
    shared.output |= parts && at.step == STEP_OUTPUT;
    while (run_cut(&at, work, &span)) run_span(&span, scratch);
  }
  free(scratch);
  return shared;
}

static void no_bit_differs(const struct random_layer *l, const struct call *x,
                           const struct call *y) {
  struct error e = {0};
  if (!same_bits(l, x, y, &e)) fail_msg("%s", e.detail);
}

/* Calls of few rows, merged, beside each of them in a batch with so many rows that these are shared
 * out instead. */
static void sharing_columns_changes_no_bit(void **unused) {
  (void)unused;
  size_t query = 0, output = 0;
  for (uint64_t round = 0; round < ROUNDS; round++) {
    uint64_t state = 700 + round;
    struct random_layer l;
    struct arena a;
    arena_init(&a, NULL);
    wide_layer_init(&l, &state, GEMM_PACKED);
    struct call *few[CALLS];
    for (int i = 0; i < CALLS; i++) {
      few[i] = round % 3 ? random_call(&l, &state, 1 + random_below(&state, 12), &a)
                         : plain_call(&l, &state, 1, 30, 30, WEIGHTS_NONE, &a);
      if (round % 3 == 0) few[i]->keys = few[i]->values = few[i]->queries;
      if (i) few[i - 1]->run.next = &few[i]->run;
    }
    const struct shared shared =
        compute_spans(l.layer, few[0], 1e5 * (double)(1 + random_below(&state, 60)));
    query += shared.query, output += shared.output;
    for (int i = 0; i < CALLS; i++) {
      struct call *one = again(&l, few[i], &a);
      struct call *many = plain_call(&l, &state, 2, 150, 150, WEIGHTS_NONE, &a);
      one->run.next = &many->run;
      assert_false(compute_spans(l.layer, one, 1e12).query);
      no_bit_differs(&l, few[i], one);
    }
    arena_free(&a);
    random_layer_done(&l);
  }
  assert_true(query > ROUNDS / 4 && output > ROUNDS / 4);
}

/* OpenBLAS and matrices in groups keep their columns together. */
static void some_matrices_stay_whole(void **unused) {
  (void)unused;
  uint64_t state = 5;
  struct random_layer l;
  struct arena a;
  arena_init(&a, NULL);
  wide_layer_init(&l, &state, GEMM_OPENBLAS);
  struct call *c = plain_call(&l, &state, 1, 60, 60, WEIGHTS_NONE, &a);
  const struct shared shared = compute_spans(l.layer, c, 1e5);
  assert_false(shared.query || shared.output);
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
  struct call *c = plain_call(&l, &state, 1, 1, 1, WEIGHTS_NONE, &a);
  void *scratch = aligned_alloc(64, size_round_up(layer_scratch_bytes(l.layer) + 64, 64));
  size_t spans = 0;
  struct span span;
  for (struct cursor at = run_begin(&c->run); !run_is_done(&at); at = run_next(&at))
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
      cmocka_unit_test(some_matrices_stay_whole),
      cmocka_unit_test(one_row_is_work_for_many),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
