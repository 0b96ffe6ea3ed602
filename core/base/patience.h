/* patience: long work checks from time to time whether its result is still wanted. */
#ifndef CORE_PATIENCE_H
#define CORE_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/status.h"

struct patience {
  /* Returns STATUS_DEADLINE or STATUS_GONE if it is not wanted, else STATUS_OK. Called by the
   * thread that works. */
  enum status (*ask)(struct patience *p);
  uint64_t asked; /* when, on clock_now */
};

/* Sets the error of a result that is not wanted any more; returns e->status. */
enum status patience_tell(enum status why, struct error *e);

/* Returns whether the result is not wanted any more, and sets the error. Checks at most every 5 ms,
 * however often it is called. NULL: always wanted. */
bool patience_ends(struct patience *p, struct error *e);

#endif
