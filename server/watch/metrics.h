/* metrics: counts requests and their times, in counters and histograms. metrics_text.h writes them
 * out.
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

/* Why the server ended a request or a connection without the answer that was asked for. */
enum metrics_reject {
  REJECT_QUEUE,       /* max_queue requests are waiting */
  REJECT_BUDGET,      /* the memory budget is used up */
  REJECT_CONNECTIONS, /* more connections than allowed */
  REJECT_HTTP_2,      /* connections that speak it */
  REJECT_DRAINING,
  REJECT_DEADLINE,
  REJECT_MEMORY,       /* the system has none */
  REJECT_UNAUTHORIZED, /* no key, or a wrong one */
  REJECT_TOO_LARGE,    /* over a limit of one request */
  REJECT_SLOW_HEADER,
  REJECT_SLOW_BODY,
  REJECT_SLOW_READER,
  REJECT_COUNT
};

/* What was under way when a client left. */
enum metrics_abort {
  ABORT_BODY,
  ABORT_QUEUE, /* the request waited or was being computed */
  ABORT_ANSWER,
  ABORT_COUNT
};

/* What whole models do with tokens. */
enum metrics_work {
  WORK_ENCODE,
  WORK_SCORE,
  WORK_GENERATE,
  WORK_CHOOSE,
  WORK_RECALL, /* of the texts to go on from, what was known */
  WORK_COUNT
};

/* Tokens that are generated: the first of a request, from the end of its body on, and each round of
 * others, from the one before. */
enum metrics_pace { PACE_FIRST, PACE_NEXT, PACE_COUNT };

/* Requests that wait for a worker, by the time that they are expected to take one, alone. */
enum metrics_wait { WAIT_SHORT, WAIT_MEDIUM, WAIT_LONG, WAIT_COUNT };

/* Texts that became tokens. */
struct metrics_texts {
  uint64_t texts, bytes, tokens, ns; /* the last is the time that it took */
};

struct metrics;

struct metrics *metrics_new(size_t shards, struct error *e);
void metrics_free(struct metrics *m);

/* `shard` is taken modulo the number of shards. */
void metrics_request(struct metrics *m, size_t shard, enum route route, enum method method,
                     unsigned code, uint64_t nanoseconds);
void metrics_stage(struct metrics *m, size_t shard, enum timeline_stage stage,
                   uint64_t nanoseconds);
void metrics_tokens(struct metrics *m, size_t shard, enum metrics_work work, uint64_t tokens);
void metrics_texts(struct metrics *m, size_t shard, const struct metrics_texts *t);
void metrics_pace(struct metrics *m, size_t shard, enum metrics_pace pace, uint64_t nanoseconds);
void metrics_wait(struct metrics *m, size_t shard, double expected, uint64_t nanoseconds);
void metrics_reject(struct metrics *m, size_t shard, enum metrics_reject reason);
void metrics_abort(struct metrics *m, size_t shard, enum metrics_abort phase);

/* Models have been put into service: notes the time. */
void metrics_loaded(struct metrics *m);

/* A reload has ended; one that succeeded has put models into service. */
void metrics_reload(struct metrics *m, bool succeeded);

#endif
