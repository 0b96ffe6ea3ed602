/* watchdog: tells the supervisor that the server is alive, if it is: main comes by, and every
 * thread that has connections has turned since it was asked. A thread that hangs has the process
 * restarted, not only a process that hangs whole. */
#ifndef SERVER_WATCHDOG_H
#define SERVER_WATCHDOG_H

#include "server/http/httpd.h"
#include "server/life/notify.h"

struct watchdog {
  const struct notify *notify; /* NULL: there is nothing to tell */
  struct httpd *http[DOOR_COUNT];
  uint64_t step_ns, next;
};

/* The supervisor wants to be told from now on. A door may be NULL. */
void watchdog_start(struct watchdog *w, const struct notify *n, struct httpd *const http[]);

/* Tells and asks, where it is time to. Returns when to come again, on clock_now; 0: never. */
uint64_t watchdog_step(struct watchdog *w);

#endif
