/* stack_answer: the sections of an answer to a request to encode or to score: which there are, and
 * where their numbers lie. */
#ifndef SERVER_STACK_ANSWER_H
#define SERVER_STACK_ANSWER_H

#include "server/answer/answer.h"
#include "server/body/body_terms.h"
#include "server/model/fields/stack_request.h"

/* Plans the answer, from the model of this name, to a request whose run is prepared. Fails as
 * answer_plan does. */
enum status stack_answer_plan(struct answer *a, enum answer_form form, const char *model,
                              const struct stack_request *r, const struct body_limits *limits,
                              struct arena *arena, struct error *e);

/* The rows that are computed of what the request brings: its tokens and targets, each text's once,
 * and of an item with a source the token that begins. */
size_t stack_answer_given(const struct stack_request *r);

/* What the request uses, known once all is computed. */
struct answer_usage stack_answer_usage(const struct stack_request *r);
size_t stack_answer_generated(const void *request);

/* Tokens of the texts, each text's once, whose keys and values were known. */
size_t stack_answer_recalled(const struct stack_request *r);

/* The request ends, computed or not. */
void stack_answer_leave(struct stack_request *r);

#endif
