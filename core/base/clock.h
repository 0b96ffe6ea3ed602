/* clock: nanoseconds of CLOCK_MONOTONIC, the clock of all deadlines and durations. */
#ifndef CORE_CLOCK_H
#define CORE_CLOCK_H

#include <stdint.h>
#include <time.h>

enum { CLOCK_MS = 1000000 }; /* nanoseconds in a millisecond */

static inline uint64_t clock_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
