/* header: the request's header fields that mean something to us, judged one by one.
 *
 * Pure functions over text, no memory: what is kept borrows from the fields, which live as long as
 * the request. */
#ifndef SERVER_HEADER_H
#define SERVER_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/run/status.h"

/* Types that a body or an answer may have. */
enum header_media {
  MEDIA_JSON,        /* application/json */
  MEDIA_SAFETENSORS, /* application/x-safetensors */
  MEDIA_OCTETS,      /* application/octet-stream: taken as safetensors */
  MEDIA_OTHER,
  MEDIA_NONE /* not said */
};

/* How well a list of media ranges likes each of the types: by the most specific range that says
 * anything about it. In thousandths; -1: the range is not there. */
struct header_accept {
  bool given;
  int any, application; /* the ranges star/star and application/star */
  int named[MEDIA_OTHER];
};

/* How well Accept-Encoding likes what we may send, likewise. */
struct header_codings {
  int any, gzip, identity;
};

/* What follows from it for an answer that may be JSON or binary. */
enum header_wish { WISH_JSON, WISH_BINARY, WISH_BINARY_ALONE, WISH_NEITHER };

struct header {
  const char *length;        /* Content-Length, or NULL */
  const char *request_id;    /* X-Request-Id if it is sane, else NULL */
  const char *agent;         /* User-Agent, or NULL */
  const char *trace;         /* traceparent if it is valid, else NULL */
  const char *authorization; /* the last one, or NULL */
  const char *origin;        /* Origin if there is one and no more, else NULL */
  const char *const *tags;   /* what If-None-Match is held against, ended by NULL; or NULL */
  struct header_accept accept;
  struct header_codings takes;
  uint64_t body_bytes;       /* announced; 0 if chunked */
  uint64_t timeout_ms;       /* X-Timeout-Ms; 0: none */
  uint64_t json_bytes;       /* Inference-Header-Content-Length; UINT64_MAX: none */
  enum header_media content; /* Content-Type; two that differ are MEDIA_OTHER */
  unsigned known;            /* which of `tags` If-None-Match names: a bit of each */
  bool chunked;
  bool coded; /* a Content-Encoding that is not identity */
  bool bad_timeout, bad_json_bytes;
  bool asks_method; /* Access-Control-Request-Method is there: with OPTIONS, a preflight */
  unsigned hosts, codings, traces, authorizations, origins;
  struct error error; /* bad framing or a malformed field: the first one found */
};

void header_init(struct header *h);

/* One more field, in the order of the message. `value` may be NULL: empty. */
void header_add(struct header *h, const char *name, size_t name_size, const char *value);

/* All fields are there: judges what takes several of them. */
void header_finish(struct header *h);

/* The form of the answer to a request whose body is binary, or is not. A binary type that is named
 * wins over JSON of the same quality; where none of all is named the answer is as the body was. */
enum header_wish header_wish(const struct header *h, bool binary);

/* Which of the two types a binary answer has: MEDIA_OCTETS only if it is asked for by name, or the
 * other one is refused. */
enum header_media header_binary_type(const struct header *h);

/* Is the answer to have Content-Encoding: gzip, where there is one? Not unless it is asked for. */
bool header_takes_gzip(const struct header *h);

const char *header_media_type(enum header_media media); /* one of the first three, as text */

bool header_has_body(const struct header *h);

#endif
