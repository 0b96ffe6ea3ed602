/* stack_targets: the targets of a request: what is fed behind a text, or of an item with a source
 * behind the token that begins.
 *
 * To score them all but the last are fed: each row from the one before the first target on gives
 * the log probability of the target that follows it. To go on from them all are. The Open Inference
 * Protocol has no targets, but what is fed as it is. For stack_check alone.
 */
#ifndef SERVER_STACK_TARGETS_H
#define SERVER_STACK_TARGETS_H

#include "server/model/check/stack_checking.h"

/* Holds the targets to be scored against the items, and adds to what begins each item (`begun`)
 * what is fed behind it; likewise to the rows of the widest item. */
enum status stack_targets_count(struct stack_check *k);

/* The same of the targets that begin the answer of an item with a source; it may have none. */
enum status stack_targets_begin(struct stack_check *k);

/* Counts what is fed to a decoder by itself, as `decoder_input_ids`. */
enum status stack_targets_fed(struct stack_check *k);

/* Makes the rows of a run that scores, whose items are known: its tokens, and which target each row
 * has. */
enum status stack_targets_take(struct stack_check *k);

#endif
