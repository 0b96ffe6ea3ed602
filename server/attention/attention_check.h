/* attention_check: the fields of a request held against each other, the model and the limits. */
#ifndef SERVER_ATTENTION_CHECK_H
#define SERVER_ATTENTION_CHECK_H

#include "server/attention/attention_fields.h"
#include "server/attention/attention_request.h"

/* The end of reading a request: makes the run. Takes from the arena only what the limits
 * allow. */
enum status attention_check(const struct contract_reading *reading, const struct model *m,
                            const struct body_terms *terms, const struct body_limits *limits,
                            struct arena *a, struct attention_request *out, struct error *e);

#endif
