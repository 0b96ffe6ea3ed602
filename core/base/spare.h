/* spare: memory that is no longer used and may be used again.
 *
 * A list of stretches of memory. Pieces are taken from it as from an arena, but never given back.
 * It does not own the memory: a stretch may be added if its old contents are not read any more when
 * the new ones are written. */
#ifndef CORE_SPARE_H
#define CORE_SPARE_H

#include <stddef.h>

#include "core/base/arena.h"

enum {
  SPARE_ALIGNMENT = 64, /* bytes, as in an arena */
  SPARE_STRETCHES = 8   /* at most; further stretches are ignored */
};

struct spare {
  size_t count;
  struct {
    char *at, *end;
  } stretch[SPARE_STRETCHES];
};

void spare_add(struct spare *s, void *memory, size_t bytes);

/* Takes `bytes` of the first stretch that has as many; NULL: none has. */
void *spare_take(struct spare *s, size_t bytes);

/* Takes `count` floats, or allocates them in the arena; NULL with the errors of arena_alloc. */
float *spare_floats(struct spare *s, size_t count, struct arena *a, struct error *e);

#endif
