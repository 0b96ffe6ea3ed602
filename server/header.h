/* header: the request's header fields that mean something to us, judged one by one.
 *
 * Pure functions over text, no memory: what is kept borrows from the fields, which live as long as
 * the request. */
#ifndef SERVER_HEADER_H
#define SERVER_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

/* How well a list of media ranges likes application/json: by the most specific range that says
 * anything about it. */
struct header_accept {
  bool given;
  int quality[3]; /* thousandths of the ranges star/star, application/star, application/json */
};

struct header {
  const char *length;     /* Content-Length, or NULL */
  const char *request_id; /* X-Request-Id if it is sane, else NULL */
  const char *agent;      /* User-Agent, or NULL */
  struct header_accept accept;
  uint64_t body_bytes; /* announced; 0 if chunked */
  uint64_t timeout_ms; /* X-Timeout-Ms; 0: none */
  bool chunked;
  bool json;  /* Content-Type is ours or missing */
  bool coded; /* a Content-Encoding that is not identity */
  bool bad_timeout;
  unsigned hosts, codings;
  struct error error; /* bad framing or a malformed field: the first one found */
};

void header_init(struct header *h);

/* One more field, in the order of the message. `value` may be NULL: empty. */
void header_add(struct header *h, const char *name, size_t name_size, const char *value);

/* All fields are there: judges what takes several of them. */
void header_finish(struct header *h);

bool header_accepts_json(const struct header *h);

bool header_has_body(const struct header *h);

#endif
