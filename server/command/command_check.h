/* command_check: `attend check`: what `attend serve` would begin with, without a socket. */
#ifndef SERVER_COMMAND_CHECK_H
#define SERVER_COMMAND_CHECK_H

#include "config/settings/config.h"

/* Loads the API keys and the models. Writes to standard output a configuration that could be served
 * as it is, and to standard error a line for each model and each warning. Returns the exit
 * status. */
int command_check(const struct config *c);

#endif
