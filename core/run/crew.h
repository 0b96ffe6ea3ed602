/* crew: the idle workers: they watch for a while, then they sleep. Private to the pool.
 *
 * A step of some microseconds ends sooner than a thread can fall asleep and wake. So while a batch
 * is computed, a worker without a task watches a word of its own for 30 microseconds. A worker that
 * has the pool's lock deals a task to it, and it begins without the lock. A thread that watches may
 * have lost its processor to another program, which the dealer cannot know: a task that was dealt
 * and has not begun may be taken back. */
#ifndef CORE_CREW_H
#define CORE_CREW_H

#include <pthread.h>

#include "core/run/batch.h"

struct member {
  _Alignas(64) atomic_uint state;
  struct task task; /* dealt; if its `batch` is NULL, the worker is to look for a task itself */
};

struct crew {
  struct member *member;
  size_t count;
  pthread_cond_t call;
  size_t asleep, called; /* sleeping and not called; called and not yet awake */
};

bool crew_init(struct crew *c, size_t count); /* false: no memory; crew_done must be called, too */
void crew_done(struct crew *c);

/* --- by a worker, without the lock --- */

/* Begins to watch: from now on a task may be dealt to it, which crew_watch or crew_end_watch takes.
 */
void crew_begin_watch(struct crew *c, size_t worker);

/* Returns true if `t` was dealt: the worker does not watch any more; false after a while. */
bool crew_watch(struct crew *c, size_t worker, struct task *t);

/* --- under the pool's lock --- */

/* Ends to watch; returns true if `t` was dealt meanwhile. */
bool crew_end_watch(struct crew *c, size_t worker, struct task *t);

bool crew_is_idle(const struct crew *c); /* whether any worker watches or sleeps */
bool crew_is_watching(const struct crew *c, size_t worker);
void crew_deal(struct crew *c, size_t worker, const struct task *t); /* the worker is watching */
bool crew_take_back(struct crew *c, struct task *t); /* false: no task was dealt and not begun */

void crew_sleep(struct crew *c, pthread_mutex_t *lock); /* until called */
void crew_call(struct crew *c, size_t most);            /* wakes at most so many workers */

#endif
