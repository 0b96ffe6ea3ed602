/* serve: `attend serve` from its settings to its exit status. */
#ifndef SERVER_SERVE_H
#define SERVER_SERVE_H

#include "config/settings/config.h"
#include "server/life/reload.h"

/* Serves until SIGTERM or SIGINT, then finishes what it has accepted; what it is loading, at the
 * start or again, is left. Returns the exit status: 0; 1 if the system refuses (the address is
 * taken); 2 if the configuration is wrong; 3 if work had to be abandoned when drain_ms had passed;
 * 128 + the number of a second signal. `*at_once`: threads are still at work, and the process must
 * end by _exit, with nothing freed. `called` is for SIGHUP, which reads the configuration again,
 * and for starting the program again if OpenBLAS needs a word in the environment. */
int serve_main(const struct config *c, const struct invocation *called, bool *at_once);

/* Messages on standard error, one line, as all commands give them. */
void serve_complain(const struct error *e);

#endif
