/* cors: the origins whose pages may read responses in a browser (setting cors_origins).
 *
 * Built at the start, then only read, by any thread; without origins there is no struct cors. A
 * browser's own credentials are never allowed: a page sends its API key itself. */
#ifndef SERVER_CORS_H
#define SERVER_CORS_H

#include <stdbool.h>

#include "core/base/status.h"
#include "server/http/reply.h"

struct cors;

/* `list` has passed origins_check. `*out` becomes NULL for an empty one. */
enum status cors_new(const char *list, struct cors **out, struct error *e);
void cors_free(struct cors *c); /* `c` may be NULL */

/* The value of Access-Control-Allow-Origin in a response to this Origin, which lives as long as
 * `c`. NULL: the origin is not allowed, and the response has no such field. */
const char *cors_allow(const struct cors *c, const char *origin);

/* The fields of every response to an allowed origin, and those that a preflight also gets. */
extern const struct reply_field cors_every[], cors_preflight[];

#endif
