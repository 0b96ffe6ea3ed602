/* metrics_parts: the counts themselves, for the files that count and that write them out. Private
 * to metrics. */
#ifndef SERVER_METRICS_PARTS_H
#define SERVER_METRICS_PARTS_H

#include <stdatomic.h>

#include "server/watch/metrics.h"

enum { METRICS_BOUNDS = 21, METRICS_CODES = 23 };

/* The upper bounds of the buckets; one more bucket takes what is above. */
extern const uint64_t metrics_bound_us[METRICS_BOUNDS];

/* The status codes with a series of their own, and 0 for all others. */
extern const unsigned short metrics_code[METRICS_CODES];

struct metrics_histogram {
  _Atomic uint64_t bucket[METRICS_BOUNDS + 1]; /* not cumulated */
  _Atomic uint64_t sum_ns;
};

/* Large, but the system gives the process no page of it that no request touches. */
struct metrics_shard {
  _Alignas(64) struct metrics_histogram stage[STAGE_COUNT], pace[PACE_COUNT], wait[WAIT_COUNT];
  _Atomic uint64_t reject[REJECT_COUNT], abort[ABORT_COUNT], tokens[WORK_COUNT];
  _Atomic uint64_t texts, text_bytes, text_tokens, text_ns;
  struct metrics_histogram request[ROUTE_COUNT][METHOD_COUNT][METRICS_CODES];
};

struct metrics {
  size_t shards;
  struct metrics_shard *shard;
  double started;              /* when the process began, in Unix time; 0: unknown */
  _Atomic uint64_t reloads[2]; /* [0] failed, [1] succeeded */
  _Atomic uint64_t loaded_ms;  /* when the models in service were loaded, in Unix time */
  /* Does any shard have a count of it? Written once, so that requests only read it; a scrape looks
   * into no histogram that is empty, of thousands. */
  _Alignas(64) atomic_bool used[ROUTE_COUNT][METHOD_COUNT][METRICS_CODES];
};

/* A histogram added up over the shards. `count` is the sum of the buckets, even if threads count
 * meanwhile. */
struct metrics_sum {
  uint64_t bucket[METRICS_BOUNDS + 1], count, ns;
};

struct metrics_sum metrics_sum_stage(const struct metrics *m, enum timeline_stage stage);
struct metrics_sum metrics_sum_pace(const struct metrics *m, enum metrics_pace pace);
struct metrics_sum metrics_sum_wait(const struct metrics *m, enum metrics_wait wait);
struct metrics_sum metrics_sum_request(const struct metrics *m, unsigned route, unsigned method,
                                       unsigned code); /* `code`: an index into metrics_code */
uint64_t metrics_sum_reject(const struct metrics *m, enum metrics_reject reason);
uint64_t metrics_sum_tokens(const struct metrics *m, enum metrics_work work);
struct metrics_texts metrics_sum_texts(const struct metrics *m);
uint64_t metrics_sum_abort(const struct metrics *m, enum metrics_abort phase);

#endif
