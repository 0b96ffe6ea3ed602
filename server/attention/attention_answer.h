/* attention_answer: the response to an attention request: its format and its sections. */
#ifndef SERVER_ATTENTION_ANSWER_H
#define SERVER_ATTENTION_ANSWER_H

#include "config/build/model.h"
#include "server/answer/answer.h"
#include "server/attention/attention_body.h"
#include "server/body/body_terms.h"

/* Returns whether the response can be safetensors: not with measures, a trace, or items of
 * different shapes. Otherwise attention_request_why_json says why, and what to do. */
bool attention_request_has_binary(const struct attention_request *r);
const char *attention_request_why_json(const struct attention_request *r);

/* Returns the most bytes of the numbers of the response to a checked call, as answer_count does. */
size_t attention_answer_count(enum answer_form form, const struct model *m,
                              const struct attention_request *r);

/* Plans the response to a prepared call. ANSWER_SAFETENSORS requires attention_request_has_binary,
 * ANSWER_V2 items of one shape. Fails as answer_plan does. */
enum status attention_answer_plan(struct answer *a, enum answer_form form, const struct model *m,
                                  const struct attention_request *r,
                                  const struct body_limits *limits, struct arena *arena,
                                  struct error *e);

#endif
