/* stack_answer_parts: the hidden states and the attention of a model as sections of a response.
 * Private to the files of this folder. */
#ifndef SERVER_STACK_ANSWER_PARTS_H
#define SERVER_STACK_ANSWER_PARTS_H

#include "server/model/answer/stack_listing.h"

/* Adds a section with a list of rows for each item of a side, `width` numbers in each row, padded
 * with zeros in a rectangle. */
struct answer_section *stack_answer_rows(struct stack_listing *l, const struct stack_side *side,
                                         const char *group, const float *data, const size_t *width);

/* Adds the hidden states and the attention of both sides, as far as the request has them. Fails
 * without memory. */
enum status stack_answer_parts(struct stack_listing *l, struct arena *a, struct error *e);

#endif
