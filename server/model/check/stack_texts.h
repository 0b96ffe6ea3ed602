/* stack_texts: the texts that a request is to go on from, and the sequences that become of them. Of
 * an item with a source the text is the token that begins, with the item's targets behind it. For
 * the files of stack_check alone. */
#ifndef SERVER_STACK_TEXTS_H
#define SERVER_STACK_TEXTS_H

#include "server/model/check/stack_checking.h"

/* Holds the settings of the choice against each other and the model, and makes each text as many
 * items of the run's geometry as it has sequences. */
enum status stack_texts_check(struct stack_check *k);

/* Takes their tokens. */
enum status stack_texts_take(struct stack_check *k);

/* The rows that a sequence keeps at most. */
static inline size_t stack_texts_rows(const struct stack_request *r, size_t item) {
  return r->main.run->geometry.item[item].q + r->generation.sequence[item].most - 1;
}

#endif
