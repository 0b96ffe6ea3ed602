/* background: one piece of work on a thread of its own. */
#include "server/life/background.h"

#include <string.h>
#include <unistd.h>

#include "core/base/thread.h"
#include "server/life/signals.h"

enum { NICE = 10 }; /* gives a tenth of the processor time of a thread of the server */

static void *background_main(void *of) {
  struct background *b = of;
  thread_name("attend-load");
  if (b->low_priority) (void)!nice(NICE); /* changes only this thread, permanently */
  b->work(b->of);
  atomic_store(&b->done, true);
  signals_wake();
  return NULL;
}

enum status background_start(struct background *b, void (*work)(void *of), void *of,
                             bool low_priority, struct error *e) {
  must(!b->started);
  *b = (struct background){.work = work, .of = of, .low_priority = low_priority};
  const int failed = pthread_create(&b->thread, NULL, background_main, b);
  if (failed) return error_set(e, STATUS_SYSTEM, "cannot start a thread: %s", strerror(failed));
  b->started = true;
  return STATUS_OK;
}

bool background_idle(const struct background *b) { return !b->started || atomic_load(&b->done); }

void background_join(struct background *b) {
  if (b->started) pthread_join(b->thread, NULL);
  b->started = false;
}

void background_detach(struct background *b) {
  if (b->started) pthread_detach(b->thread);
  b->started = false;
}
