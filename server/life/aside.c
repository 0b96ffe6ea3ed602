/* aside: one piece of work on a thread of its own. */
#include "server/life/aside.h"

#include <string.h>
#include <unistd.h>

#include "core/run/thread.h"
#include "server/life/signals.h"

enum { NICE = 10 }; /* a tenth of what a thread gets that serves beside it */

static void *aside_main(void *of) {
  struct aside *a = of;
  thread_name("attend-load");
  if (a->modest) (void)!nice(NICE); /* of this thread alone, and there is no way back */
  a->work(a->of);
  atomic_store(&a->done, true);
  signals_wake();
  return NULL;
}

enum status aside_start(struct aside *a, void (*work)(void *of), void *of, bool modest,
                        struct error *e) {
  must(!a->started);
  *a = (struct aside){.work = work, .of = of, .modest = modest};
  const int failed = pthread_create(&a->thread, NULL, aside_main, a);
  if (failed) return error_set(e, STATUS_SYSTEM, "cannot start a thread: %s", strerror(failed));
  a->started = true;
  return STATUS_OK;
}

bool aside_rests(const struct aside *a) { return !a->started || atomic_load(&a->done); }

void aside_join(struct aside *a) {
  if (a->started) pthread_join(a->thread, NULL);
  a->started = false;
}

void aside_leave(struct aside *a) {
  if (a->started) pthread_detach(a->thread);
  a->started = false;
}
