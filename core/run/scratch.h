/* scratch: working memory for those who compute, one piece for each, that can grow meanwhile.
 *
 * A piece has one user at a time. A larger one is laid beside it and taken by the next use; nobody
 * moves or frees what somebody works with, and nobody waits. */
#ifndef CORE_SCRATCH_H
#define CORE_SCRATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct scratch_piece {
  void *memory;           /* its user's */
  _Atomic(void *) larger; /* for the next use; NULL: none */
};

struct scratch {
  size_t count, bytes; /* `bytes` of each piece, at least */
  struct scratch_piece *piece;
};

/* False: no memory; scratch_free is due all the same. */
bool scratch_init(struct scratch *s, size_t count, size_t bytes);
void scratch_free(struct scratch *s); /* nobody uses any; zeroes are fine */

/* The memory of a piece, aligned to 64 bytes, until its next use. */
void *scratch_use(struct scratch *s, size_t index);

/* Makes all pieces at least so large, for each use that happens after it has returned. One thread
 * at a time, whoever uses pieces meanwhile. False, and nothing has changed: no memory. */
bool scratch_grow(struct scratch *s, size_t bytes);

#endif
