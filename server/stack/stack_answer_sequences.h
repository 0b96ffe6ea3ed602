/* stack_answer_sequences: what an answer to a request to generate has: its sequences. For
 * stack_answer and stack_limits alone. */
#ifndef SERVER_STACK_ANSWER_SEQUENCES_H
#define SERVER_STACK_ANSWER_SEQUENCES_H

#include "server/stack/stack_answer_scores.h"

/* Bytes of one of `most` tokens, with so many of the likeliest in the place of each. */
size_t stack_sequence_room(size_t most, size_t top);

/* Appends the section of the sequences. */
void stack_answer_sequences(struct stack_listing *l);

#endif
