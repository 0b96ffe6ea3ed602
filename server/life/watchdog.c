/* watchdog: tells the supervisor that the server is alive, if it is. */
#include "server/life/watchdog.h"

#include "core/run/clock.h"
#include "core/run/size.h"

/* Steps in the time that the supervisor gives: a thread has one of them to answer, and may miss
 * another two. */
enum { STEPS = 4 };

void watchdog_start(struct watchdog *w, const struct notify *n, struct httpd *const http[]) {
  *w = (struct watchdog){0};
  if (!n->watchdog_ns) return;
  w->notify = n;
  w->step_ns = size_max(n->watchdog_ns / STEPS, CLOCK_MS); /* or main would do nothing else */
  w->next = clock_now() + w->step_ns;
  for (unsigned i = 0; i < DOOR_COUNT; i++) {
    w->http[i] = http[i];
    httpd_ask(http[i]);
  }
}

static bool all_answered(const struct watchdog *w) {
  for (unsigned i = 0; i < DOOR_COUNT; i++)
    if (!httpd_answered(w->http[i])) return false;
  return true;
}

uint64_t watchdog_step(struct watchdog *w) {
  const uint64_t now = clock_now();
  if (!w->notify) return 0;
  if (now < w->next) return w->next;
  if (all_answered(w)) {
    notify_say(w->notify, "WATCHDOG=1");
    for (unsigned i = 0; i < DOOR_COUNT; i++) httpd_ask(w->http[i]);
  }
  return w->next = now + w->step_ns;
}
