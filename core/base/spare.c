/* spare: memory that is no longer used and may be used again. */
#include "core/base/spare.h"

#include <stdint.h>

#include "core/base/size.h"

void spare_add(struct spare *s, void *memory, size_t bytes) {
  if (bytes < SPARE_ALIGNMENT || s->count == SPARE_STRETCHES) return;
  const size_t skipped = -(uintptr_t)memory & (SPARE_ALIGNMENT - 1);
  s->stretch[s->count].at = (char *)memory + skipped;
  s->stretch[s->count++].end = (char *)memory + bytes;
}

void *spare_take(struct spare *s, size_t bytes) {
  for (size_t i = 0; i < s->count; i++) {
    char *at = s->stretch[i].at;
    const size_t room = (size_t)(s->stretch[i].end - at);
    if (bytes > room) continue;
    s->stretch[i].at += size_min(size_round_up(bytes, SPARE_ALIGNMENT), room);
    return at;
  }
  return NULL;
}

float *spare_floats(struct spare *s, size_t count, struct arena *a, struct error *e) {
  float *there = count <= SIZE_MAX / sizeof(float) ? spare_take(s, count * sizeof(float)) : NULL;
  return there ? there : arena_alloc(a, count, sizeof(float), e);
}
