/* keep: large blocks that were freed, kept for a while for the next request.
 *
 * The system maps such a block anew each time and clears it page by page when it is first touched,
 * which costs more than reading a request's numbers. The bytes that are kept are bounded, and go
 * back to the system after a while, so that no burst leaves its peak behind. Blocks come from
 * malloc. Any thread may call these functions. */
#ifndef CORE_KEEP_H
#define CORE_KEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  KEEP_LEAST = 256 * 1024, /* bytes of a block worth keeping: malloc maps larger ones anew */
  KEEP_MS = 2000           /* after so long keep_trim frees a block */
};

struct keep;

struct keep *keep_new(size_t limit); /* bytes; NULL: no memory */
void keep_free(struct keep *k);

/* A kept block of least .. most bytes, of these the smallest or the largest; it has *bytes. NULL:
 * there is none. */
void *keep_take(struct keep *k, size_t least, size_t most, bool largest, size_t *bytes);

/* Takes the block, and keeps or frees it; the blocks that were kept longest make room. */
void keep_put(struct keep *k, void *block, size_t bytes);

/* Frees the blocks that at `now` (clock_now) have been kept for KEEP_MS; once no large block has
 * come for so long, also returns the free memory of malloc to the system. UINT64_MAX: frees all.
 * Returns the bytes still kept. */
size_t keep_trim(struct keep *k, uint64_t now);

/* Does keep_trim have nothing to do, now or later, until the next block comes? */
bool keep_rests(const struct keep *k);

size_t keep_bytes(const struct keep *k);

#endif
