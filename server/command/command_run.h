/* command_run: `attend run MODEL`: one request from a file to its answer, without a socket.
 *
 * The answer is byte for byte that of POST /v1/models/MODEL/attention, or .../heads. */
#ifndef SERVER_COMMAND_RUN_H
#define SERVER_COMMAND_RUN_H

#include "config/settings/config.h"
#include "server/attention/attention_body.h"

/* Reads a request body from the descriptor `in`, writes the answer's body to `out` and messages to
 * standard error. `terms` has what is asked, and the forms of body and answer. Returns the exit
 * status: 0 if answered, 1 if not (then nothing was written, unless writing itself failed), 2 if
 * the configuration is wrong or has no such model. */
int command_run(const struct config *c, const char *model, const struct body_terms *terms, int in,
                int out);

#endif
