/* metrics_text: the metrics in Prometheus' text form. */
#ifndef SERVER_METRICS_TEXT_H
#define SERVER_METRICS_TEXT_H

#include "server/service/service.h"
#include "server/watch/metrics.h"

/* A socket that connections come in at. */
struct metrics_listener {
  const char *name; /* a label */
  size_t open, limit;
  uint64_t opened; /* since the start */
};

/* What is not counted but looked at when asked. */
struct metrics_now {
  const struct metrics_listener *listener;
  size_t listeners;
  bool loaded; /* the service has models and a pool: before, nothing is said of them */
  size_t io_threads;
  uint64_t log_dropped, log_suppressed;
};

/* The whole text, to be freed with free(); NULL if memory runs out. */
char *metrics_text(const struct metrics *m, struct service *s, const struct metrics_now *now,
                   size_t *length);

#endif
