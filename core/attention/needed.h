/* needed: which heads of a role a call needs; the others are not computed. */
#ifndef CORE_NEEDED_H
#define CORE_NEEDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct needed {
  size_t count;         /* of the heads that are needed */
  const uint32_t *slot; /* [heads of the role] the number of needed heads before each, NEEDED_NOT of
                           one that is not needed; NULL: all heads are needed */
};

#define NEEDED_NOT UINT32_MAX

static inline bool needed_has(const struct needed *needed, size_t head) {
  return !needed->slot || needed->slot[head] != NEEDED_NOT;
}

/* The number of needed heads before a head that is needed itself. */
static inline size_t needed_slot(const struct needed *needed, size_t head) {
  return needed->slot ? needed->slot[head] : head;
}

#endif
