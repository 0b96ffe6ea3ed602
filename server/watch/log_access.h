/* log_access: the line of the access log for one request: one JSON object, ASCII. */
#ifndef SERVER_LOG_ACCESS_H
#define SERVER_LOG_ACCESS_H

#include "server/watch/log_ring.h"
#include "server/watch/timeline.h"

struct log_request {
  const char *id, *listener, *client, *method;
  const char *route; /* its template */
  const char *path;  /* what stands behind its '?' or '#' is left out: a secret may be there */
  const char *model; /* "" or NULL: none is named */
  const char *agent; /* or NULL */
  const char *trace; /* a valid traceparent (trace.h), or NULL */
  const char *error; /* why there was no answer but this, or not a whole one; NULL: all is well */
  unsigned code;
  uint64_t bytes_in, bytes_out; /* of the bodies */
  uint64_t nanoseconds;
  const struct timeline *timeline;
};

/* Its length, with the newline. Allocates nothing, takes no lock. */
size_t log_access_text(const struct log_request *r, char text[LOG_LINE_SIZE]);

/* The line that tells that lines are missing: {"time":...,"log_lost":n}. */
size_t log_access_lost(uint64_t lines, char text[LOG_LINE_SIZE]);

#endif
