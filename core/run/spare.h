/* spare: memory that has served its purpose and may serve another.
 *
 * A list of stretches, taken from like an arena but never given back to. It does not own them:
 * whoever adds a stretch knows that nobody else looks at it any more by the time that it is
 * written. */
#ifndef CORE_SPARE_H
#define CORE_SPARE_H

#include <stddef.h>

enum {
  SPARE_ALIGNMENT = 64, /* of what is taken, as an arena's */
  SPARE_STRETCHES = 8   /* kept in mind; what is added beyond is left unused */
};

struct spare {
  size_t count;
  struct {
    char *at, *end;
  } stretch[SPARE_STRETCHES];
};

void spare_add(struct spare *s, void *memory, size_t bytes);

/* `bytes` of the first stretch that has as many in one piece; NULL: none has. */
void *spare_take(struct spare *s, size_t bytes);

#endif
