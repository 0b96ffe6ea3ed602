/* background: one piece of work on a thread of its own, while main waits for signals. */
#ifndef SERVER_BACKGROUND_H
#define SERVER_BACKGROUND_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "core/base/status.h"

struct background {
  void (*work)(void *of);
  void *of;
  bool low_priority; /* yields to the threads that serve */
  bool started;      /* and not joined */
  pthread_t thread;
  atomic_bool done;
};

/* Begins work(of), and calls signals_wake at its end. None may be under way. `b` and `of` must live
 * until background_join, or until the process ends. */
enum status background_start(struct background *b, void (*work)(void *of), void *of,
                             bool low_priority, struct error *e);

/* Whether no work is under way. Then its results may be read. */
bool background_idle(const struct background *b);

/* Waits for the work, if there is any; may be called again. */
void background_join(struct background *b);

/* Detaches the work, if there is any: it ends by itself or with the process. */
void background_detach(struct background *b);

#endif
