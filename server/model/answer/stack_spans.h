/* stack_spans: the section of a response with the answers to questions: spans of their contexts.
 * For stack_answer alone. */
#ifndef SERVER_STACK_SPANS_H
#define SERVER_STACK_SPANS_H

#include "server/model/answer/stack_listing.h"

/* Adds the section of a request that has windows. Its run need not be prepared if the listing only
 * counts. Returns the status of `e`: no memory, or too large. */
enum status stack_spans_add(struct stack_listing *l, struct arena *a, struct error *e);

#endif
