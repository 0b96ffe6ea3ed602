/* metrics_text: the metrics in Prometheus' text format. */
#ifndef SERVER_METRICS_TEXT_H
#define SERVER_METRICS_TEXT_H

#include "server/service/service.h"
#include "server/watch/metrics.h"

/* A listening socket. */
struct metrics_listener {
  const char *name; /* a label */
  size_t open, limit;
  uint64_t opened; /* since the start */
};

/* Current values, which no counter holds. */
struct metrics_now {
  const struct metrics_listener *listener;
  size_t listeners;
  bool loaded; /* the service has models and a pool; without, their metrics are left out */
  size_t io_threads;
  uint64_t longest_turn_ns;
  uint64_t log_dropped, log_suppressed;
};

/* The text of all metrics, which the caller frees with free(); NULL: no memory. */
char *metrics_text(const struct metrics *m, struct service *s, const struct metrics_now *now,
                   size_t *length);

#endif
