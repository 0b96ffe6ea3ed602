/* command_run: `attend run MODEL`: requests from a file to their answers, without a socket.
 *
 * An answer is byte for byte that of POST /v1/models/MODEL/attention, .../heads, .../encode,
 * .../score or .../generate; a stream is written event by event. */
#ifndef SERVER_COMMAND_RUN_H
#define SERVER_COMMAND_RUN_H

#include <stdbool.h>

#include "config/settings/config.h"
#include "server/attention/attention_body.h"

struct command_run_asked {
  const char *model;
  struct body_terms terms; /* what is asked, and the forms of body and answer */
  bool lines;              /* each line is a request, of JSON: command_lines.h */
};

/* Reads a request body from the descriptor `in`, writes the answer's body to `out` and messages to
 * standard error. Returns the exit status: 0 if answered, 1 if not (then nothing was written,
 * unless writing itself failed), 2 if the configuration is wrong, or has no such model, or one of
 * another kind. With lines, 1 if a line was refused, or reading or writing failed. */
int command_run(const struct config *c, const struct command_run_asked *asked, int in, int out);

#endif
