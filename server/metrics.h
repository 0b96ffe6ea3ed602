/* metrics: counters and histograms in Prometheus' text form.
 *
 * Counting is spread over shards, one for each thread that counts, so that requests on different
 * threads touch no common cache line; a scrape adds the shards up. A shard may be used by any
 * thread: counts are never lost, only slower. */
#ifndef SERVER_METRICS_H
#define SERVER_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"
#include "server/door.h"
#include "server/exchange.h"
#include "server/routes.h"

enum stage { STAGE_DECODE, STAGE_QUEUE, STAGE_COMPUTE, STAGE_ENCODE, STAGE_COUNT };

enum reject {
  REJECT_OVERLOADED,  /* the queue or the memory budget was full */
  REJECT_CONNECTIONS, /* more connections than allowed */
  REJECT_DRAINING,
  REJECT_DEADLINE,
  REJECT_MEMORY,
  REJECT_GONE, /* the client left before the answer */
  REJECT_SLOW_HEAD,
  REJECT_SLOW_BODY,
  REJECT_SLOW_READER,
  REJECT_COUNT
};

struct metrics;

struct metrics *metrics_new(size_t shards, struct error *e);
void metrics_free(struct metrics *m);

/* `shard` is taken modulo the number of shards. */
void metrics_request(struct metrics *m, size_t shard, enum route route, enum method method,
                     unsigned code, uint64_t nanoseconds);
void metrics_stage(struct metrics *m, size_t shard, enum stage stage, uint64_t nanoseconds);
void metrics_reject(struct metrics *m, size_t shard, enum reject reason);

/* The models were loaded, at the start; or a reload has succeeded, which loaded them, or failed. */
void metrics_loaded(struct metrics *m);
void metrics_reload(struct metrics *m, bool succeeded);

/* What is not counted but looked at when asked. */
struct metrics_now {
  size_t connections[DOOR_COUNT];
  size_t connections_limit[DOOR_COUNT]; /* 0: no such door */
  uint64_t log_dropped;
  size_t io_threads;
  bool loaded; /* the service has models and a pool: before, nothing is said of them */
};

/* The whole text, to be freed with free(); NULL if memory runs out. */
char *metrics_text(const struct metrics *m, struct service *s, const struct metrics_now *now,
                   size_t *length);

#endif
