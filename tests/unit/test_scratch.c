/* test_scratch: working memory that grows beside its users. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/scratch.h"

static void each_use_has_what_was_asked_for(void **unused) {
  (void)unused;
  struct scratch s;
  assert_true(scratch_init(&s, 3, 100));
  char *piece[3];
  for (size_t i = 0; i < 3; i++) {
    piece[i] = scratch_use(&s, i);
    assert_int_equal((uintptr_t)piece[i] % 64, 0);
    memset(piece[i], 1, 100);
  }
  assert_true(scratch_grow(&s, 5000));
  memset(piece[0], 2, 100); /* what is in use stays */
  for (size_t i = 0; i < 2; i++) {
    piece[i] = scratch_use(&s, i);
    assert_int_equal((uintptr_t)piece[i] % 64, 0);
    memset(piece[i], 3, 5000);
    assert_ptr_equal(scratch_use(&s, i), piece[i]);
  }
  assert_true(scratch_grow(&s, 200000)); /* the third has not taken the one before */
  assert_true(scratch_grow(&s, 10));     /* never smaller */
  for (size_t i = 0; i < 3; i++) memset(scratch_use(&s, i), 4, 200000);
  scratch_free(&s);
  scratch_free(&s);
}

static void without_memory_nothing_changes(void **unused) {
  (void)unused;
  struct scratch s;
  assert_false(scratch_init(&s, 2, SIZE_MAX / 4));
  scratch_free(&s);
  assert_true(scratch_init(&s, 2, 64));
  void *before = scratch_use(&s, 1);
  assert_false(scratch_grow(&s, SIZE_MAX / 4));
  assert_ptr_equal(scratch_use(&s, 1), before);
  assert_true(scratch_grow(&s, 128));
  memset(scratch_use(&s, 1), 1, 128);
  scratch_free(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_use_has_what_was_asked_for),
      cmocka_unit_test(without_memory_nothing_changes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
