/* test_silence: streams that wait are called in the order in which they fell silent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "server/http/waiting.h"

static void the_oldest_is_over_first(void **unused) {
  (void)unused;
  struct silence s = {.most = 10 * CLOCK_MS};
  struct silent w[3] = {0};
  assert_int_equal(silence_left_ms(&s, 5), -1);
  assert_null(silence_over(&s, UINT64_MAX));
  for (uint64_t i = 0; i < 3; i++) silence_begin(&s, &w[i], i * CLOCK_MS);
  assert_null(silence_over(&s, 9 * CLOCK_MS));
  assert_int_equal(silence_left_ms(&s, 3 * CLOCK_MS), 8);
  assert_int_equal(silence_left_ms(&s, 20 * CLOCK_MS), 0);
  assert_ptr_equal(silence_over(&s, 10 * CLOCK_MS), &w[0]);
  assert_true(w[0].over && !w[0].line.waits);
  assert_null(silence_over(&s, 10 * CLOCK_MS));
  silence_begin(&s, &w[0], 11 * CLOCK_MS);
  assert_false(w[0].over);
  assert_ptr_equal(silence_over(&s, 30 * CLOCK_MS), &w[1]);
  assert_ptr_equal(silence_over(&s, 30 * CLOCK_MS), &w[2]);
  assert_ptr_equal(silence_over(&s, 30 * CLOCK_MS), &w[0]);
  assert_null(silence_over(&s, 30 * CLOCK_MS));
}

static void any_may_end_at_any_time(void **unused) {
  (void)unused;
  struct silence s = {.most = UINT64_MAX / 4};
  struct silent w[4] = {0};
  silence_end(&s, &w[0]);
  for (int i = 0; i < 4; i++) silence_begin(&s, &w[i], 0);
  assert_int_equal(silence_left_ms(&s, 0), INT32_MAX);
  silence_end(&s, &w[1]);
  silence_end(&s, &w[3]);
  silence_end(&s, &w[0]);
  silence_end(&s, &w[0]);
  assert_ptr_equal(s.line.first, &w[2].line);
  assert_ptr_equal(s.line.last, &w[2].line);
  silence_end(&s, &w[2]);
  assert_null(s.line.first);
  assert_null(s.line.last);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_oldest_is_over_first),
      cmocka_unit_test(any_may_end_at_any_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
