/* log_text: the lines of both logs as text: whole, ASCII, at most LOG_LINE_SIZE bytes with their
 * newline. Nothing here allocates or takes a lock. Any thread. */
#ifndef SERVER_LOG_TEXT_H
#define SERVER_LOG_TEXT_H

#include <stdbool.h>
#include <time.h>

#include "server/watch/log_ring.h"
#include "server/watch/timeline.h"

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG, LOG_LEVELS };

/* The word for a level: "error". */
const char *log_text_level(enum log_level level);

/* Writes `time=... level=info msg="..."`; for the journal, which keeps the time itself,
 * `<6>level=info msg="..."`. A byte that is not visible ASCII becomes \xHH; a message that is too
 * long is cut. Returns the length, as the functions below do. */
size_t log_text_message(bool journal, enum log_level level, const char *message,
                        char line[LOG_LINE_SIZE]);

/* A request that has ended. */
struct log_request {
  const char *id, *listener, *client, *method;
  const char *route;       /* its template */
  const char *path;        /* logged up to its '?' or '#': a secret may follow */
  const char *model;       /* "" or NULL: the request names none */
  const char *agent;       /* or NULL */
  const char *traceparent; /* a valid one (request_id.h), or NULL */
  const char *error;       /* the reason of an error or of a cut response, or NULL */
  unsigned code;
  uint64_t bytes_in, bytes_out; /* of the bodies */
  uint64_t nanoseconds;
  uint64_t tokens, generated; /* input tokens of a model, and tokens that it generated; or 0 */
  uint64_t first_token;       /* nanoseconds until the first generated token; 0: there is none */
  const struct timeline *timeline;
};

/* Writes the line of the access log for a request: one JSON object. Text that is not UTF-8 becomes
 * U+FFFD; text that is too long is cut at a character and ends with an ellipsis. */
size_t log_text_request(const struct log_request *r, char line[LOG_LINE_SIZE]);

/* Writes the line of the access log that counts missing ones: {"time":...,"log_lost":n}. */
size_t log_text_lost(uint64_t lines, char line[LOG_LINE_SIZE]);

enum { LOG_TIME_SIZE = 28 }; /* with a NUL */

/* Writes RFC 3339, UTC, microseconds: 2026-11-22T02:37:22.494666Z. Years up to 9999. */
void log_text_time(const struct timespec *realtime, char text[LOG_TIME_SIZE]);

#endif
