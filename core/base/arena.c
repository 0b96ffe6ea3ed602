/* arena: the memory of one request, charged to a budget and freed whole. */
#include "core/base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/base/size.h"

enum {
  ALIGNMENT = 64,
  SMALL_BLOCK = 16 * 1024, /* one of these serves a tiny request */
  SMALL = 4 * 1024,        /* a larger thing gets its own block */
  KEPT_GROWTH = 4,  /* a cached block for a growing array is at most 4 times as large as needed */
  KEPT_WASTE = 4,   /* any other cached block is at most a quarter too large */
  SLICE = 16 << 20, /* bytes whose pages are returned to the system at a time */
  PAGE = 4096
};

/* The header, directly before the block's data, which are aligned. */
struct arena_block {
  struct arena_block *older, *newer;
  void *memory;   /* malloc's */
  size_t bytes;   /* of the memory */
  size_t dropped; /* bytes at the end whose pages were returned to the system */
};

/* Room for the header and for moving the data up to the alignment. */
enum { OVERHEAD = sizeof(struct arena_block) + ALIGNMENT };

void budget_init(struct budget *b, size_t limit) {
  atomic_init(&b->used, 0);
  b->limit = limit;
  b->keep = NULL;
  b->give_way = NULL;
}

bool budget_charge(struct budget *b, size_t bytes) {
  size_t used = atomic_load_explicit(&b->used, memory_order_relaxed);
  do {
    if (bytes > b->limit - used) return false;
  } while (!atomic_compare_exchange_weak_explicit(&b->used, &used, used + bytes,
                                                  memory_order_relaxed, memory_order_relaxed));
  return true;
}

void budget_return(struct budget *b, size_t bytes) {
  atomic_fetch_sub_explicit(&b->used, bytes, memory_order_relaxed);
}

void arena_init(struct arena *a, struct budget *budget) { *a = (struct arena){.budget = budget}; }

static bool charge_arena(struct arena *a, size_t bytes, struct error *e) {
  struct budget *b = a->budget;
  bool fits = !b || budget_charge(b, bytes);
  const bool alone = !fits && bytes > b->limit - a->bytes - a->beside; /* exceeds the budget */
  while (!fits && !alone && b->give_way) {
    const size_t room = b->limit - atomic_load_explicit(&b->used, memory_order_relaxed);
    if (bytes > room && !b->give_way(b->giving, bytes - room)) break;
    fits = budget_charge(b, bytes);
  }
  if (fits) {
    a->bytes += bytes;
    return true;
  }
  if (alone)
    error_limit(
        e, "memory_budget_bytes",
        "the request needs %zu bytes more than the %zu that it has; the memory budget is %zu: "
        "send fewer or shorter items",
        bytes, a->bytes + a->beside, b->limit);
  else
    error_set(e, STATUS_OVERLOADED,
              "other requests use the memory budget of %zu bytes: send the request again later",
              b->limit);
  return false;
}

static void discharge_arena(struct arena *a, size_t bytes) {
  if (a->budget) budget_return(a->budget, bytes);
  a->bytes -= bytes;
}

bool arena_charge_beside(struct arena *a, size_t bytes, struct error *e) {
  if (!charge_arena(a, bytes, e)) return false;
  a->bytes -= bytes;
  a->beside += bytes;
  return true;
}

void arena_return_beside(struct arena *a, size_t bytes) {
  if (a->budget) budget_return(a->budget, bytes);
  a->beside -= bytes;
}

/* The block in some memory: its data begin at the first cache line after room for the header. */
static struct arena_block *block_in(void *memory) {
  const uintptr_t first = (uintptr_t)memory + sizeof(struct arena_block);
  const size_t skipped = -first & (ALIGNMENT - 1);
  return (struct arena_block *)((char *)memory + skipped);
}

static void *data_of(struct arena_block *block) { return block + 1; }

static struct arena_block *block_of(void *data) { return (struct arena_block *)data - 1; }

/* Bytes of data that a block has room for in any case. */
static size_t room_in(size_t bytes) { return bytes - OVERHEAD; }

/* Updates the links of its neighbors to a block that has moved or been replaced. */
static void relink_block(struct arena *a, struct arena_block *block) {
  if (block->older) block->older->newer = block;
  *(block->newer ? &block->newer->older : &a->block) = block;
}

static void release_memory(struct arena *a, void *memory, size_t bytes) {
  if (a->budget && a->budget->keep)
    keep_put(a->budget->keep, memory, bytes);
  else
    free(memory);
}

static void refuse_memory(size_t bytes, struct error *e) {
  error_set(e, STATUS_OUT_OF_MEMORY, "no memory for %zu bytes", bytes);
}

/* Takes a cached block. All of it is charged, so it must not be much too large, unless it `grows`:
 * then more is needed soon. NULL: there is none, or the budget is too full for it. */
static void *reuse_kept(struct arena *a, size_t least, bool grows, size_t *bytes) {
  struct keep *keep = a->budget ? a->budget->keep : NULL;
  if (!keep || least < KEEP_LEAST) return NULL;
  const size_t most = grows ? least * KEPT_GROWTH : least + least / KEPT_WASTE;
  void *memory = keep_take(keep, least, most, grows, bytes);
  if (!memory || charge_arena(a, *bytes, &(struct error){0})) return memory;
  keep_put(keep, memory, *bytes); /* a block of exactly the right size may still fit */
  return NULL;
}

static struct arena_block *block_new(struct arena *a, size_t bytes, bool grows, struct error *e) {
  size_t charged = bytes;
  void *memory = reuse_kept(a, bytes, grows, &charged);
  if (!memory) {
    charged = bytes;
    if (!charge_arena(a, bytes, e)) return NULL;
    memory = malloc(bytes);
    if (!memory) {
      discharge_arena(a, bytes);
      refuse_memory(bytes, e);
      return NULL;
    }
  }
  struct arena_block *block = block_in(memory);
  *block = (struct arena_block){.older = a->block, .memory = memory, .bytes = charged};
  if (a->block) a->block->newer = block;
  a->block = block;
  return block;
}

static bool byte_count(size_t count, size_t size, size_t *bytes, struct error *e) {
  if (size_mul(count, size, bytes) && *bytes <= SIZE_MAX / 8) {
    *bytes = size_round_up(size_max(*bytes, 1), ALIGNMENT);
    return true;
  }
  error_set(e, STATUS_TOO_LARGE, "%zu times %zu bytes is more than the machine can address", count,
            size);
  return false;
}

void *arena_alloc(struct arena *a, size_t count, size_t size, struct error *e) {
  size_t bytes;
  if (!byte_count(count, size, &bytes, e)) return NULL;
  if (bytes > SMALL) {
    struct arena_block *block = block_new(a, bytes + OVERHEAD, false, e);
    return block ? data_of(block) : NULL;
  }
  if ((size_t)(a->end - a->next) < bytes) {
    struct arena_block *block = block_new(a, SMALL_BLOCK, false, e);
    if (!block) return NULL;
    a->next = data_of(block);
    a->end = (char *)block->memory + SMALL_BLOCK;
  }
  char *data = a->next;
  a->next += bytes;
  return data;
}

/* --- growing --- */

/* Moves a block into a cached block; NULL if there is none. */
static struct arena_block *move_to_kept(struct arena *a, struct arena_block *old, size_t least) {
  size_t bytes;
  void *memory = reuse_kept(a, least, true, &bytes);
  if (!memory) return NULL;
  struct arena_block *block = block_in(memory);
  memcpy(block, old, sizeof *old + room_in(old->bytes));
  block->memory = memory;
  block->bytes = bytes;
  relink_block(a, block);
  discharge_arena(a, old->bytes);
  release_memory(a, old->memory, old->bytes);
  return block;
}

/* Grows a block by realloc: the system moves pages, and the data usually keep their place within
 * the first page. */
static struct arena_block *resize_block(struct arena *a, struct arena_block *old, size_t bytes,
                                        struct error *e) {
  const size_t had = old->bytes, more = bytes - had,
               place = (size_t)((char *)old - (char *)old->memory);
  if (!charge_arena(a, more, e)) return NULL;
  char *memory = realloc(old->memory, bytes);
  if (!memory) {
    discharge_arena(a, more);
    refuse_memory(bytes, e);
    return NULL;
  }
  struct arena_block *block = block_in(memory);
  if ((char *)block != memory + place) memmove(block, memory + place, sizeof *block + room_in(had));
  block->memory = memory;
  block->bytes = bytes;
  relink_block(a, block);
  return block;
}

void *arena_grow(struct arena *a, void *old, size_t *count, size_t size, struct error *e) {
  size_t bytes;
  if (!byte_count(*count, size, &bytes, e)) return NULL;
  bytes += OVERHEAD;
  struct arena_block *block;
  if (!old) {
    block = block_new(a, bytes, true, e);
  } else {
    must(bytes > block_of(old)->bytes);
    block = move_to_kept(a, block_of(old), bytes);
    if (!block) block = resize_block(a, block_of(old), bytes, e);
  }
  if (!block) return NULL;
  *count = room_in(block->bytes) / size;
  return data_of(block);
}

void arena_release(struct arena *a, void *data, size_t bytes) {
  if (bytes <= SMALL) return;
  struct arena_block *block = block_of(data);
  if (block->older) block->older->newer = block->newer;
  *(block->newer ? &block->newer->older : &a->block) = block->older;
  discharge_arena(a, block->bytes);
  release_memory(a, block->memory, block->bytes);
}

void arena_free(struct arena *a) {
  for (struct arena_block *block = a->block; block;) {
    struct arena_block *older = block->older;
    release_memory(a, block->memory, block->bytes);
    block = older;
  }
  size_t bytes = a->bytes;
  discharge_arena(a, bytes);
  *a = (struct arena){.budget = a->budget, .beside = a->beside};
}

/* --- freeing a little at a time --- */

void arena_give(struct arena *from, struct arena *to) {
  struct arena_block *oldest = from->block;
  if (!oldest) return;
  must(!to->budget || to->budget == from->budget);
  while (oldest->older) oldest = oldest->older;
  oldest->older = to->block;
  if (to->block) to->block->newer = oldest;
  to->budget = from->budget;
  to->block = from->block;
  to->bytes += from->bytes;
  *from = (struct arena){.budget = from->budget, .beside = from->beside};
}

/* Returns the last SLICE bytes of a large block to the system; false: few are left. */
static bool drop_pages(struct arena_block *block) {
  const size_t left = block->bytes - block->dropped;
  if (left < 2 * SLICE) return false;
  const uintptr_t end = (uintptr_t)block->memory + left,
                  from = (end - SLICE) & ~(uintptr_t)(PAGE - 1);
  (void)madvise((void *)from, (end & ~(uintptr_t)(PAGE - 1)) - from, MADV_DONTNEED);
  block->dropped += SLICE;
  return true;
}

bool arena_free_some(struct arena *a) {
  size_t freed = 0;
  while (a->block && freed < SLICE) {
    struct arena_block *block = a->block;
    const size_t bytes = block->bytes;
    /* A block may be cached whole; only one that is too large for that goes page by page. */
    if (bytes > ARENA_KEPT_MOST && drop_pages(block)) {
      freed += SLICE;
      continue;
    }
    a->block = block->older;
    discharge_arena(a, bytes);
    release_memory(a, block->memory, bytes);
    freed += bytes;
  }
  return a->block != NULL;
}
