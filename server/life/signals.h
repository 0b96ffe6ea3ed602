/* signals: SIGTERM, SIGINT and SIGHUP as main takes them, whichever thread the system gives them
 * to.
 *
 * Handlers count them: libraries start threads before main that block nothing, so that blocking and
 * waiting would let the default action end the process. Standard signals that come faster than they
 * are delivered become one, as always. */
#ifndef SERVER_SIGNALS_H
#define SERVER_SIGNALS_H

#include <time.h>

#include "core/run/status.h"

/* Sets the handlers, for good, and has the calling thread and those that it starts from now on
 * block the three: signals come while signals_next waits, and interrupt nothing. Only one thread
 * may call signals_next: this one. Ignores SIGPIPE and others that would end the process for
 * nothing. */
enum status signals_open(struct error *e);

/* The next signal, at most `within` later; NULL: for ever. 0: none, or signals_wake. One that stops
 * goes before SIGHUP, of which there may be no end, and of which many may come as one. */
int signals_next(const struct timespec *within);

/* Ends the wait of signals_next, or the next one: a thread has something to tell. */
void signals_wake(void);

#endif
