/* crew: the idle workers. */
#include "core/run/crew.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/size.h"

enum {
  /* About the time in which a thread falls asleep and wakes: watching in vain at most doubles it.
   */
  WATCH_NS = 30000,
  LOOKS = 16 /* how often the word is read between two reads of the clock */
};

enum { BUSY, WATCHING, DEALT };

bool crew_init(struct crew *c, size_t count) {
  size_t bytes;
  pthread_cond_init(&c->call, NULL);
  if (!size_mul(count, sizeof *c->member, &bytes)) return false;
  c->member = aligned_alloc(_Alignof(struct member), bytes);
  if (!c->member) return false;
  memset(c->member, 0, bytes);
  c->count = count;
  return true;
}

void crew_done(struct crew *c) {
  pthread_cond_destroy(&c->call);
  free(c->member);
}

/* Leaves the core to its other hardware thread for a moment. */
static void pause_briefly(void) {
#if defined __x86_64__
  __builtin_ia32_pause();
#elif defined __aarch64__
  __asm__ volatile("isb");
#endif
}

/* --- watching --- */

/* Sequentially consistent with the dealer's `has_work`, which the worker reads next: either the
 * dealer sees that the worker watches, or the worker sees that there is work. */
void crew_begin_watch(struct crew *c, size_t worker) {
  atomic_store(&c->member[worker].state, WATCHING);
}

/* Receives a dealt task and leaves the state `leave`; false: there is none. */
static bool receive(struct member *m, unsigned leave, struct task *t) {
  unsigned state = DEALT;
  if (atomic_load_explicit(&m->state, memory_order_relaxed) != DEALT ||
      !atomic_compare_exchange_strong(&m->state, &state, leave))
    return false;
  *t = m->task;
  return true;
}

bool crew_watch(struct crew *c, size_t worker, struct task *t) {
  struct member *m = &c->member[worker];
  const uint64_t until = clock_now() + WATCH_NS;
  do {
    for (int i = 0; i < LOOKS; i++) {
      if (receive(m, BUSY, t)) return true;
      pause_briefly();
    }
  } while (clock_now() < until);
  return false;
}

bool crew_end_watch(struct crew *c, size_t worker, struct task *t) {
  struct member *m = &c->member[worker];
  if (receive(m, BUSY, t)) return true;
  atomic_store(&m->state, BUSY);
  return false;
}

/* --- dealing --- */

bool crew_is_watching(const struct crew *c, size_t worker) {
  return atomic_load(&c->member[worker].state) == WATCHING;
}

bool crew_is_idle(const struct crew *c) {
  bool idle = c->asleep > 0;
  for (size_t i = 0; i < c->count && !idle; i++) idle = crew_is_watching(c, i);
  return idle;
}

void crew_deal(struct crew *c, size_t worker, const struct task *t) {
  c->member[worker].task = *t;
  atomic_store_explicit(&c->member[worker].state, DEALT, memory_order_release);
}

bool crew_take_back(struct crew *c, struct task *t) {
  for (size_t i = 0; i < c->count; i++)
    if (receive(&c->member[i], WATCHING, t)) return true;
  return false;
}

/* --- sleeping --- */

void crew_sleep(struct crew *c, pthread_mutex_t *lock) {
  c->asleep++;
  while (c->called == 0) pthread_cond_wait(&c->call, lock);
  c->called--;
}

void crew_call(struct crew *c, size_t most) {
  const size_t number = size_min(most, c->asleep);
  if (number == c->asleep) {
    if (number > 0) pthread_cond_broadcast(&c->call);
  } else {
    for (size_t i = 0; i < number; i++) pthread_cond_signal(&c->call);
  }
  c->asleep -= number;
  c->called += number;
}
