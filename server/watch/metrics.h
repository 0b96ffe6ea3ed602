/* metrics: counts requests and their times, in counters and histograms. metrics_text.h writes them.
 *
 * There is a shard of counts for each thread that counts, so that requests on different threads
 * touch no common cache line; a scrape adds the shards up. Threads may share a shard: that is
 * slower, but no count is lost. */
#ifndef SERVER_METRICS_H
#define SERVER_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"
#include "server/route/routes.h"
#include "server/watch/timeline.h"

/* The series of metrics.def: those that count, and those that have durations. */
enum metrics_counter {
#define FAMILY(name, type, help)
#define COUNTER(id, labels) id,
#define SECONDS(id, labels) id,
#define HISTOGRAM(id, labels)
#include "server/watch/metrics.def"
  METRICS_COUNTERS
};

enum metrics_histogram {
#define FAMILY(name, type, help)
#define COUNTER(id, labels)
#define SECONDS(id, labels)
#define HISTOGRAM(id, labels) id,
#include "server/watch/metrics.def"
  METRICS_HISTOGRAMS
};

struct metrics;

struct metrics *metrics_new(size_t shards, struct error *e);
void metrics_free(struct metrics *m);

/* `shard` counts modulo the number of shards. */
void metrics_request(struct metrics *m, size_t shard, enum route route, enum method method,
                     unsigned code, uint64_t nanoseconds);
void metrics_add(struct metrics *m, size_t shard, enum metrics_counter counter, uint64_t n);
void metrics_time(struct metrics *m, size_t shard, enum metrics_histogram histogram,
                  uint64_t nanoseconds);

/* Models have been put into service: stores the time. */
void metrics_loaded(struct metrics *m);

/* A reload has ended; one that succeeded has put models into service. */
void metrics_reload(struct metrics *m, bool succeeded);

#endif
