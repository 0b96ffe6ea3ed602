/* attention_body: the body of an attention request, chunk by chunk, into a call of the core.
 *
 * The contract is checked in one place (attention_check): what is accepted, the core computes. */
#ifndef SERVER_ATTENTION_BODY_H
#define SERVER_ATTENTION_BODY_H

#include "config/build/model.h"
#include "server/attention/attention_request.h"
#include "server/body/form/body.h"

struct attention_body;

/* It lives, like all that it makes, in the arena. `e` holds no failure, and outlives the body: the
 * first one goes there. NULL with a failure. */
struct attention_body *attention_body_new(const struct model *m, const struct body_terms *terms,
                                          const struct body_limits *limits, struct arena *a,
                                          struct error *e);

/* The body itself, for body_feed and body_cost. */
struct body *attention_body_of(struct attention_body *b);

/* The body has ended: checks what can only be checked now, across fields. */
enum status attention_body_finish(struct attention_body *b, struct attention_request *out);

#endif
