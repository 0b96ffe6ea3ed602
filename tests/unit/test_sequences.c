/* test_sequences: so many sequences at the same time, and no more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/service/service.h"

static void shares_come_back_once(void **unused) {
  (void)unused;
  struct sequences s = {.running = {.limit = 5}};
  struct error e = {0};
  struct sequences_share a = {3, 100}, b = {2, 40}, none = {0};
  assert_int_equal(sequences_begin(&s, a, &e), STATUS_OK);
  assert_int_equal(sequences_begin(&s, b, &e), STATUS_OK);
  assert_int_equal(sequences_begin(&s, (struct sequences_share){1, 1}, &e), STATUS_QUEUE_FULL);
  assert_string_equal(e.detail,
                      "5 sequences are in progress, and 1 more would exceed max_sequences, 5");
  assert_int_equal(atomic_load(&s.running.used), 5);
  assert_int_equal(atomic_load(&s.kept_bytes), 140);
  sequences_end(&s, &a);
  sequences_end(&s, &a);
  sequences_end(&s, &none);
  assert_int_equal(atomic_load(&s.running.used), 2);
  assert_int_equal(atomic_load(&s.kept_bytes), 40);
  sequences_end(&s, &b);
  assert_int_equal(atomic_load(&s.running.used), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(shares_come_back_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
