/* stack_answer: the response to a request that encodes, scores or generates: its sections, and
 * where their numbers lie. */
#ifndef SERVER_STACK_ANSWER_H
#define SERVER_STACK_ANSWER_H

#include "server/answer/answer.h"
#include "server/body/body_terms.h"
#include "server/model/fields/stack_request.h"

/* Counts the most bytes of the numbers of the response, as answer_count does, except its trace.
 * The request is checked; its run need not be prepared. Fails without memory. */
enum status stack_answer_count(enum answer_form form, const struct stack_request *r,
                               struct arena *arena, size_t *bytes, struct error *e);

/* Plans the response, from the model of this name, to a request whose run is prepared. Fails as
 * answer_plan does. */
enum status stack_answer_plan(struct answer *a, enum answer_form form, const char *model,
                              const struct stack_request *r, const struct body_limits *limits,
                              struct arena *arena, struct error *e);

/* Usage. `given`: rows that are computed of the input: tokens and targets, each text's once, and
 * the token that begins. `recalled`: tokens of prompts whose KV rows were in the prefix cache.
 * `generated`: tokens of the sequences that are returned; it may be read while the run computes. */
struct answer_usage stack_answer_usage(const struct stack_request *r);
size_t stack_answer_given(const struct stack_request *r);
size_t stack_answer_recalled(const struct stack_request *r);
size_t stack_answer_generated(const void *request);

/* Ends the request, computed or not: releases what it holds of the prefix cache. */
void stack_answer_leave(struct stack_request *r);

#endif
