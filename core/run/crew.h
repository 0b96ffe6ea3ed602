/* crew: the workers that have nothing to do: they watch for a while, then they sleep. Private to
 * the pool.
 *
 * Steps of some microseconds end sooner than a thread falls asleep and wakes. So a worker that
 * finds nothing, while a batch is under way, watches a word of its own for some tens of
 * microseconds; a worker that has the pool's lock deals a task straight to it, and it begins
 * without the lock. A thread that watches may have lost its processor to another program, which the
 * dealer cannot know: a task that was dealt and has not been begun may be taken back. */
#ifndef CORE_CREW_H
#define CORE_CREW_H

#include <pthread.h>

#include "core/run/batch.h"

struct member {
  _Alignas(64) atomic_uint state;
  struct task task; /* dealt; its `batch` NULL: the worker is to look for itself */
};

struct crew {
  struct member *member;
  size_t count;
  pthread_cond_t call;
  size_t asleep, called; /* sleeping and not called; called and still to wake */
};

bool crew_init(struct crew *c, size_t count); /* false: no memory; crew_done all the same */
void crew_done(struct crew *c);

/* --- by a worker, without the lock --- */

/* From now on it may be dealt a task: either crew_watch or crew_end_watch takes that. */
void crew_begin_watch(struct crew *c, size_t worker);

/* True: it was dealt `t` and does not watch any more; false: it was not for a while. */
bool crew_watch(struct crew *c, size_t worker, struct task *t);

/* --- under the pool's lock --- */

bool crew_end_watch(struct crew *c, size_t worker, struct task *t); /* the same answer */

bool crew_is_idle(const struct crew *c); /* does anyone watch or sleep? */
bool crew_is_watching(const struct crew *c, size_t worker);
void crew_deal(struct crew *c, size_t worker, const struct task *t); /* it is watching */
bool crew_take_back(struct crew *c, struct task *t);

void crew_sleep(struct crew *c, pthread_mutex_t *lock); /* until it is called */
void crew_call(struct crew *c, size_t most);            /* so many of those that sleep */

#endif
