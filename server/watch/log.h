/* log: the log of events, as lines on standard error, and the access log, on standard output.
 *
 * No call waits for a reader of either: a line that finds its ring full is dropped and counted
 * (log_ring.h). Any thread. */
#ifndef SERVER_LOG_H
#define SERVER_LOG_H

#include "core/base/status.h"
#include "server/watch/log_text.h"

/* Complaints that may be repeated thousands of times: the first is logged, later ones are counted,
 * and a line once in a while gives their number. */
enum log_complaint {
  COMPLAINT_ACCEPT, /* no descriptor or memory for a connection */
  COMPLAINT_LOST,   /* an accepted connection could not be handed to its thread */
  COMPLAINT_FULL,   /* the limit of connections is reached */
  COMPLAINT_HTTP_2, /* a client speaks HTTP/2 */
  COMPLAINT_HTTP,   /* libmicrohttpd complains of a client */
  COMPLAINT_COUNT
};

enum { LOG_REPEAT_MS = 10000 };

struct log;

struct log_options {
  const char *level, *access; /* the words of the settings */
  uint64_t slow_ms;           /* a request that took longer is slow */
  uint64_t repeat_ms;         /* the least time between two lines about one complaint */
  bool journal;               /* standard error goes to the journal */
};

/* Whether the systemd journal reads the descriptor. The journal keeps the time itself. */
bool log_is_journal(int fd);

struct log *log_new(const struct log_options *options, struct error *e);

/* Writes the lines in the rings, for a bounded time, and frees. `l` may be NULL. */
void log_free(struct log *l);

bool log_wants(const struct log *l, enum log_level level);

/* Writes a line to standard error (log_text_message), if the level is wanted. */
void log_line(struct log *l, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Writes a line about a complaint, unless there was one less than repeat_ms ago: then this one is
 * counted, and a later line gives the number. The level is debug for COMPLAINT_HTTP, else warning.
 */
void log_complain(struct log *l, enum log_complaint kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Whether the access log wants a request with this status, whose response was sent to its end
 * (`whole`) or cut off. It wants only errors and slow ones of a `probe`, which may be sent several
 * times a second. */
bool log_wants_request(const struct log *l, bool probe, unsigned code, bool whole,
                       uint64_t nanoseconds);
void log_request(struct log *l, const struct log_request *r);

uint64_t log_dropped(const struct log *l);    /* lines lost, of both logs */
uint64_t log_suppressed(const struct log *l); /* complaints that were counted instead of logged */

#endif
