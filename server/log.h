/* log: lines to standard error (what happens) and standard output (who asked for what).
 *
 * A line goes into a bounded ring and is written by a thread of the log; a full ring drops the
 * line and counts it, so no request ever waits for whoever reads the log. Any thread. */
#ifndef SERVER_LOG_H
#define SERVER_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };
enum log_access { ACCESS_OFF, ACCESS_ERRORS, ACCESS_ALL };

struct log;

/* `level` and `access` are the words of the settings. */
struct log *log_new(const char *level, const char *access, struct error *e);

/* Writes what is in the rings, for a bounded time, and frees. */
void log_free(struct log *l);

bool log_wants(const struct log *l, enum log_level level);

/* One line `level=info msg="..."`. Control characters become \xHH; too long is cut. */
void log_line(struct log *l, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

struct log_request {
  const char *id, *client, *method, *path, *agent; /* agent may be NULL */
  unsigned code;
  uint64_t bytes_in, bytes_out, nanoseconds;
};

bool log_wants_access(const struct log *l, unsigned code);
void log_request(struct log *l, const struct log_request *r); /* one line of JSON */

uint64_t log_dropped(const struct log *l);

#endif
