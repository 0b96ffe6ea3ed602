/* patience: work that takes long asks from time to time whether it is still wanted. */
#ifndef CORE_PATIENCE_H
#define CORE_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/status.h"

struct patience {
  /* Why it is not: STATUS_DEADLINE, STATUS_GONE; else STATUS_OK. By the thread that works. */
  enum status (*ask)(struct patience *p);
  uint64_t asked; /* clock_now */
};

/* Says in words why something is not wanted any more. Returns that status. */
enum status patience_tell(enum status why, struct error *e);

/* Is it not wanted any more, as `e` says then? Asks every few milliseconds at most, however often
 * it is called. NULL: always wanted. */
bool patience_ends(struct patience *p, struct error *e);

#endif
