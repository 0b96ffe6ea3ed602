/* tally: the sizes of batches. Private to the pool, except for its sums.
 *
 * Each thread that forms batches has its own tally, so that counting touches no cache line of
 * another thread; a reader adds the tallies up. */
#ifndef CORE_TALLY_H
#define CORE_TALLY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Class i holds the sizes over 2^(i-1) and up to 2^i, class 0 those up to 1, the last all others.
 */
enum { TALLY_CLASSES = 22 };

struct tally_sizes {
  uint64_t number[TALLY_CLASSES]; /* of batches, by class */
  uint64_t sum;                   /* of their sizes */
};

/* How many requests, and how many query rows, were computed together in each batch. */
struct tally_sum {
  struct tally_sizes requests, rows;
};

struct tally_counts {
  _Atomic uint64_t number[TALLY_CLASSES], sum;
};

struct tally {
  _Alignas(64) struct tally_counts requests;
  struct tally_counts rows;
};

struct tally *tally_new(size_t count); /* `count` tallies, all zero; NULL: no memory */
void tally_free(struct tally *t);

/* Counts a batch. A tally has one writer at a time. */
void tally_batch(struct tally *t, size_t requests, size_t rows);

/* Sets the sum of `count` tallies, which may be written meanwhile. */
void tally_read(const struct tally *t, size_t count, struct tally_sum *sum);

#endif
