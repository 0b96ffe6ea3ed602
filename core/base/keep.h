/* keep: a cache of freed large blocks for the next request.
 *
 * The system maps such a block again for each use and clears each page when it is first touched,
 * which costs more than reading a request's numbers. The cached bytes are bounded and returned to
 * the system after a while, so that a burst of requests does not leave its peak. Blocks come from
 * malloc. Any thread may call these functions. */
#ifndef CORE_KEEP_H
#define CORE_KEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  KEEP_LEAST = 256 * 1024, /* bytes of a block worth caching: malloc maps larger ones each time */
  KEEP_MS = 2000           /* age at which keep_trim frees a block */
};

struct keep;

struct keep *keep_new(size_t limit); /* bytes; NULL: no memory */
void keep_free(struct keep *k);

/* Takes a block of least .. most bytes, the smallest or the largest one, and sets its *bytes. NULL:
 * there is none. */
void *keep_take(struct keep *k, size_t least, size_t most, bool largest, size_t *bytes);

/* Moves a block into the cache, for which the oldest blocks are freed, or frees it. */
void keep_put(struct keep *k, void *block, size_t bytes);

/* Frees the blocks that have been cached for KEEP_MS at `now` (clock_now). If no large block has
 * been freed for that time, also returns the free memory of malloc to the system. UINT64_MAX: frees
 * all. Returns how many bytes are still cached. */
size_t keep_trim(struct keep *k, uint64_t now);

/* Whether keep_trim has nothing to do, now or later, until the next block is freed. */
bool keep_rests(const struct keep *k);

size_t keep_bytes(const struct keep *k);

#endif
