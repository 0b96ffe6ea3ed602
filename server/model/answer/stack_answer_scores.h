/* stack_answer_scores: what an answer to a request to score has of its targets: how likely each is,
 * the likeliest tokens in its place, and what
 * each hidden state says of it. For stack_answer and stack_limits alone. */
#ifndef SERVER_STACK_ANSWER_SCORES_H
#define SERVER_STACK_ANSWER_SCORES_H

#include "server/model/answer/stack_listing.h"
#include "server/model/answer/stack_words.h"

/* Appends the sections of the targets. */
void stack_answer_scores(struct stack_listing *l, enum answer_form form);

#endif
