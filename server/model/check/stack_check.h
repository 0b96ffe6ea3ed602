/* stack_check: the fields of a request to a whole model held against each other, the model and the
 * limits. */
#ifndef SERVER_STACK_CHECK_H
#define SERVER_STACK_CHECK_H

#include "server/model/fields/stack_fields.h"
#include "server/model/fields/stack_request.h"

/* The end of reading a request: makes the run. Takes from the arena only what the limits allow, and
 * packs the rows of padded items where they lie. `out` is empty, but for its v2. */
enum status stack_check(const struct contract_reading *reading, const struct whole *w,
                        const struct body_terms *terms, const struct body_limits *limits,
                        struct stack_request *out);

#endif
