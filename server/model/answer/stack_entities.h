/* stack_entities: the section of a response with the entities of texts: their tokens, or groups of
 * them, that have a class other than "O". For stack_answer alone. */
#ifndef SERVER_STACK_ENTITIES_H
#define SERVER_STACK_ENTITIES_H

#include "server/model/answer/stack_listing.h"

/* Adds the section of a request that is `grouped`. Its run need not be prepared if the listing only
 * counts. Returns the status of `e`: no memory, or too large. */
enum status stack_entities_add(struct stack_listing *l, struct arena *a, struct error *e);

#endif
