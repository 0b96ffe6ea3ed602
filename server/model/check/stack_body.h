/* stack_body: the body of a request to a whole model, chunk by chunk, into a run of the core.
 *
 * The contract is checked in one place (stack_check): what is accepted, the core computes. */
#ifndef SERVER_STACK_BODY_H
#define SERVER_STACK_BODY_H

#include "config/build/whole.h"
#include "server/body/form/body.h"
#include "server/model/fields/stack_request.h"

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

/* The same of fields that were read, of whichever body (server/dialect/dialect_stack.h has other
 * services' words): texts become their tokens, and all of them the request's runs. With
 * ASK_CLASSIFY the outputs of main.run, once it is computed, are the scores of an item's classes,
 * behind the values' function: [items, output_size]; their names are those of classes_of. `out` is
 * empty, but for its v2. */
enum status stack_body_make(struct contract_reading *r, const struct whole *w,
                            const struct body_terms *terms, const struct body_limits *limits,
                            struct stack_request *out);

#endif
