/* command: what the commands of `attend` share: exit statuses and messages; help and version. */
#ifndef SERVER_COMMAND_H
#define SERVER_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "core/base/status.h"

/* Exit statuses. `attend serve` has more (serve.h). */
enum {
  COMMAND_DONE,
  COMMAND_FAILED, /* the system refused, or the answer is no */
  COMMAND_MISUSED /* the configuration or the command line is wrong */
};

/* Writes a line about the error to standard error. Returns COMMAND_MISUSED for STATUS_CONFIG, else
 * COMMAND_FAILED. */
int command_fail(const struct error *e);

/* Likewise, about a wrong command line. `format` has one %s, for `word`. Returns COMMAND_MISUSED.
 */
int command_misuse(const char *format, const char *word);

/* The exit status of a command whose answer is on standard output. `well`: nothing has failed so
 * far; now the stream is flushed. */
int command_written(bool well);

/* Writes the pieces of an answer, whole, unless that fails. */
enum status command_write(int out, const struct iovec *piece, size_t pieces, struct error *e);

/* Prints the commands and settings or, if one is named, that setting in full. */
int command_help(const char *setting);
int command_version(void);

#endif
