/* stack_fill: the positions of a request to fill. Private to the files of this folder. */
#ifndef SERVER_STACK_FILL_H
#define SERVER_STACK_FILL_H

#include "server/model/check/stack_checking.h"

/* Finds the positions that each item fills, once its rows are counted: sets `scored`, `filled` and
 * the counts of targets. */
enum status stack_fill_count(struct stack_check *k);

/* Gives main's run a target in each of these rows, once the rows are packed. */
enum status stack_fill_set(struct stack_check *k);

#endif
