/* stack_answer_fill: the section of a response to a request that fills masked tokens. Private to
 * the files of this folder. */
#ifndef SERVER_STACK_ANSWER_FILL_H
#define SERVER_STACK_ANSWER_FILL_H

#include "server/model/answer/stack_listing.h"

/* Adds "masks": for each position that is filled, its most likely tokens. */
void stack_answer_fill(struct stack_listing *l);

#endif
