/* log: lines to standard error (what happens) and standard output (who asked for what).
 *
 * Nobody waits for whoever reads them (log_ring.h). Any thread. */
#ifndef SERVER_LOG_H
#define SERVER_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "core/run/status.h"
#include "server/watch/log_access.h"

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

/* What may happen again and again: said once, then counted, and told once in a while how often. */
enum complaint {
  COMPLAINT_ACCEPT, /* no descriptor or memory for a connection */
  COMPLAINT_LOST,   /* a connection could not be taken */
  COMPLAINT_FULL,   /* as many connections as there may be */
  COMPLAINT_HTTP,   /* what libmicrohttpd says of its clients */
  COMPLAINT_COUNT
};

enum { LOG_REPEAT_MS = 10000 };

struct log;

struct log_options {
  const char *level, *access; /* the words of the settings */
  uint64_t slow_ms;           /* a request that took longer is slow */
  uint64_t repeat_ms;         /* how often a repeated complaint is told at most */
  bool journal;               /* standard error goes to the journal */
};

/* Does what is written to the descriptor go to the systemd journal? It keeps the time itself. */
bool log_is_journal(int fd);

struct log *log_new(const struct log_options *options, struct error *e);

/* Writes what is in the rings, for a bounded time, and frees. NULL is fine. */
void log_free(struct log *l);

bool log_wants(const struct log *l, enum log_level level);

/* One line `time=... level=info msg="..."`; to the journal `<6>level=info msg="..."`. Control
 * characters become \xHH; too long is cut. */
void log_line(struct log *l, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same, unless the last one of this kind was less than repeat_ms ago: then it is counted, and
 * one line will tell how many there were. Debug for COMPLAINT_HTTP, else a warning. */
void log_complain(struct log *l, enum complaint kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Is a request with this status, as a `whole` or cut off, one for the access log? Of a `probe` it
 * never tells more than of errors: there are several a second. */
bool log_wants_request(const struct log *l, bool probe, unsigned code, bool whole,
                       uint64_t nanoseconds);
void log_request(struct log *l, const struct log_request *r); /* one line of JSON */

uint64_t log_dropped(const struct log *l);    /* lines lost, of both */
uint64_t log_suppressed(const struct log *l); /* complaints counted instead of said */

#endif
