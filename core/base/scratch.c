/* scratch: working memory of the threads that compute, one piece each. */
#include "core/base/scratch.h"

#include <stdlib.h>

#include "core/base/size.h"

/* One more cache line, so that no two pieces share a line. */
static void *allocate_piece(size_t bytes) {
  return aligned_alloc(64, size_round_up(bytes + 64, 64));
}

bool scratch_init(struct scratch *s, size_t count, size_t bytes) {
  *s = (struct scratch){.bytes = bytes, .piece = calloc(count, sizeof *s->piece)};
  if (!s->piece) return false;
  for (; s->count < count; s->count++) {
    atomic_init(&s->piece[s->count].larger, NULL);
    if (!(s->piece[s->count].memory = allocate_piece(bytes))) return false;
  }
  return true;
}

void scratch_free(struct scratch *s) {
  for (size_t i = 0; i < s->count; i++) {
    free(s->piece[i].memory);
    free(atomic_load(&s->piece[i].larger));
  }
  free(s->piece);
  *s = (struct scratch){0};
}

void *scratch_use(struct scratch *s, size_t index) {
  struct scratch_piece *p = &s->piece[index];
  if (!atomic_load_explicit(&p->larger, memory_order_acquire)) return p->memory;
  free(p->memory);
  /* An even larger piece may have been added since the load. */
  p->memory = atomic_exchange(&p->larger, NULL);
  return p->memory;
}

bool scratch_grow(struct scratch *s, size_t bytes) {
  if (bytes <= s->bytes) return true;
  void **larger = calloc(s->count + 1, sizeof *larger);
  bool good = larger != NULL;
  for (size_t i = 0; good && i < s->count; i++) good = (larger[i] = allocate_piece(bytes)) != NULL;
  /* A larger piece that was added earlier and not taken is not needed any more. */
  for (size_t i = 0; larger && i < s->count; i++)
    free(good ? atomic_exchange(&s->piece[i].larger, larger[i]) : larger[i]);
  free(larger);
  if (good) s->bytes = bytes;
  return good;
}
