/* stack_body: the body of a request to a model, fed chunk by chunk, into runs of the core.
 *
 * The contract is checked in one place (stack_check); the core computes what is accepted. */
#ifndef SERVER_STACK_BODY_H
#define SERVER_STACK_BODY_H

#include "config/build/whole.h"
#include "server/body/form/body.h"
#include "server/model/fields/stack_request.h"

struct stack_body;

/* It lives, like all that it makes, in the arena. `e`, which holds no failure, outlives it and gets
 * the first failure. The model can serve what `terms` ask. NULL with a failure. */
struct stack_body *stack_body_new(const struct whole *w, const struct body_terms *terms,
                                  const struct body_limits *limits, struct arena *a,
                                  struct error *e);

/* The body itself, for body_feed and body_cost. */
struct body *stack_body_of(struct stack_body *b);

/* Ends the body: checks its fields against each other, and makes the request. */
enum status stack_body_finish(struct stack_body *b, struct stack_request *out);

/* Makes the request of fields that were read, from any body (server/dialect has the fields of other
 * services): tokenizes texts, and checks the fields. With ASK_CLASSIFY the outputs of main.run,
 * [items, output_size], are the scores of classes after the values' function; classes_of has their
 * names. `out` is empty except for its v2. */
enum status stack_body_make(struct contract_reading *r, const struct whole *w,
                            const struct body_terms *terms, const struct body_limits *limits,
                            struct stack_request *out);

#endif
