/* timeline: how long each stage of a request took; the one source of Server-Timing, the metrics and
 * the access log. */
#ifndef SERVER_TIMELINE_H
#define SERVER_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "server/service/exchange.h"

enum stage {
  STAGE_DECODE,
  STAGE_QUEUE,
  STAGE_COMPUTE,
  STAGE_ENCODE,
  STAGE_WRITE, /* from the answer being queued to the end of the request */
  STAGE_COUNT
};

/* Zeroed: no stage was reached. */
struct timeline {
  uint64_t ns[STAGE_COUNT];
  bool reached[STAGE_COUNT]; /* a stage that was cut short counts, too */
};

/* The stages of an exchange that has begun and that the pool does not hold. */
void timeline_exchange(struct timeline *t, const struct exchange *x);

void timeline_write(struct timeline *t, uint64_t ns);

const char *timeline_name(enum stage stage); /* "decode" */

#endif
