/* metrics_parts: what metrics counts in, for the two that count and tell. Private to metrics. */
#ifndef SERVER_METRICS_PARTS_H
#define SERVER_METRICS_PARTS_H

#include <stdatomic.h>

#include "server/watch/metrics.h"

enum { METRICS_BOUNDS = 21, METRICS_CODES = 23 };

/* Upper bounds of the buckets; one more takes the rest. */
extern const uint64_t metrics_bound_us[METRICS_BOUNDS];

/* The codes that are counted by themselves, and 0 for any other. */
extern const unsigned short metrics_code[METRICS_CODES];

struct histogram {
  _Atomic uint64_t bucket[METRICS_BOUNDS + 1]; /* not cumulated */
  _Atomic uint64_t sum_ns;
};

/* Large, but a page that no request touches is never given to the process. */
struct shard {
  _Alignas(64) struct histogram stage[STAGE_COUNT];
  _Atomic uint64_t reject[REJECT_COUNT], abort[ABORT_COUNT];
  struct histogram request[ROUTE_COUNT][METHOD_COUNT][METRICS_CODES];
};

struct metrics {
  size_t shards;
  struct shard *shard;
  double started;              /* the process, in Unix time; 0: unknown */
  _Atomic uint64_t reloads[2]; /* that failed, that succeeded */
  _Atomic uint64_t loaded_ms;  /* when the models in service were loaded, in Unix time */
  /* Has any shard a count of it? Set once, so that requests only read it, and a scrape need not
   * look into thousands of histograms that are empty. */
  _Alignas(64) atomic_bool used[ROUTE_COUNT][METHOD_COUNT][METRICS_CODES];
};

/* A histogram added up over the shards. Whoever counts meanwhile, `count` is the sum of the
 * buckets. */
struct histogram_sum {
  uint64_t bucket[METRICS_BOUNDS + 1], count, ns;
};

struct histogram_sum metrics_sum_stage(const struct metrics *m, enum stage stage);
struct histogram_sum metrics_sum_request(const struct metrics *m, unsigned route, unsigned method,
                                         unsigned code); /* `code` is a place in metrics_code */
uint64_t metrics_sum_reject(const struct metrics *m, enum reject reason);
uint64_t metrics_sum_abort(const struct metrics *m, enum abort_phase phase);

#endif
