/* test_lobby: the line before the queue: its order, its share of places, and leaving it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "server/http/waiting.h"

static const uint64_t MS = CLOCK_MS;

static int setup(void **state) {
  struct error e = {0};
  const struct pool_options options = {
      .workers = 1, .max_queue = 8, .scratch_bytes = 64, .merge = true};
  *state = pool_new(&options, &e);
  assert_non_null(*state);
  return 0;
}

static int teardown(void **state) {
  pool_free(*state);
  return 0;
}

static void test_order_and_share(void **state) {
  struct lobby l = {.pool = *state, .threads = 4}; /* two of eight places */
  struct lobby_waiter w[5];
  assert_false(lobby_is_needed(&l)); /* there are places, and the line is empty */
  assert_null(lobby_call(&l, MS));
  for (int i = 0; i < 5; i++) lobby_join(&l, &w[i], MS, 500);
  assert_true(lobby_is_needed(&l)); /* others wait already */
  assert_ptr_equal(lobby_call(&l, 2 * MS), &w[0]);
  assert_ptr_equal(lobby_call(&l, 2 * MS), &w[1]);
  assert_null(lobby_call(&l, 2 * MS)); /* both are entering */
  lobby_leave(&l, &w[0]);
  assert_ptr_equal(lobby_call(&l, 2 * MS), &w[2]);
  assert_null(lobby_call(&l, 2 * MS));
  assert_ptr_equal(lobby_call(&l, 100 * MS), &w[3]); /* a new turn, since those two are slow */
  lobby_leave(&l, &w[1]);
  lobby_leave(&l, &w[2]);
  assert_int_equal(l.entering, 1); /* they belonged to the turn before */
  lobby_leave(&l, &w[3]);
  lobby_leave(&l, &w[3]);
  assert_int_equal(l.entering, 0);
}

static void test_waited_long_enough(void **state) {
  /* There is never a place: one waiter is entering, and each of 8 threads has one of 8 places. */
  struct lobby l = {.pool = *state, .threads = 8, .entering = 1, .turn_ends = UINT64_MAX};
  struct lobby_waiter w[2];
  lobby_join(&l, &w[0], 0, 500);
  lobby_join(&l, &w[1], 0, 600);
  assert_null(lobby_call(&l, 499 * MS));
  assert_ptr_equal(lobby_call(&l, 500 * MS), &w[0]);
  assert_null(lobby_call(&l, 500 * MS));
  lobby_leave(&l, &w[0]);
  assert_int_equal(l.entering, 1);
  assert_ptr_equal(lobby_call(&l, 600 * MS), &w[1]);
  assert_null(l.line.first);
  assert_null(l.line.last);
}

static void test_leaving(void **state) {
  struct lobby l = {.pool = *state, .threads = 1};
  struct lobby_waiter w[4];
  for (int i = 0; i < 4; i++) lobby_join(&l, &w[i], MS, 500);
  lobby_leave(&l, &w[1]);
  lobby_leave(&l, &w[3]);
  lobby_leave(&l, &w[0]);
  assert_false(w[0].line.waits);
  assert_true(w[2].line.waits);
  assert_ptr_equal(lobby_close(&l), &w[2]);
  assert_null(lobby_close(&l));
  assert_false(w[2].line.waits);
  struct lobby_waiter never = {0};
  lobby_leave(&l, &never);
  assert_int_equal(l.entering, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_order_and_share, setup, teardown),
      cmocka_unit_test_setup_teardown(test_waited_long_enough, setup, teardown),
      cmocka_unit_test_setup_teardown(test_leaving, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
