/* patience: long work checks from time to time whether its result is still wanted. */
#include "core/base/patience.h"

#include "core/base/clock.h"

enum { EVERY_MS = 5 };

enum status patience_tell(enum status why, struct error *e) {
  const char *words = why == STATUS_DEADLINE   ? "the deadline has passed"
                      : why == STATUS_DRAINING ? "the server is stopping"
                                               : "the client has left";
  return error_set(e, why, "%s", words);
}

bool patience_ends(struct patience *p, struct error *e) {
  if (!p) return false;
  const uint64_t now = clock_now();
  if (now - p->asked < (uint64_t)EVERY_MS * CLOCK_MS) return false;
  p->asked = now;
  const enum status why = p->ask(p);
  return why && patience_tell(why, e);
}
