/* answer_raw: arrays of an answer as bytes, where they were computed. Private to answer. */
#ifndef SERVER_ANSWER_RAW_H
#define SERVER_ANSWER_RAW_H

#include "server/answer/answer_plan.h"

/* How many pieces the arrays may have, with their header: fewer than ANSWER_PIECES_MAX. */
size_t answer_raw_bound(const struct answer_plan *p);

/* Appends the header of safetensors, in memory of the arena. The caller counts its bytes. Fails
 * without memory. */
enum status answer_raw_header(struct answer *a, struct arena *arena, struct error *e);

/* Appends the arrays behind. False: over the limit. */
bool answer_raw_cut(struct answer *a);

/* Writes a piece of bytes. */
void answer_raw_write(struct answer *a, size_t piece);

#endif
