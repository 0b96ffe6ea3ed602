/* bearer: who may ask: the key in a request's Authorization. */
#include "server/http/bearer.h"

#include <string.h>
#include <strings.h>

bool bearer_is_needed(enum route route, const struct config *c) {
  switch (route) {
  case ROUTE_PAGE:
  case ROUTE_HEALTH:
  case ROUTE_READY:
  case ROUTE_V2_LIVE:
  case ROUTE_V2_READY:
    return false;
  case ROUTE_METRICS:
    return !c->metrics_open;
  default:
    return true;
  }
}

/* What stands behind the scheme, with its length; NULL: it is another scheme, or none. Blanks
 * around it are none of the token's. */
static const char *token_of(const struct header *h, size_t *size) {
  static const char scheme[] = "Bearer";
  const char *at = h->authorization;
  if (!at) return NULL;
  at += strspn(at, " \t");
  if (strncasecmp(at, scheme, sizeof scheme - 1) != 0) return NULL;
  at += sizeof scheme - 1;
  if (*at && *at != ' ' && *at != '\t') return NULL;
  at += strspn(at, " \t");
  *size = strlen(at);
  while (*size > 0 && strchr(" \t", at[*size - 1])) --*size;
  return at;
}

enum status bearer_judge(const struct header *h, const struct api_keys *k, struct error *e) {
  size_t size = 0;
  const char *token = token_of(h, &size);
  must(k); /* without keys nobody is judged */
  if (h->authorizations > 1)
    return error_set(e, STATUS_UNAUTHORIZED, "there is more than one Authorization: send one");
  if (!token)
    return error_set(e, STATUS_UNAUTHORIZED, "a key is needed: send Authorization: Bearer KEY");
  /* The head is bounded, so hashing what is presented is, too. */
  if (api_keys_look(k, token, size).found) return STATUS_OK;
  return error_set(e, STATUS_UNAUTHORIZED, "the key in Authorization is none of those taken here");
}

/* Whoever brought no key, or brought something of another scheme, is told of no error. */
const char *bearer_challenge(const struct header *h) {
  size_t size;
  return token_of(h, &size) ? "Bearer error=\"invalid_token\"" : "Bearer";
}
