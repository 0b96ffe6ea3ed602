/* test_arena: the memory of requests: its bounds, arrays that grow, and blocks that are kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/arena.h"
#include "core/clock.h"

enum { LARGE = 1 << 20, LIMIT = 64 << 20 };

/* An arena with a budget that keeps blocks. */
struct kept_arena {
  struct budget budget;
  struct arena arena;
  struct error error;
};

static void begin(struct kept_arena *k, size_t limit, size_t keep) {
  memset(k, 0, sizeof *k);
  budget_init(&k->budget, limit);
  k->budget.keep = keep_new(keep);
  assert_non_null(k->budget.keep);
  arena_init(&k->arena, &k->budget);
}

static void end(struct kept_arena *k) {
  arena_free(&k->arena);
  assert_int_equal(atomic_load(&k->budget.used), 0);
  keep_free(k->budget.keep);
}

static char *take(struct kept_arena *k, size_t bytes) {
  char *p = arena_alloc(&k->arena, bytes, 1, &k->error);
  assert_non_null(p);
  assert_int_equal((uintptr_t)p % 64, 0);
  memset(p, 1, bytes);
  return p;
}

static void everything_is_aligned_and_apart(void **unused) {
  (void)unused;
  struct kept_arena k;
  begin(&k, LIMIT, 0);
  char *before = take(&k, 1);
  for (size_t bytes = 1; bytes < 10000; bytes += 1 + bytes / 3) {
    char *p = take(&k, bytes);
    assert_true(p + bytes <= before || before < p);
    before = p;
  }
  assert_int_equal(k.arena.bytes, atomic_load(&k.budget.used));
  end(&k);
}

/* Grows an array of `size`-byte things step by step; what was in it must stay. */
static void grow_far(struct kept_arena *k, size_t size, size_t most) {
  unsigned char *array = NULL;
  size_t count = 0;
  while (count < most) {
    const size_t had = count;
    count = count + count / 2 + 10;
    const size_t wanted = count;
    array = arena_grow(&k->arena, array, &count, size, &k->error);
    assert_non_null(array);
    assert_int_equal((uintptr_t)array % 64, 0);
    assert_true(count >= wanted);
    for (size_t i = 0; i < had * size; i++) assert_int_equal(array[i], (unsigned char)(i * 7));
    for (size_t i = had * size; i < count * size; i++) array[i] = (unsigned char)(i * 7);
    assert_int_equal(k->arena.bytes, atomic_load(&k->budget.used));
  }
}

static void arrays_keep_what_they_hold(void **unused) {
  (void)unused;
  struct kept_arena k;
  begin(&k, LIMIT, 0);
  grow_far(&k, 4, 100000);
  grow_far(&k, 24, 5000);
  grow_far(&k, 1, 600000);
  end(&k);
  begin(&k, LIMIT, LIMIT);
  for (int turn = 0; turn < 4; turn++) { /* now in new blocks, now in kept ones of any size */
    take(&k, LARGE + (size_t)turn * LARGE / 2);
    take(&k, 300000);
    grow_far(&k, 4, 400000);
    grow_far(&k, 3, 200000);
    arena_free(&k.arena);
    assert_true(keep_bytes(k.budget.keep) > 0);
  }
  end(&k);
}

static void limits_are_kept(void **unused) {
  (void)unused;
  struct kept_arena k;
  begin(&k, LARGE, 0);
  assert_null(arena_alloc(&k.arena, LARGE, 1, &k.error));
  assert_int_equal(k.error.status, STATUS_OVERLOADED);
  memset(&k.error, 0, sizeof k.error);
  assert_null(arena_alloc(&k.arena, SIZE_MAX / 2, 4, &k.error));
  assert_int_equal(k.error.status, STATUS_TOO_LARGE);
  memset(&k.error, 0, sizeof k.error);
  size_t count = LARGE / 2;
  char *array = arena_grow(&k.arena, NULL, &count, 1, &k.error);
  assert_non_null(array);
  array[count - 1] = 7;
  size_t more = LARGE, held = count;
  assert_null(arena_grow(&k.arena, array, &more, 1, &k.error));
  assert_int_equal(k.error.status, STATUS_OVERLOADED);
  more = SIZE_MAX / 4;
  memset(&k.error, 0, sizeof k.error);
  assert_null(arena_grow(&k.arena, array, &more, 1, &k.error));
  assert_int_equal(k.error.status, STATUS_TOO_LARGE);
  assert_int_equal(array[held - 1], 7);
  end(&k);
}

static void freed_blocks_come_back(void **unused) {
  (void)unused;
  struct kept_arena k;
  begin(&k, LIMIT, 4 * LARGE);
  char *first = take(&k, LARGE);
  take(&k, 1000); /* too small to be kept */
  arena_free(&k.arena);
  assert_in_range(keep_bytes(k.budget.keep), LARGE, LARGE + 4096);
  assert_int_equal(atomic_load(&k.budget.used), 0);
  assert_ptr_equal(take(&k, LARGE - 5000), first); /* charged with all of it */
  assert_int_equal(keep_bytes(k.budget.keep), 0);
  assert_true(k.arena.bytes >= LARGE);
  arena_free(&k.arena);
  take(&k, LARGE / 5); /* far too small for the block */
  take(&k, 2 * LARGE); /* too large */
  assert_in_range(keep_bytes(k.budget.keep), LARGE, LARGE + 4096);
  end(&k);
}

/* The array takes the largest block that is not out of proportion, and uses all of it. */
static void arrays_take_kept_blocks_whole(void **unused) {
  (void)unused;
  struct kept_arena k;
  begin(&k, LIMIT, LIMIT);
  take(&k, 300000), take(&k, LARGE), take(&k, 40 * LARGE);
  arena_free(&k.arena);
  size_t count = 70000;
  assert_non_null(arena_grow(&k.arena, NULL, &count, 4, &k.error));
  assert_in_range(count, LARGE / 4, LARGE / 4 + 64);
  end(&k);
}

/* A kept block that is too large for what is left of the budget does not stand in the way. */
static void the_budget_may_be_too_small_for_a_kept_block(void **unused) {
  (void)unused;
  struct kept_arena k;
  begin(&k, 2 * LARGE, 2 * LARGE);
  take(&k, LARGE + LARGE / 2);
  arena_free(&k.arena);
  struct arena other;
  arena_init(&other, &k.budget);
  assert_non_null(arena_alloc(&other, 200000, 1, &k.error));
  assert_non_null(arena_alloc(&other, 200000, 1, &k.error));
  assert_non_null(arena_alloc(&other, 200000, 1, &k.error));
  take(&k, LARGE / 2);
  assert_int_equal(k.error.status, STATUS_OK);
  assert_true(keep_bytes(k.budget.keep) >= LARGE);
  arena_free(&other);
  end(&k);
}

/* --- what is kept --- */

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
  assert_int_equal(keep_trim(k, clock_now() + span), 0);
  size_t bytes;
  assert_null(keep_take(k, 1, LIMIT, false, &bytes));
  keep_free(k);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(everything_is_aligned_and_apart),
      cmocka_unit_test(arrays_keep_what_they_hold),
      cmocka_unit_test(limits_are_kept),
      cmocka_unit_test(freed_blocks_come_back),
      cmocka_unit_test(arrays_take_kept_blocks_whole),
      cmocka_unit_test(the_budget_may_be_too_small_for_a_kept_block),
      cmocka_unit_test(the_oldest_makes_room),
      cmocka_unit_test(what_has_lain_goes_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
