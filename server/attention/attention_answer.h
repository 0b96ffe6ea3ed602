/* attention_answer: the sections of an answer to an attention request: which there are, and where
 * their numbers lie. */
#ifndef SERVER_ATTENTION_ANSWER_H
#define SERVER_ATTENTION_ANSWER_H

#include "config/build/model.h"
#include "server/answer/answer.h"
#include "server/attention/attention_request.h"
#include "server/body/body_terms.h"

/* Plans the answer to a request whose call is prepared. ANSWER_SAFETENSORS is for what
 * attention_request_has_binary, ANSWER_V2 for items that agree in their shape. Fails as answer_plan
 * does. */
enum status attention_answer_plan(struct answer *a, enum answer_form form, const struct model *m,
                                  const struct attention_request *r,
                                  const struct body_limits *limits, struct arena *arena,
                                  struct error *e);

#endif
