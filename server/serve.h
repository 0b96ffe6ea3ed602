/* serve: `attend serve` from its settings to its exit status. */
#ifndef SERVER_SERVE_H
#define SERVER_SERVE_H

#include "config/config.h"

/* Serves until SIGTERM or SIGINT, then finishes what it has accepted. Returns the exit status:
 * 0; 1 if the system refuses (the address is taken); 2 if the configuration is wrong; 3 if work had
 * to be abandoned when drain_ms had passed. A second signal ends the process at once with
 * 128 + its number. `argv` is the program's, to start it again if OpenBLAS needs a word in the
 * environment. */
int serve_main(const struct config *c, char **argv);

/* Messages on standard error, one line, as all commands give them. */
void serve_complain(const struct error *e);

#endif
