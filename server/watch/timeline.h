/* timeline: the time that each stage of a request took: the one source for Server-Timing, the
 * metrics and the access log. */
#ifndef SERVER_TIMELINE_H
#define SERVER_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "server/service/exchange.h"

enum timeline_stage {
  STAGE_DECODE,
  STAGE_QUEUE,
  STAGE_COMPUTE,
  STAGE_ENCODE,
  STAGE_WRITE, /* from the queueing of the response to the end of the request */
  STAGE_COUNT
};

/* Zeroed: no stage was reached. */
struct timeline {
  uint64_t ns[STAGE_COUNT];
  bool reached[STAGE_COUNT]; /* a stage that was cut short counts as well */
};

/* Sets all stages but the last, for an exchange that has begun and is not with the pool. */
void timeline_exchange(struct timeline *t, const struct exchange *x);

void timeline_write(struct timeline *t, uint64_t ns);

const char *timeline_name(enum timeline_stage stage); /* "decode" */

#endif
