/* stack_question: questions and contexts become pairs, and long contexts windows. For
 * stack_tokenize alone. */
#ifndef SERVER_STACK_QUESTION_H
#define SERVER_STACK_QUESTION_H

#include "config/build/whole.h"
#include "server/body/body_terms.h"
#include "server/body/contract.h"
#include "server/model/fields/stack_request.h"
#include "server/tokenize/tokenize_texts.h"

/* Checks which fields a request to answer questions has next to each other. Returns the status of
 * the reading's error. */
enum status stack_question_check(const struct contract_reading *r);

/* Makes the texts of the reading pairs, if it has second ones. Returns the status of its error. */
enum status stack_question_pairs(struct contract_reading *r);

/* An error about a pair becomes one about its question, or its context. Returns its status. */
enum status stack_question_locate(const struct contract_reading *r, const struct whole *w);

/* Replaces the tokens of each pair by those of its windows, which it gives to the request. Each has
 * at most as many tokens as the model reads. Fails with invalid-request if the question leaves no
 * room for its context, or if the stride is not smaller than a window; with too-large if there are
 * more windows than items may be. */
enum status stack_question_windows(struct contract_reading *r, const struct whole *w,
                                   const struct body_limits *limits, struct tokenize_texts *d,
                                   struct stack_request *out);

#endif
