/* metrics: what is counted of requests, in histograms and counters. server/watch/metrics_text.h
 * tells it.
 *
 * Counting is spread over shards, one for each thread that counts, so that requests on different
 * threads touch no common cache line; a scrape adds the shards up. A shard may be used by any
 * thread: counts are never lost, only slower. */
#ifndef SERVER_METRICS_H
#define SERVER_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/run/status.h"
#include "server/service/routes.h"
#include "server/watch/timeline.h"

/* Why the server ended a request or a connection without what was asked for. */
enum reject {
  REJECT_QUEUE,       /* max_queue requests wait already */
  REJECT_BUDGET,      /* the memory budget is in use */
  REJECT_CONNECTIONS, /* more connections than allowed */
  REJECT_DRAINING,
  REJECT_DEADLINE,
  REJECT_MEMORY,       /* the system gave none */
  REJECT_UNAUTHORIZED, /* no key, or a wrong one */
  REJECT_TOO_LARGE,    /* over a limit of one request */
  REJECT_SLOW_HEAD,
  REJECT_SLOW_BODY,
  REJECT_SLOW_READER,
  REJECT_COUNT
};

/* What a client left in the middle of. */
enum abort_phase {
  ABORT_BODY,
  ABORT_QUEUE, /* waiting or computed */
  ABORT_ANSWER,
  ABORT_COUNT
};

struct metrics;

struct metrics *metrics_new(size_t shards, struct error *e);
void metrics_free(struct metrics *m);

/* `shard` is taken modulo the number of shards. */
void metrics_request(struct metrics *m, size_t shard, enum route route, enum method method,
                     unsigned code, uint64_t nanoseconds);
void metrics_stage(struct metrics *m, size_t shard, enum stage stage, uint64_t nanoseconds);
void metrics_reject(struct metrics *m, size_t shard, enum reject reason);
void metrics_abort(struct metrics *m, size_t shard, enum abort_phase phase);

/* The models were loaded, at the start; or a reload has succeeded, which loaded them, or failed. */
void metrics_loaded(struct metrics *m);
void metrics_reload(struct metrics *m, bool succeeded);

#endif
