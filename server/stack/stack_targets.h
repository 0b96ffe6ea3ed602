/* stack_targets: the targets of a request to score: a decoder is fed the tokens of an item and all
 * of its targets but the last; each row from the last token on gives the log probability of the
 * target that follows it. For stack_check alone. */
#ifndef SERVER_STACK_TARGETS_H
#define SERVER_STACK_TARGETS_H

#include "server/stack/stack_check.h"

/* Holds the targets against the items, and adds to the lengths of their tokens what is fed behind
 * these; likewise to the rows of the widest item. */
enum status stack_targets_count(struct stack_check *k, int32_t *lens);

/* Makes the rows of the run, whose items are known: its tokens, and which target each row has. */
enum status stack_targets_take(struct stack_check *k);

#endif
