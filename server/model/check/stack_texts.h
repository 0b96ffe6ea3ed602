/* stack_texts: the prompts of a request to generate, and their sequences. In an encoder-decoder
 * model an item's prompt is the token that begins and the item's targets. Private to stack_check.
 */
#ifndef SERVER_STACK_TEXTS_H
#define SERVER_STACK_TEXTS_H

#include "server/model/check/stack_checking.h"

/* Checks the options of the choice against each other and the model, and makes an item of the run's
 * geometry for each sequence. */
enum status stack_texts_check(struct stack_check *k);

/* Sets the tokens of all sequences. */
enum status stack_texts_set(struct stack_check *k);

#endif
