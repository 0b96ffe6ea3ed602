/* stack_ablation_check: which heads of a whole model are measured, and how much work that is. For
 * the files of stack_check alone. */
#ifndef SERVER_STACK_ABLATION_CHECK_H
#define SERVER_STACK_ABLATION_CHECK_H

#include "server/model/check/stack_checking.h"

/* Notes that heads are measured: those that the request names, else all. */
void stack_ablation_take(struct stack_check *k);

/* The pairs of a query and a key of all rounds: of the whole one, in which the source has `source`
 * and main has `own`, and of one without each of the heads, from its layer on. False: they are too
 * many to count. */
bool stack_ablation_pairs(const struct stack_check *k, size_t source, size_t own, size_t *pairs);

#endif
