/* encode_body: the body of a request to encode, chunk by chunk, into a run of the core.
 *
 * The contract is checked in one place (encode_check): what is accepted, the core computes. */
#ifndef SERVER_ENCODE_BODY_H
#define SERVER_ENCODE_BODY_H

#include "config/model/whole.h"
#include "server/body/body.h"
#include "server/stack/encode_request.h"

struct encode_body;

/* It lives, like all that it makes, in the arena. `e` holds no failure, and outlives the body: the
 * first one goes there. NULL with a failure. The model has an encoder. */
struct encode_body *encode_body_new(const struct whole *w, const struct body_terms *terms,
                                    const struct body_limits *limits, struct arena *a,
                                    struct error *e);

/* The body itself, for body_feed and body_cost. */
struct body *encode_body_of(struct encode_body *b);

/* The body has ended: checks what can only be checked now, across fields. */
enum status encode_body_finish(struct encode_body *b, struct encode_request *out);

#endif
