/* cors: which pages of which origins a browser lets read our answers (setting cors_origins).
 *
 * Built at the start, then only looked at, by any thread. Without origins there is none, and
 * nothing of this is ever looked at. No credentials of a browser are taken: a page brings its key.
 */
#ifndef SERVER_CORS_H
#define SERVER_CORS_H

#include <stdbool.h>

#include "core/run/status.h"
#include "server/http/reply.h"

struct cors;

/* `list` has passed origins_check. `*out` is NULL for an empty one. */
enum status cors_new(const char *list, struct cors **out, struct error *e);
void cors_free(struct cors *c); /* NULL is fine */

/* What an answer to this Origin says in Access-Control-Allow-Origin; NULL: nothing, for the origin
 * is not one of those named. Lives as long as `c`. */
const char *cors_allow(const struct cors *c, const char *origin);

/* Fields of every answer to an allowed origin, and of those to a preflight besides. */
extern const struct reply_field cors_every[], cors_preflight[];

#endif
