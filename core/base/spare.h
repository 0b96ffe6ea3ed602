/* spare: memory that has served its purpose and may serve another.
 *
 * A list of stretches of memory; pieces are taken from it as from an arena, but never given back.
 * It does not own the memory: a stretch may be added if, by the time that it is written, it is not
 * read any more in its earlier purpose. */
#ifndef CORE_SPARE_H
#define CORE_SPARE_H

#include <stddef.h>

enum {
  SPARE_ALIGNMENT = 64, /* of pieces, as in an arena */
  SPARE_STRETCHES = 8   /* at most; a stretch beyond these is left unused */
};

struct spare {
  size_t count;
  struct {
    char *at, *end;
  } stretch[SPARE_STRETCHES];
};

void spare_add(struct spare *s, void *memory, size_t bytes);

/* `bytes` of the first stretch that still has as many; NULL: none has. */
void *spare_take(struct spare *s, size_t bytes);

#endif
