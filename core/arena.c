/* arena: the memory of one request, charged to a budget and freed whole. */
#include "core/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/size.h"

enum {
  ALIGNMENT = 64,
  SMALL_BLOCK = 16 * 1024, /* one of these serves a toy request */
  SMALL = 4 * 1024,        /* what is larger gets a block of its own */
};

struct arena_block {
  struct arena_block *older, *newer;
  size_t bytes; /* of the whole block, header included */
};

/* Room for the header and for moving the data up to the alignment. */
enum { OVERHEAD = sizeof(struct arena_block) + ALIGNMENT };

void budget_init(struct budget *b, size_t limit) {
  atomic_init(&b->used, 0);
  b->limit = limit;
}

static bool budget_take(struct budget *b, size_t bytes) {
  size_t used = atomic_load_explicit(&b->used, memory_order_relaxed);
  do {
    if (bytes > b->limit - used) return false;
  } while (!atomic_compare_exchange_weak_explicit(&b->used, &used, used + bytes,
                                                  memory_order_relaxed, memory_order_relaxed));
  return true;
}

void arena_init(struct arena *a, struct budget *budget) { *a = (struct arena){.budget = budget}; }

static bool charge(struct arena *a, size_t bytes, struct error *e) {
  if (a->budget && !budget_take(a->budget, bytes)) {
    error_set(e, STATUS_OVERLOADED, "the memory budget of %zu bytes is in use", a->budget->limit);
    return false;
  }
  a->bytes += bytes;
  return true;
}

static void discharge(struct arena *a, size_t bytes) {
  if (a->budget) atomic_fetch_sub_explicit(&a->budget->used, bytes, memory_order_relaxed);
  a->bytes -= bytes;
}

static char *data_of(struct arena_block *block) {
  return (char *)size_round_up((uintptr_t)(block + 1), ALIGNMENT);
}

/* A grown array is moved by realloc, which keeps 16-byte alignment only: its data follow the
 * header at a fixed distance. */
static char *grown_data_of(struct arena_block *block) { return (char *)block + ALIGNMENT; }

static void link_block(struct arena *a, struct arena_block *block) {
  block->older = a->block;
  block->newer = NULL;
  if (a->block) a->block->newer = block;
  a->block = block;
}

static struct arena_block *block_new(struct arena *a, size_t bytes, struct error *e) {
  if (!charge(a, bytes, e)) return NULL;
  struct arena_block *block = malloc(bytes);
  if (!block) {
    discharge(a, bytes);
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for %zu bytes", bytes);
    return NULL;
  }
  block->bytes = bytes;
  link_block(a, block);
  return block;
}

static bool byte_count(size_t count, size_t size, size_t *bytes, struct error *e) {
  if (size_mul(count, size, bytes) && *bytes <= SIZE_MAX / 2) return true;
  error_set(e, STATUS_TOO_LARGE, "%zu times %zu bytes is more than the machine can address", count,
            size);
  return false;
}

void *arena_alloc(struct arena *a, size_t count, size_t size, struct error *e) {
  size_t bytes;
  if (!byte_count(count, size, &bytes, e)) return NULL;
  bytes = size_round_up(size_max(bytes, 1), ALIGNMENT);
  if (bytes > SMALL) {
    struct arena_block *block = block_new(a, bytes + OVERHEAD, e);
    return block ? data_of(block) : NULL;
  }
  if ((size_t)(a->end - a->next) < bytes) {
    struct arena_block *block = block_new(a, SMALL_BLOCK, e);
    if (!block) return NULL;
    a->next = data_of(block);
    a->end = (char *)block + SMALL_BLOCK;
  }
  char *data = a->next;
  a->next += bytes;
  return data;
}

void *arena_grow(struct arena *a, void *old, size_t count, size_t size, struct error *e) {
  size_t bytes;
  if (!byte_count(count, size, &bytes, e)) return NULL;
  bytes += ALIGNMENT;
  if (!old) {
    struct arena_block *block = block_new(a, bytes, e);
    return block ? grown_data_of(block) : NULL;
  }
  struct arena_block *block = (struct arena_block *)((char *)old - ALIGNMENT);
  must(bytes >= block->bytes);
  size_t more = bytes - block->bytes;
  if (!charge(a, more, e)) return NULL;
  struct arena_block *moved = realloc(block, bytes);
  if (!moved) {
    discharge(a, more);
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for %zu bytes", bytes);
    return NULL;
  }
  moved->bytes = bytes;
  if (moved->older) moved->older->newer = moved;
  if (moved->newer) moved->newer->older = moved;
  if (a->block == block) a->block = moved;
  return grown_data_of(moved);
}

void arena_free(struct arena *a) {
  for (struct arena_block *block = a->block; block;) {
    struct arena_block *older = block->older;
    free(block);
    block = older;
  }
  size_t bytes = a->bytes;
  discharge(a, bytes);
  arena_init(a, a->budget);
}
