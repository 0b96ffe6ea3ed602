/* test_arena: the memory of requests: its bounds, arrays that grow, and blocks that come back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/arena.h"

enum {
  LARGE = 1 << 20,
  LIMIT = 64 << 20,
  HEADER = 128 /* at least what a block holds beside its data */
};

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

/* Each thing is filled with a byte of its own, which must be there when all are filled. */
static void everything_is_aligned_and_apart(void **unused) {
  (void)unused;
  struct thing {
    char *at;
    size_t bytes;
  } thing[100];
  size_t things = 0;
  struct kept_arena k;
  begin(&k, LIMIT, 0);
  for (size_t bytes = 1; bytes < 10000; bytes += 1 + bytes / 7) {
    assert_true(things < sizeof thing / sizeof *thing);
    thing[things] = (struct thing){take(&k, bytes), bytes};
    memset(thing[things].at, (int)things + 1, bytes);
    things++;
  }
  for (size_t i = 0; i < things; i++)
    for (size_t b = 0; b < thing[i].bytes; b++) assert_int_equal(thing[i].at[b], i + 1);
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
  assert_int_equal(k.error.status, STATUS_TOO_LARGE);
  assert_string_equal(k.error.limit, "memory_budget_bytes");
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
  assert_int_equal(k.error.status, STATUS_TOO_LARGE);
  assert_string_equal(k.error.limit, "memory_budget_bytes");
  more = SIZE_MAX / 4;
  memset(&k.error, 0, sizeof k.error);
  assert_null(arena_grow(&k.arena, array, &more, 1, &k.error));
  assert_int_equal(k.error.status, STATUS_TOO_LARGE);
  assert_int_equal(array[held - 1], 7);
  end(&k);
}

/* A request that would fit into an empty budget may come again; any other is too large. */
static void only_what_could_fit_may_come_again(void **unused) {
  (void)unused;
  enum { HALF = LARGE / 2, MOST = LARGE - 2 * HEADER };
  struct kept_arena k;
  struct arena other;
  begin(&k, LARGE, 0);
  arena_init(&other, &k.budget);
  assert_non_null(arena_alloc(&other, HALF, 1, &k.error));
  assert_null(arena_alloc(&k.arena, MOST, 1, &k.error));
  assert_int_equal(k.error.status, STATUS_OVERLOADED);
  assert_null(k.error.limit);
  memset(&k.error, 0, sizeof k.error);
  assert_null(arena_alloc(&k.arena, LARGE, 1, &k.error));
  assert_int_equal(k.error.status, STATUS_TOO_LARGE);
  memset(&k.error, 0, sizeof k.error);
  take(&k, HALF / 2); /* the request itself holds this */
  assert_null(arena_alloc(&k.arena, MOST, 1, &k.error));
  assert_int_equal(k.error.status, STATUS_TOO_LARGE);
  memset(&k.error, 0, sizeof k.error);
  arena_free(&k.arena);
  k.arena.beside = other.bytes; /* nor is what it holds elsewhere */
  assert_null(arena_alloc(&k.arena, MOST, 1, &k.error));
  assert_int_equal(k.error.status, STATUS_TOO_LARGE);
  arena_free(&other);
  end(&k);
}

/* Memory beside an arena is charged as its own, and stays charged when that is freed or given away.
 */
static void memory_beside_it_is_charged(void **unused) {
  (void)unused;
  enum { HALF = LARGE / 2 };
  struct kept_arena k;
  struct arena leaving;
  begin(&k, LARGE, 0);
  arena_init(&leaving, &k.budget);
  assert_true(arena_charge_beside(&k.arena, HALF, &k.error));
  assert_int_equal(atomic_load(&k.budget.used), HALF);
  take(&k, HALF / 4);
  arena_free(&k.arena);
  assert_int_equal(atomic_load(&k.budget.used), HALF);
  take(&k, HALF / 4);
  arena_give(&k.arena, &leaving);
  while (arena_free_some(&leaving)) {
  }
  assert_int_equal(atomic_load(&k.budget.used), HALF);
  assert_false(arena_charge_beside(&k.arena, HALF + 1, &k.error));
  assert_int_equal(k.error.status,
                   STATUS_TOO_LARGE); /* with the half, as no other request has it */
  assert_int_equal(atomic_load(&k.budget.used), HALF);
  memset(&k.error, 0, sizeof k.error);
  arena_return_beside(&k.arena, HALF);
  assert_int_equal(atomic_load(&k.budget.used), 0);
  assert_int_equal(k.arena.beside, 0);
  end(&k);
}

/* Neither malloc nor realloc can give as much; nothing of it stays charged. */
static void what_the_system_refuses_is_not_charged(void **unused) {
  (void)unused;
  struct kept_arena k;
  begin(&k, SIZE_MAX / 2, LIMIT);
  size_t count = LARGE;
  char *array = arena_grow(&k.arena, NULL, &count, 1, &k.error);
  assert_non_null(array);
  array[count - 1] = 7;
  const size_t held = count, used = atomic_load(&k.budget.used);
  size_t more = SIZE_MAX / 16;
  assert_null(arena_grow(&k.arena, array, &more, 1, &k.error));
  assert_int_equal(k.error.status, STATUS_OUT_OF_MEMORY);
  assert_int_equal(atomic_load(&k.budget.used), used);
  memset(&k.error, 0, sizeof k.error);
  assert_null(arena_alloc(&k.arena, SIZE_MAX / 16, 1, &k.error));
  assert_int_equal(k.error.status, STATUS_OUT_OF_MEMORY);
  assert_int_equal(atomic_load(&k.budget.used), used);
  assert_int_equal(k.arena.bytes, used);
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

/* An array that moves into a kept block is charged for that one alone; the block that it leaves is
 * kept in turn. */
static void a_moved_array_leaves_its_block(void **unused) {
  (void)unused;
  struct kept_arena k;
  begin(&k, LIMIT, LIMIT);
  size_t count = LARGE / 2;
  char *array = arena_grow(&k.arena, NULL, &count, 1, &k.error);
  assert_non_null(array);
  const size_t left = k.arena.bytes;
  struct arena other;
  arena_init(&other, &k.budget);
  assert_non_null(arena_alloc(&other, 2 * LARGE, 1, &k.error));
  arena_free(&other);
  count++;
  assert_non_null(arena_grow(&k.arena, array, &count, 1, &k.error));
  assert_in_range(count, 2 * LARGE, 2 * LARGE + HEADER);
  assert_in_range(k.arena.bytes, 2 * LARGE, 2 * LARGE + HEADER);
  assert_int_equal(k.arena.bytes, atomic_load(&k.budget.used));
  assert_int_equal(keep_bytes(k.budget.keep), left);
  end(&k);
}

/* What does not grow takes a kept block only if that is charged little more than its own. */
static void what_was_kept_does_not_use_up_the_budget(void **unused) {
  (void)unused;
  struct kept_arena k;
  begin(&k, LIMIT, LIMIT / 8);
  take(&k, 4 * LARGE - 1000), take(&k, 4 * LARGE - 1000);
  arena_free(&k.arena);
  assert_in_range(keep_bytes(k.budget.keep), 8 * LARGE - 4096, 8 * LARGE);
  for (int i = 0; i < 60; i++) take(&k, LARGE);
  assert_in_range(k.arena.bytes, 60 * LARGE, 60 * (LARGE + HEADER));
  arena_free(&k.arena);
  keep_trim(k.budget.keep, UINT64_MAX);
  take(&k, LARGE + LARGE / 5);
  arena_free(&k.arena);
  take(&k, LARGE); /* at most a quarter */
  assert_int_equal(keep_bytes(k.budget.keep), 0);
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
  take(&k, LARGE + LARGE / 4); /* for which it is not too large */
  assert_int_equal(k.error.status, STATUS_OK);
  assert_true(keep_bytes(k.budget.keep) >= LARGE);
  arena_free(&other);
  end(&k);
}

/* One of several, wherever it stands among them; small things stay. */
static void one_is_freed_before_the_others(void **unused) {
  (void)unused;
  struct budget budget;
  struct arena a;
  struct error e = {0};
  char *thing[4];
  enum { BYTES = 10000 };
  for (int which = 0; which < 4; which++) {
    budget_init(&budget, 1 << 20);
    arena_init(&a, &budget);
    for (int i = 0; i < 4; i++) {
      thing[i] = arena_alloc(&a, BYTES, 1, &e);
      assert_non_null(thing[i]);
      memset(thing[i], i, BYTES);
    }
    void *small = arena_alloc(&a, 100, 1, &e);
    const size_t before = a.bytes;
    arena_release(&a, small, 100);
    assert_int_equal(a.bytes, before);
    arena_release(&a, thing[which], BYTES);
    assert_in_range(before - a.bytes, BYTES, BYTES + 200);
    assert_int_equal(atomic_load(&budget.used), a.bytes);
    memset(small, 7, 100);
    for (int i = 0; i < 4; i++)
      for (int x = 0; i != which && x < BYTES; x++) assert_int_equal(thing[i][x], i);
    arena_free(&a);
    assert_int_equal(atomic_load(&budget.used), 0);
  }
}

static void much_is_freed_a_little_at_a_time(void **unused) {
  (void)unused;
  enum { HUGE = 200 << 20 };
  struct kept_arena k;
  begin(&k, 4 * (size_t)HUGE, LARGE);
  struct arena leaving = {0};
  assert_false(arena_free_some(&leaving));
  arena_give(&k.arena, &leaving); /* nothing */
  take(&k, 100);
  take(&k, HUGE);
  arena_give(&k.arena, &leaving);
  assert_int_equal(k.arena.bytes, 0);
  assert_null(k.arena.block);
  take(&k, 3 * LARGE);
  take(&k, 10);
  arena_give(&k.arena, &leaving);
  assert_in_range(leaving.bytes, HUGE + 3 * LARGE, HUGE + 4 * LARGE);
  size_t times = 1;
  while (arena_free_some(&leaving)) times++;
  assert_in_range(times, 5, 20);
  assert_int_equal(leaving.bytes, 0);
  assert_int_equal(atomic_load(&k.budget.used), 0);
  take(&k, LARGE);
  end(&k);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(everything_is_aligned_and_apart),
      cmocka_unit_test(arrays_keep_what_they_hold),
      cmocka_unit_test(limits_are_kept),
      cmocka_unit_test(only_what_could_fit_may_come_again),
      cmocka_unit_test(memory_beside_it_is_charged),
      cmocka_unit_test(what_the_system_refuses_is_not_charged),
      cmocka_unit_test(freed_blocks_come_back),
      cmocka_unit_test(arrays_take_kept_blocks_whole),
      cmocka_unit_test(a_moved_array_leaves_its_block),
      cmocka_unit_test(what_was_kept_does_not_use_up_the_budget),
      cmocka_unit_test(the_budget_may_be_too_small_for_a_kept_block),
      cmocka_unit_test(one_is_freed_before_the_others),
      cmocka_unit_test(much_is_freed_a_little_at_a_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
