/* poisoned_run: runs that are prepared while one allocation fails. For unit tests alone: it needs
 * cmocka, and the allocator of poisoned.h. */
#ifndef TESTS_POISONED_RUN_H
#define TESTS_POISONED_RUN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/compare_stack.h"
#include "tests/support/poisoned.h"

/* Prepares a request, which `again` makes anew each time, with the first allocation failing, then
 * with the second, and so on until none does. Returns how many times that was. */
static inline size_t poisoned_run_prepare(const struct random_stack *s, const struct stack_run *r,
                                          struct stack_run *(*again)(const struct random_stack *,
                                                                     const struct stack_run *,
                                                                     struct arena *)) {
  struct error e = {.status = STATUS_OUT_OF_MEMORY};
  size_t n = 0;
  while (e.status) {
    struct arena a;
    arena_init(&a, NULL);
    struct stack_run *next = again(s, r, &a);
    prepare_source(s, next, &a);
    e = (struct error){0};
    poisoned_fail(++n);
    stack_prepare(s->stack, next, &a, &e);
    poisoned_fail(0);
    if (e.status) assert_int_equal(e.status, STATUS_OUT_OF_MEMORY);
    arena_free(&a);
  }
  return n;
}

#endif
