/* cors: the origins whose pages may read responses in a browser. */
#include "server/http/cors.h"

#include <stdlib.h>
#include <string.h>

#include "config/settings/origins.h"

/* The origins one after the other, each with its NUL; an empty one ends them. */
struct cors {
  bool any;
  char origins[];
};

/* Fields of responses that a page could not read otherwise. */
const struct reply_field cors_every[] = {
    {"Access-Control-Expose-Headers",
     "X-Request-Id, Server-Timing, Inference-Header-Content-Length, Retry-After, "
     "WWW-Authenticate"},
    {NULL, NULL},
};

/* The fields that have a meaning here, and any others, which clients of other services send; `*`
 * does not include Authorization. Chromium remembers a preflight for two hours at most. */
const struct reply_field cors_preflight[] = {
    {"Access-Control-Allow-Headers",
     "Authorization, Content-Type, Accept, X-Request-Id, X-Timeout-Ms, traceparent, tracestate, "
     "Inference-Header-Content-Length, *"},
    {"Access-Control-Max-Age", "7200"},
    {NULL, NULL},
};

enum status cors_new(const char *list, struct cors **out, struct error *e) {
  *out = NULL;
  if (!*list) return STATUS_OK;
  struct cors *c = calloc(1, sizeof *c + strlen(list) + 2);
  if (!c) return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for cors_origins");
  c->any = strcmp(list, "*") == 0;
  const char *origin;
  size_t size;
  for (char *to = c->origins; (list = origins_next(list, &origin, &size)); to += size + 1)
    memcpy(to, origin, size);
  *out = c;
  return STATUS_OK;
}

void cors_free(struct cors *c) { free(c); }

const char *cors_allow(const struct cors *c, const char *origin) {
  if (c->any) return "*";
  const char *at = c->origins;
  while (*at && strcmp(at, origin) != 0) at += strlen(at) + 1;
  return *at ? at : NULL;
}
