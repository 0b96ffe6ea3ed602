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

/* The reason why the server ended a request or a connection without its result. */
enum metrics_reject {
  REJECT_QUEUE,       /* max_queue requests are waiting */
  REJECT_BUDGET,      /* the memory budget is used up */
  REJECT_CONNECTIONS, /* more connections than allowed */
  REJECT_HTTP_2,      /* the client speaks HTTP/2 */
  REJECT_DRAINING,
  REJECT_DEADLINE,
  REJECT_MEMORY,       /* the system has no memory left */
  REJECT_UNAUTHORIZED, /* no key, or a wrong one */
  REJECT_TOO_LARGE,    /* a limit of one request is exceeded */
  REJECT_SLOW_HEADER,
  REJECT_SLOW_BODY,
  REJECT_SLOW_READER,
  REJECT_COUNT
};

/* The phase of a request whose client left. */
enum metrics_abort {
  ABORT_BODY,
  ABORT_QUEUE, /* the request waited or was being computed */
  ABORT_ANSWER,
  ABORT_COUNT
};

/* The work of models on tokens. */
enum metrics_work {
  WORK_ENCODE, /* input tokens of each kind of request */
  WORK_SCORE,
  WORK_GENERATE,
  WORK_CHOOSE, /* generated tokens */
  WORK_RECALL, /* input tokens from the prefix cache */
  WORK_COUNT
};

/* Generated tokens: the first of a request, since the end of its body, and each round of others,
 * since the one before. */
enum metrics_pace { PACE_FIRST, PACE_NEXT, PACE_COUNT };

/* Requests that wait for a worker, by their expected time of computation. */
enum metrics_wait { WAIT_SHORT, WAIT_MEDIUM, WAIT_LONG, WAIT_COUNT };

/* Tokenized texts; `ns` is the time of tokenization. */
struct metrics_texts {
  uint64_t texts, bytes, tokens, ns;
};

struct metrics;

struct metrics *metrics_new(size_t shards, struct error *e);
void metrics_free(struct metrics *m);

/* `shard` counts modulo the number of shards. */
void metrics_request(struct metrics *m, size_t shard, enum route route, enum method method,
                     unsigned code, uint64_t nanoseconds);
void metrics_stage(struct metrics *m, size_t shard, enum timeline_stage stage,
                   uint64_t nanoseconds);
void metrics_tokens(struct metrics *m, size_t shard, enum metrics_work work, uint64_t tokens);
void metrics_texts(struct metrics *m, size_t shard, const struct metrics_texts *t);
void metrics_pace(struct metrics *m, size_t shard, enum metrics_pace pace, uint64_t nanoseconds);
void metrics_wait(struct metrics *m, size_t shard, double expected /* seconds */,
                  uint64_t nanoseconds);
void metrics_reject(struct metrics *m, size_t shard, enum metrics_reject reason);
void metrics_abort(struct metrics *m, size_t shard, enum metrics_abort phase);

/* Models have been put into service: stores the time. */
void metrics_loaded(struct metrics *m);

/* A reload has ended; one that succeeded has put models into service. */
void metrics_reload(struct metrics *m, bool succeeded);

#endif
