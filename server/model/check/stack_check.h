/* stack_check: the end of reading a request to a model: its fields are held against each other, the
 * model and the limits, and become runs of the core. */
#ifndef SERVER_STACK_CHECK_H
#define SERVER_STACK_CHECK_H

#include "server/model/fields/stack_fields.h"
#include "server/model/fields/stack_request.h"

/* Makes `out`, which is empty except for its v2. Allocates from the arena only what the limits
 * allow, and packs the rows of padded items in the tensors that were read. */
enum status stack_check(const struct contract_reading *reading, const struct whole *w,
                        const struct body_terms *terms, const struct body_limits *limits,
                        struct stack_request *out);

#endif
