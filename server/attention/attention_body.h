/* attention_body: the body of an attention request, chunk by chunk, into a call of the core.
 *
 * A body is JSON, safetensors, or a request of the Open Inference Protocol v2; each has a reader of
 * its own, and all are driven by the same table of fields. The contract is then checked in one
 * place (attention_check): what is accepted, the core computes. */
#ifndef SERVER_ATTENTION_BODY_H
#define SERVER_ATTENTION_BODY_H

#include "config/model/model.h"
#include "server/attention/attention_request.h"

struct attention_body;

/* It lives, like all that it makes, in the arena. `e` holds no failure, and outlives the body: the
 * first one goes there. NULL with a failure. */
struct attention_body *attention_body_new(const struct model *m, const struct body_terms *terms,
                                          const struct body_limits *limits, struct arena *a,
                                          struct error *e);

/* The next bytes of the body. After the first failure further calls return the same status and look
 * at nothing. */
enum status attention_body_feed(struct attention_body *b, const char *bytes, size_t size);

/* How long attention_body_finish will take, in nanoseconds, about. */
uint64_t attention_body_cost(const struct attention_body *b);

/* The body has ended: checks what can only be checked now, across fields. */
enum status attention_body_finish(struct attention_body *b, struct attention_request *out);

#endif
