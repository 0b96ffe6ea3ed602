/* stack_limits: what a request would cost, counted before anything is allocated for it. Private to
 * the files of this folder. */
#ifndef SERVER_STACK_LIMITS_H
#define SERVER_STACK_LIMITS_H

#include "server/model/check/stack_checking.h"

/* Checks the work of the request and the bytes of its response against the limits. */
enum status stack_limits_check(struct stack_check *k);

/* Sets the error that there are more pairs than `most`: `work` of them, or, if it is 0, an unknown
 * number. Without `source` there is one stack. Returns its status. */
enum status stack_limits_refuse_pairs(const struct stack_form *source,
                                      const struct stack_form *main, bool weighs, size_t work,
                                      size_t most, struct error *e);

#endif
