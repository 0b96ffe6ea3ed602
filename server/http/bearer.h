/* bearer: who may ask: the key in a request's Authorization (RFC 6750). */
#ifndef SERVER_BEARER_H
#define SERVER_BEARER_H

#include "config/settings/api_keys.h"
#include "server/http/header.h"
#include "server/service/routes.h"

/* Does a path need a key, where keys are asked for? Probes have none to bring, nor has a browser
 * for the page, which asks its user for one; metrics may be open. What does not exist needs one as
 * well, so that strangers learn nothing. */
bool bearer_is_needed(enum route route, const struct config *c);

/* STATUS_UNAUTHORIZED unless the head brings one of the keys. */
enum status bearer_judge(const struct header *h, const struct api_keys *k, struct error *e);

/* The WWW-Authenticate of an answer to a head that was refused. Static text. */
const char *bearer_challenge(const struct header *h);

#endif
