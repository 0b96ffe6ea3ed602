/* aside: one piece of work on a thread of its own, while main goes on listening to signals. */
#ifndef SERVER_ASIDE_H
#define SERVER_ASIDE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "core/run/status.h"

struct aside {
  void (*work)(void *of);
  void *of;
  bool modest;  /* gives way to threads that serve */
  bool started; /* and not joined */
  pthread_t thread;
  atomic_bool done;
};

/* Begins work(of); signals_wake when it is done. Must not be at work. `a` and `of` must live until
 * aside_join, or the end. */
enum status aside_start(struct aside *a, void (*work)(void *of), void *of, bool modest,
                        struct error *e);

/* Is there nothing that works? What it has done may be looked at. */
bool aside_rests(const struct aside *a);

/* Waits for the work, if any; again is fine. */
void aside_join(struct aside *a);

/* Nobody will wait for the work, if any: the process ends before it, or after it. */
void aside_leave(struct aside *a);

#endif
