/* scratch: working memory of the threads that compute, one piece each, which can grow while in use.
 *
 * A piece has one user at a time. Growing adds a larger piece, which the next use takes: memory in
 * use is never moved or freed, and no thread waits for another. */
#ifndef CORE_SCRATCH_H
#define CORE_SCRATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct scratch_piece {
  void *memory;           /* in use */
  _Atomic(void *) larger; /* for the next use; NULL: none */
};

struct scratch {
  size_t count, bytes; /* `bytes` of each piece, at least */
  struct scratch_piece *piece;
};

/* False: no memory; scratch_free must be called in any case. */
bool scratch_init(struct scratch *s, size_t count, size_t bytes);
void scratch_free(struct scratch *s); /* no piece is in use; all zero: nothing */

/* Returns the memory of a piece, aligned to 64 bytes, valid until its next use. */
void *scratch_use(struct scratch *s, size_t index);

/* Makes all pieces at least `bytes` large, for each use after its return. One thread at a time may
 * call it; pieces may be in use meanwhile. False: no memory, and nothing has changed. */
bool scratch_grow(struct scratch *s, size_t bytes);

#endif
