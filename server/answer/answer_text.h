/* answer_text: the text of an answer, cut into pieces and written. Private to answer. */
#ifndef SERVER_ANSWER_TEXT_H
#define SERVER_ANSWER_TEXT_H

#include "server/answer/answer_plan.h"

/* Chooses the size of the pieces of text and returns how many there may be: at most `most`. */
size_t answer_text_bound(struct answer_plan *p, size_t most);

/* Appends the pieces of text; their lengths are the memory that each needs. False: over the limit.
 */
bool answer_text_cut(struct answer *a);

void answer_text_write(struct answer *a, size_t piece);

#endif
