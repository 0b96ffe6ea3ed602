/* test_crew: workers that watch and sleep: what is dealt to one is taken by one, and who is called
 * wakes. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/run/crew.h"
#include "tests/support/patience.h"

static struct task task_of(size_t piece) { return (struct task){.piece = piece}; }

static void what_is_dealt_is_taken_once(void **unused) {
  (void)unused;
  struct crew c;
  struct task t, given = task_of(7);
  assert_true(crew_init(&c, 3));
  assert_false(crew_is_watching(&c, 1));
  crew_begin_watch(&c, 1);
  assert_true(crew_is_watching(&c, 1));
  crew_deal(&c, 1, &given);
  assert_false(crew_is_watching(&c, 1));
  assert_true(crew_watch(&c, 1, &t));
  assert_int_equal(t.piece, 7);
  assert_false(crew_is_watching(&c, 1));
  assert_false(crew_take_back(&c, &t));
  assert_false(crew_end_watch(&c, 1, &t));
  crew_done(&c);
}

static void it_may_come_at_the_end_of_watching(void **unused) {
  (void)unused;
  struct crew c;
  struct task t, given = task_of(8);
  assert_true(crew_init(&c, 1));
  crew_begin_watch(&c, 0);
  assert_false(crew_watch(&c, 0, &t));
  assert_true(crew_is_watching(&c, 0));
  crew_deal(&c, 0, &given);
  assert_true(crew_end_watch(&c, 0, &t));
  assert_int_equal(t.piece, 8);
  assert_false(crew_is_watching(&c, 0));
  crew_begin_watch(&c, 0);
  assert_false(crew_end_watch(&c, 0, &t));
  assert_false(crew_is_watching(&c, 0));
  crew_done(&c);
}

/* Another worker takes it over; the first one goes on watching, and may be dealt another. */
static void it_may_be_taken_back(void **unused) {
  (void)unused;
  struct crew c;
  struct task t, given = task_of(9);
  assert_true(crew_init(&c, 3));
  crew_begin_watch(&c, 2);
  crew_deal(&c, 2, &given);
  assert_true(crew_take_back(&c, &t));
  assert_int_equal(t.piece, 9);
  assert_false(crew_take_back(&c, &t));
  assert_true(crew_is_watching(&c, 2));
  assert_false(crew_watch(&c, 2, &t));
  given = task_of(10);
  crew_deal(&c, 2, &given);
  assert_true(crew_watch(&c, 2, &t));
  assert_int_equal(t.piece, 10);
  crew_done(&c);
}

/* --- with threads --- */

enum { MEMBERS = 4, TASKS = 200 };

static struct {
  struct crew crew;
  pthread_mutex_t lock;
  bool over;
  atomic_int done[TASKS];
  atomic_size_t number;
} shared;

static void do_task(const struct task *t) {
  atomic_fetch_add(&shared.done[t->piece], 1);
  atomic_fetch_add(&shared.number, 1);
}

static void *watch_all_the_time(void *argument) {
  const size_t worker = *(size_t *)argument;
  struct task t;
  pthread_mutex_lock(&shared.lock);
  while (!shared.over) {
    crew_begin_watch(&shared.crew, worker);
    pthread_mutex_unlock(&shared.lock);
    while (crew_watch(&shared.crew, worker, &t)) {
      do_task(&t);
      crew_begin_watch(&shared.crew, worker);
    }
    pthread_mutex_lock(&shared.lock);
    if (crew_end_watch(&shared.crew, worker, &t)) do_task(&t);
    if (crew_take_back(&shared.crew, &t)) do_task(&t);
  }
  pthread_mutex_unlock(&shared.lock);
  return NULL;
}

static void every_task_is_done_once(void **unused) {
  (void)unused;
  pthread_t thread[MEMBERS];
  size_t number[MEMBERS], dealt = 0;
  memset(&shared, 0, sizeof shared);
  pthread_mutex_init(&shared.lock, NULL);
  assert_true(crew_init(&shared.crew, MEMBERS));
  for (size_t i = 0; i < MEMBERS; i++) {
    number[i] = i;
    assert_int_equal(pthread_create(&thread[i], NULL, watch_all_the_time, &number[i]), 0);
  }
  const uint64_t until = clock_now() + PATIENCE_NS;
  while (atomic_load(&shared.number) < TASKS && clock_now() < until) {
    pthread_mutex_lock(&shared.lock);
    for (size_t i = 0; i < MEMBERS && dealt < TASKS; i++) {
      const struct task t = task_of(dealt);
      if (!crew_is_watching(&shared.crew, i)) continue;
      crew_deal(&shared.crew, i, &t);
      dealt++;
    }
    pthread_mutex_unlock(&shared.lock);
    sched_yield();
  }
  pthread_mutex_lock(&shared.lock);
  shared.over = true;
  pthread_mutex_unlock(&shared.lock);
  for (size_t i = 0; i < MEMBERS; i++) pthread_join(thread[i], NULL);
  for (size_t i = 0; i < TASKS; i++) assert_int_equal(atomic_load(&shared.done[i]), 1);
  crew_done(&shared.crew);
  pthread_mutex_destroy(&shared.lock);
}

static void *sleep_once(void *unused) {
  pthread_mutex_lock(&shared.lock);
  crew_sleep(&shared.crew, &shared.lock);
  atomic_fetch_add(&shared.number, 1);
  pthread_mutex_unlock(&shared.lock);
  return unused;
}

static void call(size_t most) {
  pthread_mutex_lock(&shared.lock);
  crew_call(&shared.crew, most);
  pthread_mutex_unlock(&shared.lock);
}

static void wait_until_awake(size_t number) {
  const uint64_t until = clock_now() + PATIENCE_NS;
  while (atomic_load(&shared.number) < number && clock_now() < until) usleep(200);
  assert_int_equal(atomic_load(&shared.number), number);
}

/* As many as are called, and not one more. */
static void who_is_called_wakes(void **unused) {
  (void)unused;
  pthread_t thread[MEMBERS];
  memset(&shared, 0, sizeof shared);
  pthread_mutex_init(&shared.lock, NULL);
  assert_true(crew_init(&shared.crew, MEMBERS));
  call(3); /* nobody sleeps */
  for (size_t i = 0; i < MEMBERS; i++)
    assert_int_equal(pthread_create(&thread[i], NULL, sleep_once, NULL), 0);
  for (size_t asleep = 0; asleep < MEMBERS; usleep(200)) {
    pthread_mutex_lock(&shared.lock);
    asleep = shared.crew.asleep;
    pthread_mutex_unlock(&shared.lock);
  }
  call(1);
  wait_until_awake(1);
  call(2);
  wait_until_awake(3);
  usleep(2000);
  assert_int_equal(atomic_load(&shared.number), 3);
  call(SIZE_MAX);
  wait_until_awake(MEMBERS);
  for (size_t i = 0; i < MEMBERS; i++) pthread_join(thread[i], NULL);
  crew_done(&shared.crew);
  pthread_mutex_destroy(&shared.lock);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_dealt_is_taken_once),
      cmocka_unit_test(it_may_come_at_the_end_of_watching),
      cmocka_unit_test(it_may_be_taken_back),
      cmocka_unit_test(every_task_is_done_once),
      cmocka_unit_test(who_is_called_wakes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
