/* test_work: what a call is said to cost. The pool, which computes tiny ones at once, relies on it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/attention/layer_parts.h"
#include "tests/support/random_call.h"

enum { HEADS = 2, SIZE = 4 };

static const double tiny = 2e6; /* operations, as pool.c has it */

struct fixture {
  struct random_layer layer;
  struct arena arena;
  uint64_t state;
};

static int set_up(void **state) {
  struct fixture *f = calloc(1, sizeof *f);
  f->state = 5;
  arena_init(&f->arena, NULL);
  plain_layer_init(&f->layer, &f->state, HEADS, SIZE, GEMM_AUTO);
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  struct fixture *f = *state;
  arena_free(&f->arena);
  random_layer_done(&f->layer);
  free(f);
  return 0;
}

static struct layer_run *make_call(struct fixture *f, size_t items, size_t q, size_t k) {
  return plain_call(&f->layer, &f->state, items, q, k, WEIGHTS_NONE, &f->arena);
}

static void *zeros(struct fixture *f, size_t count, size_t size) {
  struct error e = {0};
  void *memory = arena_alloc(&f->arena, count, size, &e);
  assert_non_null(memory);
  memset(memory, 0, count * size);
  return memory;
}

static double work_of(struct fixture *f, struct layer_run *c) {
  struct error e = {0};
  assert_int_equal(layer_prepare(f->layer.layer, c, &f->arena, &e), STATUS_OK);
  return c->run.work;
}

static void few_rows_are_tiny(void **state) {
  assert_true(work_of(*state, make_call(*state, 2, 4, 6)) < tiny / 2);
}

static void pairs_are_counted_in_every_head(void **state) {
  struct fixture *f = *state;
  assert_true(work_of(f, make_call(f, 1, 500, 500)) > 500.0 * 500 * HEADS * 4 * SIZE);
}

static void empty_segments_are_counted_for_every_query(void **state) {
  struct fixture *f = *state;
  enum { SEGMENTS = 1000, QUERIES = 1000 };
  struct layer_run *c = make_call(f, 1, QUERIES, 1);
  int32_t *end = zeros(f, SEGMENTS, sizeof *end);
  end[SEGMENTS - 1] = 1;
  c->geometry.segment_end = end;
  c->geometry.item[0].segments = SEGMENTS;
  assert_true(work_of(f, c) > (double)SEGMENTS * QUERIES * HEADS);
}

static void a_mask_is_counted_where_no_head_is_computed(void **state) {
  struct fixture *f = *state;
  struct layer_run *c = make_call(f, 1, 100, 2000);
  c->geometry.mask = zeros(f, 100 * 2000, 1);
  c->call.head_mask = zeros(f, HEADS, sizeof *c->call.head_mask);
  assert_true(work_of(f, c) > tiny);
}

static void items_are_counted_where_there_are_no_keys(void **state) {
  assert_true(work_of(*state, make_call(*state, 2000, 1, 0)) > tiny);
}

int main(void) {
  gemm_blas_init();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(few_rows_are_tiny, set_up, tear_down),
      cmocka_unit_test_setup_teardown(pairs_are_counted_in_every_head, set_up, tear_down),
      cmocka_unit_test_setup_teardown(empty_segments_are_counted_for_every_query, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(a_mask_is_counted_where_no_head_is_computed, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(items_are_counted_where_there_are_no_keys, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
