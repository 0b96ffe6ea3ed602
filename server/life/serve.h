/* serve: `attend serve` from its settings to its exit status. */
#ifndef SERVER_SERVE_H
#define SERVER_SERVE_H

#include "config/settings/config.h"
#include "server/life/reload.h"

/* Serves until SIGTERM or SIGINT, then finishes the requests that it has accepted; a load of models
 * that is under way is abandoned. Returns the exit status: 0; 3 if work had to be abandoned when
 * drain_ms had passed; 128 + the number of a second signal. An error in `e`: the server could not
 * start; STATUS_CONFIG if the configuration is wrong, else the system refuses (an address is in
 * use).
 * `*at_once`: threads are still at work, and the process must end by _exit.
 * `called`: SIGHUP reads the configuration again from it, and the program is executed again with it
 * if OpenBLAS needs a variable in the environment. */
int serve_main(const struct config *c, const struct reload_invocation *called, bool *at_once,
               struct error *e);

#endif
