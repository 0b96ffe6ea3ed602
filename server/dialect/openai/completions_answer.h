/* completions_answer: the response to POST /v1/completions and /v1/chat/completions, at once or as
 * a stream. */
#ifndef SERVER_COMPLETIONS_ANSWER_H
#define SERVER_COMPLETIONS_ANSWER_H

#include "server/dialect/dialect.h"

/* The format of the response. */
struct completions_form;
extern const struct completions_form completions_of_prompts, completions_of_chat;

/* The functions of a dialect (dialect.h) whose values begin with struct generation_values. They
 * also fail if a decoder's pattern takes too long. */
enum status completions_answer(struct answer *a, const struct contract_reading *read,
                               const char *model, const struct stack_request *r, size_t max_bytes);
enum status completions_stream(struct stack_stream *s, const struct contract_reading *read,
                               const char *model, const struct stack_request *r);

#endif
