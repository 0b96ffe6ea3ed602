/* bearer: the check of the API key in a request's Authorization field. */
#include "server/http/bearer.h"

#include <string.h>
#include <strings.h>

bool bearer_is_needed(enum route route, const struct config *c) {
  const enum route_key key = route_row(route)->key;
  return key == KEY_ALWAYS || (key == KEY_OF_METRICS && !c->metrics_open);
}

/* The token after the scheme, without blanks around it, and its length. NULL: another scheme, or no
 * field. */
static const char *find_token(const struct header *h, size_t *size) {
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

enum status bearer_check(const struct header *h, const struct api_keys *k, struct error *e) {
  size_t size = 0;
  const char *token = find_token(h, &size);
  must(k); /* a server without keys checks no header */
  if (h->authorizations > 1)
    return error_set(e, STATUS_UNAUTHORIZED,
                     "the request has several Authorization fields: send one");
  if (!token)
    return error_set(e, STATUS_UNAUTHORIZED,
                     "an API key is required: send Authorization: Bearer KEY");
  /* The size of a header is limited, and so is the time to hash the token. */
  if (api_keys_look(k, token, size).found) return STATUS_OK;
  return error_set(e, STATUS_UNAUTHORIZED, "the API key is invalid");
}

uint64_t bearer_number(const struct header *h) {
  size_t size = 0;
  const char *token = find_token(h, &size);
  uint64_t number = 0xcbf29ce484222325; /* FNV-1a */
  for (size_t i = 0; i < size; i++) number = (number ^ (unsigned char)token[i]) * 0x100000001b3;
  return number;
}

/* A client that sent no token gets no error code (RFC 6750). */
const char *bearer_challenge(const struct header *h) {
  size_t size;
  return find_token(h, &size) ? "Bearer error=\"invalid_token\"" : "Bearer";
}
