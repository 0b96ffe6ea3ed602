/* stack_body: the body of a request to encode or to score, chunk by chunk, into a run of the core.
 *
 * The contract is checked in one place (stack_check): what is accepted, the core computes. */
#ifndef SERVER_STACK_BODY_H
#define SERVER_STACK_BODY_H

#include "config/model/whole.h"
#include "server/body/body.h"
#include "server/stack/stack_request.h"

struct stack_body;

/* It lives, like all that it makes, in the arena. `e` holds no failure, and outlives the body: the
 * first one goes there. NULL with a failure. The model has the stack that is asked. */
struct stack_body *stack_body_new(const struct whole *w, const struct body_terms *terms,
                                  const struct body_limits *limits, struct arena *a,
                                  struct error *e);

/* The body itself, for body_feed and body_cost. */
struct body *stack_body_of(struct stack_body *b);

/* The body has ended: checks what can only be checked now, across fields. */
enum status stack_body_finish(struct stack_body *b, struct stack_request *out);

#endif
