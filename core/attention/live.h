/* live: which heads of a role a call needs; the others are not computed. */
#ifndef CORE_LIVE_H
#define CORE_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct live {
  size_t count;         /* heads needed */
  const uint32_t *slot; /* [heads of the role] how many needed ones come before, LIVE_NOT: not
                           needed; NULL: all are */
};

#define LIVE_NOT UINT32_MAX

static inline bool head_is_live(const struct live *live, size_t head) {
  return !live->slot || live->slot[head] != LIVE_NOT;
}

/* How many needed heads come before one that is needed. */
static inline size_t head_slot(const struct live *live, size_t head) {
  return live->slot ? live->slot[head] : head;
}

#endif
