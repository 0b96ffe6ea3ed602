/* metrics_parts: the counts, and their sums over all threads. Private to the files metrics*.c. */
#ifndef SERVER_METRICS_PARTS_H
#define SERVER_METRICS_PARTS_H

#include <stdatomic.h>

#include "server/watch/metrics.h"

enum { METRICS_BOUNDS = 21, METRICS_CODES = 23 };

/* The upper bounds of the buckets; the last bucket has no bound. */
extern const uint64_t metrics_bound_us[METRICS_BOUNDS];

/* The status codes with a series of their own, and 0 for all others. */
extern const unsigned short metrics_code[METRICS_CODES];

struct metrics_durations {
  _Atomic uint64_t bucket[METRICS_BOUNDS + 1]; /* not cumulative */
  _Atomic uint64_t sum_ns;
};

/* A shard is large, but the system gives the process only pages of it that requests touch. */
struct metrics_shard {
  _Alignas(64) struct metrics_durations histogram[METRICS_HISTOGRAMS];
  _Atomic uint64_t counter[METRICS_COUNTERS];
  struct metrics_durations request[ROUTE_COUNT][METHOD_COUNT][METRICS_CODES];
};

struct metrics {
  size_t shards;
  struct metrics_shard *shard;
  double started;             /* the start of the process, in Unix time; 0: unknown */
  _Atomic uint64_t loaded_ms; /* the time at which the models were loaded, in Unix time */
  /* Whether any shard has a count. Written once, so that requests only read it; a scrape skips
   * thousands of empty histograms. */
  _Alignas(64) atomic_bool used[ROUTE_COUNT][METHOD_COUNT][METRICS_CODES];
};

/* The sum of a histogram over the shards. `count` is the sum of the buckets, even if threads count
 * meanwhile. */
struct metrics_sum {
  uint64_t bucket[METRICS_BOUNDS + 1], count, ns;
};

/* Sums over all shards. `code` is an index into metrics_code. */
struct metrics_sum metrics_durations(const struct metrics *m, enum metrics_histogram histogram);
struct metrics_sum metrics_requests(const struct metrics *m, enum route route, enum method method,
                                    unsigned code);
uint64_t metrics_count(const struct metrics *m, enum metrics_counter counter);

#endif
