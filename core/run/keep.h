/* keep: large blocks that were freed, kept for a while for the next request.
 *
 * The system maps such a block anew each time and clears it page by page when it is first touched,
 * which costs more than reading a request's numbers does. What is kept is bounded, and goes back to
 * the system when it has lain for a while, so that no burst leaves its peak behind. Blocks come
 * from malloc. Any thread. */
#ifndef CORE_KEEP_H
#define CORE_KEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  KEEP_LEAST = 256 * 1024, /* bytes of a block that is worth it: malloc maps what is larger */
  KEEP_MS = 2000           /* how long a block lies here at most, if somebody looks */
};

struct keep;

struct keep *keep_new(size_t limit); /* bytes; NULL: no memory */
void keep_free(struct keep *k);

/* A kept block of least .. most bytes, the smallest there is or the largest; *bytes says how many.
 * NULL: there is none. */
void *keep_take(struct keep *k, size_t least, size_t most, bool largest, size_t *bytes);

/* Takes the block: keeps it or frees it; what has lain longest makes room. */
void keep_put(struct keep *k, void *block, size_t bytes);

/* Frees what has lain for KEEP_MS at `now` of clock_now, and after such a time without large blocks
 * returns to the system what malloc holds free; UINT64_MAX: all of it. Returns the bytes still
 * kept. */
size_t keep_trim(struct keep *k, uint64_t now);

/* Has keep_trim nothing to do, now or later, until the next block comes? */
bool keep_rests(const struct keep *k);

size_t keep_bytes(const struct keep *k);

#endif
