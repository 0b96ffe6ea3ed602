/* bearer: the check of the API key in a request's Authorization field (RFC 6750). */
#ifndef SERVER_BEARER_H
#define SERVER_BEARER_H

#include "config/settings/api_keys.h"
#include "server/http/header.h"
#include "server/route/routes.h"

/* Whether a path needs a key, in a server with keys. */
bool bearer_is_needed(enum route route, const struct config *c);

/* STATUS_UNAUTHORIZED unless the header contains one of the keys. */
enum status bearer_check(const struct header *h, const struct api_keys *k, struct error *e);

/* A hash of the header's key. */
uint64_t bearer_number(const struct header *h);

/* The value of WWW-Authenticate in the response to a header that was rejected. Static text. */
const char *bearer_challenge(const struct header *h);

#endif
