/* stack_limits: the cost of a request, counted before anything is allocated for it. Private to the
 * files of this folder. */
#ifndef SERVER_STACK_LIMITS_H
#define SERVER_STACK_LIMITS_H

#include "server/model/check/stack_checking.h"

/* Checks the work of the request and the bytes of its response against the limits. */
enum status stack_limits_check(struct stack_check *k);

/* Reports that there are more pairs than `most`: `work` of them, or an unknown number if that is 0.
 * `source` is NULL if the request has one side; `weighs`: heads are measured. Returns the error's
 * status. */
enum status stack_limits_refuse_pairs(const struct stack_form *source,
                                      const struct stack_form *main, bool weighs, size_t work,
                                      size_t most, struct error *e);

#endif
