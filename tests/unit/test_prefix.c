/* test_prefix: blocks of the beginnings of texts: found by all that comes before them, no more
 * bytes than there may be, what was used longest ago goes first, and nothing that is in use. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/generate/prefix.h"
#include "tests/support/number_draw.h"
#include "tests/support/rounds.h"

enum { NUMBERS = 20000, ROWS = STACK_PREFIX_ROWS };

#define ROOT UINT64_MAX

static const size_t block_bytes = NUMBERS * sizeof(float) + sizeof(struct prefix_block);

struct set {
  struct budget budget;
  struct prefixes *p;
};

/* Room for so many blocks, in a budget of as many as are said. */
static void open_set(struct set *s, size_t blocks, size_t budget) {
  struct error e = {0};
  budget_init(&s->budget, budget * block_bytes);
  s->p = prefixes_new(blocks * block_bytes, &s->budget, &e);
  assert_non_null(s->p);
}

static void close_set(struct set *s) {
  prefixes_free(s->p);
  assert_int_equal(atomic_load(&s->budget.used), 0);
}

/* Tokens of a block, which only the number decides. */
static void draw_tokens(uint64_t number, int32_t token[ROWS]) {
  uint64_t state = number;
  for (size_t i = 0; i < ROWS; i++) token[i] = (int32_t)(draw(&state) % 1000);
}

/* Returns the id; 0: there was no room. */
static uint64_t add(struct set *s, uint64_t parent, uint64_t number) {
  int32_t token[ROWS];
  draw_tokens(number, token);
  struct prefix_block *b = prefixes_make(s->p, parent, token, NUMBERS);
  if (!b) return 0;
  for (size_t i = 0; i < NUMBERS; i++) b->number[i] = (float)number;
  return prefixes_add(s->p, b);
}

/* How many blocks of the chain with these numbers are there. */
static size_t find(struct set *s, uint64_t root, const uint64_t *number, size_t count) {
  int32_t token[8 * ROWS];
  struct prefix_block *found[8];
  for (size_t i = 0; i < count; i++) draw_tokens(number[i], token + i * ROWS);
  const size_t there = prefixes_find(s->p, root, token, count, found);
  for (size_t i = 0; i < there; i++) {
    for (size_t x = 0; x < NUMBERS; x++) assert_true(found[i]->number[x] == (float)number[i]);
    prefixes_give_back(s->p, found[i]);
  }
  return there;
}

#define FIND(s, root, ...)                       \
  find(s, root, (const uint64_t[]){__VA_ARGS__}, \
       sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static void chains_are_found_as_far_as_they_go(void **unused) {
  (void)unused;
  struct set s;
  open_set(&s, 10, 20);
  assert_int_equal(FIND(&s, ROOT, 1, 2, 3), 0);
  const uint64_t one = add(&s, ROOT, 1), two = add(&s, one, 2);
  assert_true(one && two && one != two);
  add(&s, one, 7);
  assert_int_equal(FIND(&s, ROOT, 1, 2, 3), 2);
  assert_int_equal(FIND(&s, ROOT, 1, 7), 2);
  assert_int_equal(FIND(&s, ROOT, 2, 1), 0); /* its tokens, but behind another block */
  assert_int_equal(FIND(&s, ROOT - 1, 1, 2), 0);
  assert_int_equal(FIND(&s, ROOT, 1), 1);
  int32_t token[ROWS];
  draw_tokens(2, token);
  assert_int_equal(prefixes_behind(s.p, one, token), two);
  assert_int_equal(prefixes_behind(s.p, two, token), 0);
  token[ROWS - 1]++;
  assert_int_equal(prefixes_behind(s.p, one, token), 0);
  assert_int_equal(add(&s, one, 2), two); /* the second one goes */
  assert_int_equal(prefixes_bytes(s.p), 3 * block_bytes);
  close_set(&s);
}

static void the_oldest_make_room(void **unused) {
  (void)unused;
  struct set s;
  open_set(&s, 4, 20);
  const uint64_t one = add(&s, ROOT, 1), two = add(&s, one, 2);
  add(&s, two, 3);
  add(&s, ROOT, 4);
  assert_int_equal(FIND(&s, ROOT, 1, 2, 3), 3); /* of these the last one is the oldest now */
  assert_int_equal(add(&s, ROOT, 5) != 0, true);
  assert_int_equal(FIND(&s, ROOT, 4), 0);
  assert_int_equal(FIND(&s, ROOT, 1, 2, 3), 3);
  assert_int_equal(FIND(&s, ROOT, 5), 1);
  add(&s, ROOT, 6);
  assert_int_equal(FIND(&s, ROOT, 1, 2, 3), 2);
  assert_int_equal(prefixes_bytes(s.p), 4 * block_bytes);
  close_set(&s);
}

static void what_is_in_use_stays(void **unused) {
  (void)unused;
  struct set s;
  open_set(&s, 2, 20);
  const uint64_t one = add(&s, ROOT, 1);
  add(&s, one, 2);
  int32_t token[2 * ROWS];
  struct prefix_block *found[2];
  draw_tokens(1, token);
  draw_tokens(2, token + ROWS);
  assert_int_equal(prefixes_find(s.p, ROOT, token, 2, found), 2);
  assert_int_equal(add(&s, ROOT, 3), 0);
  prefixes_give_back(s.p, found[1]);
  assert_true(add(&s, ROOT, 3) != 0);
  assert_int_equal(FIND(&s, ROOT, 1, 2), 1);
  prefixes_give_back(s.p, found[0]);
  close_set(&s);
  open_set(&s, 5, 1); /* the budget of all is used up before */
  assert_true(add(&s, ROOT, 1) != 0);
  assert_int_equal(add(&s, ROOT, 2), 0);
  assert_int_equal(prefixes_bytes(s.p), block_bytes);
  close_set(&s);
}

static void *ask(struct set *s, struct arena *a, size_t blocks, struct error *e) {
  *e = (struct error){0};
  arena_init(a, &s->budget);
  return arena_alloc(a, blocks, block_bytes, e);
}

/* Requests get the memory of what nobody uses, the oldest first and no more of it than they need;
 * but what would never fit drops nothing. */
static void requests_come_first(void **unused) {
  (void)unused;
  struct set s;
  struct arena a;
  struct error e;
  int32_t token[ROWS];
  struct prefix_block *used;
  open_set(&s, 6, 8);
  for (uint64_t i = 1; i <= 6; i++) assert_true(add(&s, ROOT, i) != 0);
  assert_non_null(ask(&s, &a, 1, &e)); /* and what is around it: there is room */
  assert_int_equal(prefixes_bytes(s.p), 6 * block_bytes);
  arena_free(&a);
  draw_tokens(1, token);
  assert_int_equal(prefixes_find(s.p, ROOT, token, 1, &used), 1);
  assert_non_null(ask(&s, &a, 4, &e)); /* there are 2, and the arena needs a little beside */
  assert_int_equal(prefixes_bytes(s.p), 3 * block_bytes);
  for (uint64_t i = 2; i <= 6; i++) assert_int_equal(FIND(&s, ROOT, i), i > 4);
  arena_free(&a);
  assert_null(ask(&s, &a, 9, &e));
  assert_int_equal(e.status, STATUS_TOO_LARGE);
  assert_int_equal(prefixes_bytes(s.p), 3 * block_bytes);
  assert_null(ask(&s, &a, 7, &e)); /* one is in use */
  assert_int_equal(e.status, STATUS_OVERLOADED);
  assert_int_equal(prefixes_bytes(s.p), block_bytes);
  prefixes_give_back(s.p, used);
  assert_non_null(ask(&s, &a, 7, &e));
  assert_int_equal(prefixes_bytes(s.p), 0);
  arena_free(&a);
  close_set(&s);
}

/* --- many threads --- */

static void *come_and_go(void *of) {
  struct set *s = of;
  static atomic_uint_fast64_t threads;
  uint64_t state = atomic_fetch_add(&threads, 1);
  for (size_t turn = 0; turn < rounds(3000); turn++) {
    const uint64_t number[3] = {draw(&state) % 4, draw(&state) % 4, draw(&state) % 4};
    if (draw(&state) % 2) {
      find(s, ROOT, number, 3);
      continue;
    }
    uint64_t parent = ROOT;
    for (size_t i = 0; i < 3 && parent; i++) parent = add(s, parent, number[i]);
  }
  return NULL;
}

static void threads_come_and_go(void **unused) {
  (void)unused;
  struct set s;
  pthread_t thread[3];
  open_set(&s, 20, 25);
  for (size_t i = 0; i < 3; i++) pthread_create(&thread[i], NULL, come_and_go, &s);
  for (size_t i = 0; i < 3; i++) pthread_join(thread[i], NULL);
  assert_in_range(prefixes_bytes(s.p), 1, 20 * block_bytes);
  close_set(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(chains_are_found_as_far_as_they_go),
                                     cmocka_unit_test(the_oldest_make_room),
                                     cmocka_unit_test(what_is_in_use_stays),
                                     cmocka_unit_test(requests_come_first),
                                     cmocka_unit_test(threads_come_and_go)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
