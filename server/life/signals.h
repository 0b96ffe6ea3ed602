/* signals: SIGTERM, SIGINT and SIGHUP, collected for main, on whichever thread they arrive.
 *
 * Handlers count them. Blocking them and calling sigwait is not enough: libraries start threads
 * before main, which block no signals, and there the default action would end the process. Signals
 * of one kind that are sent faster than they are delivered become one, as always in Unix. */
#ifndef SERVER_SIGNALS_H
#define SERVER_SIGNALS_H

#include <time.h>

#include "core/base/status.h"

/* Sets the handlers permanently, and blocks the three signals for the calling thread and those that
 * it starts from now on: they arrive while signals_next waits, and interrupt no other call. Only
 * this thread may call signals_next. Ignores SIGPIPE and other signals that would end the process
 * without need. */
enum status signals_open(struct error *e);

/* Waits for the next signal, at most `within`; NULL: without a limit. 0: there is none, or
 * signals_wake was called. SIGTERM and SIGINT precede SIGHUP, which may be sent without end;
 * several SIGHUP may become one. */
int signals_next(const struct timespec *within);

/* Ends the wait of signals_next, or its next one. Any thread. */
void signals_wake(void);

#endif
