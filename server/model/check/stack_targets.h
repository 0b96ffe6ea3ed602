/* stack_targets: the targets of a request, which are fed to main after the item's tokens, or in an
 * encoder-decoder model after the token that begins.
 *
 * A request to score feeds all targets except the last: each row from the one before the first
 * target on gives the log probability of the target that follows it. A request to generate feeds
 * all. The Open Inference Protocol has no targets, only tokens for the decoder, which are fed as
 * they are. Private to stack_check. */
#ifndef SERVER_STACK_TARGETS_H
#define SERVER_STACK_TARGETS_H

#include "server/model/check/stack_checking.h"

/* Checks the targets to be scored against the items, and adds the rows that they are fed in to
 * `begun` and to the rows of the widest item. */
enum status stack_targets_count(struct stack_check *k);

/* The same for a request to generate, where targets, if there are any, begin the response. */
enum status stack_targets_begin(struct stack_check *k);

/* Sets `begun` to the tokens of each item in `decoder_input_ids`. */
enum status stack_targets_fed(struct stack_check *k);

/* Sets the tokens of a run that scores, whose items are known, and the target of each row. */
enum status stack_targets_set(struct stack_check *k);

#endif
