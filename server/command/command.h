/* command: the commands of `attend` except `serve`, each in a file of its own, and their exit
 * statuses and messages. */
#ifndef SERVER_COMMAND_H
#define SERVER_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "config/settings/config.h"
#include "core/base/status.h"
#include "server/body/body_terms.h"

/* Exit statuses. `attend serve` has more (serve.h). */
enum {
  COMMAND_DONE,
  COMMAND_FAILED, /* the system refused, or the result is negative */
  COMMAND_MISUSED /* the configuration or the command line is wrong */
};

/* Writes a line about the error to standard error. Returns COMMAND_MISUSED for STATUS_CONFIG, else
 * COMMAND_FAILED. */
int command_fail(const struct error *e);

/* Writes a line about a wrong command line. `format` has one %s, for `word`. Returns
 * COMMAND_MISUSED. */
int command_misuse(const char *format, const char *word);

/* Flushes standard output. Returns the exit status of a command that has written its result there;
 * `well`: nothing has failed so far. */
int command_written(bool well);

/* Writes all pieces of a response, unless that fails. */
enum status command_write(int out, const struct iovec *piece, size_t pieces, struct error *e);

/* Prints the commands and settings or, if one is named, that setting in full. */
int command_help(const char *setting);
int command_version(void);

/* `attend check`: loads the API keys and the models. Writes to standard output a configuration that
 * can be served as it is, and to standard error a line for each model and each warning. */
int command_check(const struct config *c);

/* `attend health [URL]`: asks a running server for its health, in containers that have no other
 * client. `url` is `http://host:port[/path]`; without a path it is /healthz. NULL: /healthz at
 * `listen`, the address of the door that has it, with 127.0.0.1 in place of 0.0.0.0. Returns 0 if
 * the response is 200 within three seconds; 1 if not, with a line on standard error; 2 if the URL
 * is wrong. */
int command_health(const char *url, const char *listen);

/* `attend inspect FILE [--models] [-o FILE] [--heads N] [--check]`: lists the tensors of a
 * checkpoint. `words`: the words after `inspect`, up to a NULL. There are no settings among them:
 * only the file and those in its folder are read. */
int command_inspect(char *const *words);

struct command_run_asked {
  const char *model;
  struct body_terms terms; /* the kind of request, and the forms of body and response */
  bool lines;              /* each line is a request, of JSON: command_lines.h */
};

/* `attend run MODEL`: requests from a file to their responses, without a socket. Reads a request
 * body from the descriptor `in`, writes the response's body to `out` and messages to standard
 * error. A response is byte for byte that of POST /v1/models/MODEL/attention, .../heads,
 * .../encode, .../score or .../generate; a stream is written event by event. Returns 0 if it is
 * written, 1 if not (then nothing was written, unless writing itself failed), 2 if the
 * configuration is wrong, or has no such model, or one of another kind. With lines, 1 if a line was
 * rejected, or reading or writing failed. */
int command_run(const struct config *c, const struct command_run_asked *asked, int in, int out);

#endif
