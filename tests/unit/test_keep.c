/* test_keep: freed blocks that are kept: which are found, which go back, and many threads at once.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/arena.h"
#include "core/base/clock.h"
#include "core/base/keep.h"

enum { LARGE = 1 << 20, LIMIT = 64 << 20 };

static void *block(size_t bytes) {
  void *p = malloc(bytes);
  assert_non_null(p);
  return p;
}

static void the_oldest_makes_room(void **unused) {
  (void)unused;
  struct keep *k = keep_new(3 * LARGE);
  size_t bytes = 0;
  char *second;
  keep_put(k, block(LARGE), LARGE);
  keep_put(k, second = block(LARGE + 1), LARGE + 1);
  keep_put(k, block(KEEP_LEAST - 1), KEEP_LEAST - 1); /* freed */
  keep_put(k, block(3 * LARGE + 1), 3 * LARGE + 1);   /* freed */
  assert_int_equal(keep_bytes(k), 2 * LARGE + 1);
  keep_put(k, block(LARGE + 2), LARGE + 2);
  assert_int_equal(keep_bytes(k), 2 * LARGE + 3);
  assert_null(keep_take(k, LARGE + 3, LIMIT, false, &bytes));
  assert_null(keep_take(k, 1, LARGE, true, &bytes));
  assert_ptr_equal(keep_take(k, 1, LIMIT, false, &bytes), second);
  assert_int_equal(bytes, LARGE + 1);
  keep_put(k, second, LARGE + 1);
  void *third = keep_take(k, 1, LIMIT, true, &bytes);
  assert_int_equal(bytes, LARGE + 2);
  free(third);
  keep_put(k, block(3 * LARGE), 3 * LARGE);
  assert_int_equal(keep_bytes(k), 3 * LARGE);
  keep_free(k);
  keep_free(NULL);
}

static void what_has_lain_goes_back(void **unused) {
  (void)unused;
  struct keep *k = keep_new(LIMIT);
  assert_int_equal(keep_trim(k, UINT64_MAX), 0);
  keep_put(k, block(LARGE), LARGE);
  const uint64_t between = clock_now();
  keep_put(k, block(LARGE), LARGE);
  const uint64_t span = (uint64_t)KEEP_MS * CLOCK_MS;
  assert_int_equal(keep_trim(k, 0), 2 * LARGE);
  assert_int_equal(keep_trim(k, between), 2 * LARGE);
  assert_int_equal(keep_trim(k, between + span), LARGE);
  assert_false(keep_rests(k));
  assert_int_equal(keep_trim(k, clock_now() + span), 0);
  assert_true(keep_rests(k));
  keep_put(k, malloc(KEEP_LEAST / 2), KEEP_LEAST / 2); /* freed, but worth a look */
  assert_int_equal(keep_trim(k, clock_now()), 0);
  assert_false(keep_rests(k));
  assert_int_equal(keep_trim(k, clock_now() + span), 0);
  assert_true(keep_rests(k));
  size_t bytes;
  assert_null(keep_take(k, 1, LIMIT, false, &bytes));
  keep_free(k);
}

/* --- many threads --- */

enum { THREADS = 4, ROUNDS = 150, KEPT = 2 << 20 };

struct user {
  pthread_t thread;
  struct budget *budget;
  unsigned char mark; /* what it writes */
  int wrong;          /* things that were not as it left them */
};

static void fill(char *p, size_t bytes, unsigned char mark) {
  for (size_t i = 0; i < bytes; i += 4096) p[i] = (char)mark;
  p[bytes - 1] = (char)mark;
}

static int is_filled(const char *p, size_t bytes, unsigned char mark) {
  for (size_t i = 0; i < bytes; i += 4096)
    if (p[i] != (char)mark) return 0;
  return p[bytes - 1] == (char)mark;
}

/* A request: an array that grows, two things that do not; then all is freed. */
static int use_once(struct arena *a, unsigned char mark, size_t bytes) {
  struct error e = {0};
  size_t count = KEEP_LEAST, more;
  char *array = arena_grow(a, NULL, &count, 1, &e), *exact = arena_alloc(a, bytes, 1, &e);
  if (!array || !exact) return 0;
  fill(array, count, mark);
  fill(exact, bytes, mark);
  more = count + bytes;
  char *grown = arena_grow(a, array, &more, 1, &e), *next = arena_alloc(a, KEEP_LEAST, 1, &e);
  if (!grown || !next) return 0;
  fill(next, KEEP_LEAST, (unsigned char)~mark);
  return is_filled(grown, count, mark) && is_filled(exact, bytes, mark);
}

static void *use_many(void *of) {
  struct user *u = of;
  struct arena arena;
  arena_init(&arena, u->budget);
  for (size_t i = 0; i < ROUNDS; i++) {
    if (!use_once(&arena, u->mark, KEEP_LEAST + i % 7 * 50000)) u->wrong++;
    arena_free(&arena);
    if (i % 16 == 7) keep_trim(u->budget->keep, UINT64_MAX);
    if (keep_bytes(u->budget->keep) > KEPT) u->wrong++;
  }
  return NULL;
}

/* A block belongs to one thread at a time, and none is lost or counted wrongly. */
static void any_thread_may_keep_and_take(void **unused) {
  (void)unused;
  struct budget budget;
  struct user user[THREADS];
  budget_init(&budget, LIMIT);
  budget.keep = keep_new(KEPT);
  assert_non_null(budget.keep);
  for (int i = 0; i < THREADS; i++) {
    user[i] = (struct user){.budget = &budget, .mark = (unsigned char)(i + 1)};
    assert_int_equal(pthread_create(&user[i].thread, NULL, use_many, &user[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(user[i].thread, NULL);
    assert_int_equal(user[i].wrong, 0);
  }
  assert_int_equal(atomic_load(&budget.used), 0);
  assert_int_equal(keep_trim(budget.keep, UINT64_MAX), 0);
  keep_free(budget.keep);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_oldest_makes_room),
      cmocka_unit_test(what_has_lain_goes_back),
      cmocka_unit_test(any_thread_may_keep_and_take),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
