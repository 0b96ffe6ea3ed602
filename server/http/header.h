/* header: reads the fields of a request's header that have a meaning here.
 *
 * Pure functions over text, which allocate nothing: pointers in struct header lead into the fields
 * themselves, which live as long as the request. */
#ifndef SERVER_HEADER_H
#define SERVER_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

/* Types that a body or an answer may have. */
enum header_media {
  MEDIA_JSON,        /* application/json */
  MEDIA_SAFETENSORS, /* application/x-safetensors */
  MEDIA_OCTETS,      /* application/octet-stream: read as safetensors */
  MEDIA_OTHER,
  MEDIA_NONE /* no Content-Type */
};

/* The qualities (q) of the media ranges in Accept, in thousandths; -1: the range is not there. The
 * most specific range that contains a type decides. */
struct header_accept {
  bool given;
  int any, application; /* the ranges star/star and application/star */
  int events;           /* text/event-stream */
  int named[MEDIA_OTHER];
};

/* The qualities of the codings in Accept-Encoding; -1: the coding is not there. */
struct header_codings {
  int any, gzip, identity;
};

/* The form that Accept asks for, if a response may be JSON or binary. */
enum header_wish { WISH_JSON, WISH_BINARY, WISH_BINARY_ALONE, WISH_NEITHER };

struct header {
  const char *length;        /* Content-Length, or NULL */
  const char *request_id;    /* X-Request-Id if it is valid, else NULL */
  const char *agent;         /* User-Agent, or NULL */
  const char *traceparent;   /* traceparent if it is valid, else NULL */
  const char *authorization; /* the last Authorization, or NULL */
  const char *origin;        /* Origin if there is exactly one, else NULL */
  const char *const *tags;   /* entity tags to look for in If-None-Match, ended by NULL; or NULL */
  struct header_accept accept;
  struct header_codings takes;
  uint64_t body_bytes;       /* announced; 0 if chunked */
  uint64_t timeout_ms;       /* X-Timeout-Ms; 0: none */
  uint64_t json_bytes;       /* Inference-Header-Content-Length; UINT64_MAX: none */
  enum header_media content; /* Content-Type; two that differ are MEDIA_OTHER */
  unsigned known;            /* one bit for each of `tags` that If-None-Match names */
  bool chunked;
  bool names_chunked, ends_chunked; /* whether a coding, or the last one, is chunked */
  bool coded;                       /* there is a Content-Encoding other than identity */
  bool bad_timeout, bad_json_bytes;
  bool asks_method; /* Access-Control-Request-Method is there: a preflight, if it is OPTIONS */
  unsigned hosts, codings, traceparents, authorizations, origins;
  struct error error; /* the first fault found: bad framing or a malformed field */
};

void header_init(struct header *h);

/* Reads the next field of the message. NULL for `value`: it is empty. */
void header_add(struct header *h, const char *name, size_t name_size, const char *value);

/* Checks what depends on several fields, after the last one. */
void header_finish(struct header *h);

/* The form of the response to a request with a binary or a JSON body. A binary type that is named
 * wins over JSON of the same quality; if no type is named, the response has the form of the body.
 */
enum header_wish header_wish(const struct header *h, bool binary);

/* Whether Accept names text/event-stream. */
bool header_takes_events(const struct header *h);

/* The type of a binary response: MEDIA_OCTETS only if Accept names it, or excludes the other one.
 */
enum header_media header_binary_type(const struct header *h);

/* Whether a response that exists in both forms is sent as gzip: only if Accept-Encoding asks. */
bool header_takes_gzip(const struct header *h);

const char *header_media_type(enum header_media media); /* the name of one of the first three */

bool header_has_body(const struct header *h);

#endif
