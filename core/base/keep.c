/* keep: a cache of freed large blocks for the next request. */
#include "core/base/keep.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/base/clock.h"

enum { NOTED = 16 * 1024 }; /* bytes; smaller blocks never cause pages to be returned */

/* The first bytes of a cached block. */
struct keep_block {
  struct keep_block *older, *newer;
  size_t bytes;
  uint64_t since;
};

struct keep {
  size_t limit;
  atomic_size_t bytes;    /* written under the lock, read without */
  _Atomic uint64_t freed; /* when a block was last freed; 0: not since pages were returned */
  pthread_mutex_t lock;
  struct keep_block *newest, *oldest;
};

struct keep *keep_new(size_t limit) {
  struct keep *k = calloc(1, sizeof *k);
  if (!k) return NULL;
  k->limit = limit;
  pthread_mutex_init(&k->lock, NULL);
  return k;
}

void keep_free(struct keep *k) {
  if (!k) return;
  keep_trim(k, UINT64_MAX);
  pthread_mutex_destroy(&k->lock);
  free(k);
}

static void link_newest(struct keep *k, struct keep_block *b) {
  b->older = k->newest;
  b->newer = NULL;
  *(k->newest ? &k->newest->newer : &k->oldest) = b;
  k->newest = b;
  k->bytes += b->bytes;
}

static void unlink_block(struct keep *k, struct keep_block *b) {
  *(b->newer ? &b->newer->older : &k->newest) = b->older;
  *(b->older ? &b->older->newer : &k->oldest) = b->newer;
  k->bytes -= b->bytes;
}

void *keep_take(struct keep *k, size_t least, size_t most, bool largest, size_t *bytes) {
  struct keep_block *chosen = NULL;
  pthread_mutex_lock(&k->lock);
  for (struct keep_block *b = k->newest; b; b = b->older) {
    if (b->bytes < least || b->bytes > most) continue;
    if (!chosen || (largest ? b->bytes > chosen->bytes : b->bytes < chosen->bytes)) chosen = b;
  }
  if (chosen) {
    unlink_block(k, chosen);
    *bytes = chosen->bytes;
  }
  pthread_mutex_unlock(&k->lock);
  return chosen;
}

/* Unlinks, oldest first, the blocks cached at `until` or before, and further ones until the bytes
 * are at most `limit`. Returns a list, linked by `older`, to be freed without the lock. */
static struct keep_block *unlink_oldest(struct keep *k, uint64_t until, size_t limit) {
  struct keep_block *list = NULL;
  while (k->oldest && (k->bytes > limit || k->oldest->since <= until)) {
    struct keep_block *b = k->oldest;
    unlink_block(k, b);
    b->older = list;
    list = b;
  }
  return list;
}

static void free_list(struct keep_block *list) {
  while (list) {
    struct keep_block *next = list->older;
    free(list);
    list = next;
  }
}

void keep_put(struct keep *k, void *block, size_t bytes) {
  if (bytes >= NOTED) atomic_store_explicit(&k->freed, clock_now(), memory_order_relaxed);
  if (bytes < KEEP_LEAST || bytes > k->limit) {
    free(block);
    return;
  }
  struct keep_block *b = block;
  b->bytes = bytes;
  b->since = clock_now();
  pthread_mutex_lock(&k->lock);
  struct keep_block *surplus = unlink_oldest(k, 0, k->limit - bytes);
  link_newest(k, b);
  pthread_mutex_unlock(&k->lock);
  free_list(surplus);
}

size_t keep_trim(struct keep *k, uint64_t now) {
  const uint64_t age = (uint64_t)KEEP_MS * CLOCK_MS;
  if (keep_rests(k) || now < age) return keep_bytes(k);
  const uint64_t until = now == UINT64_MAX ? now : now - age;
  pthread_mutex_lock(&k->lock);
  struct keep_block *old = unlink_oldest(k, until, k->limit);
  pthread_mutex_unlock(&k->lock);
  free_list(old);
  /* If no large block was freed for a while, free memory between blocks in use is returned, too.
   * glibc by itself returns only the end of a heap: every mix of sizes would leave a little more.
   */
  uint64_t freed = atomic_load_explicit(&k->freed, memory_order_relaxed);
  if (freed && freed <= until && atomic_compare_exchange_strong(&k->freed, &freed, 0))
    malloc_trim(0);
  return keep_bytes(k);
}

bool keep_rests(const struct keep *k) {
  return keep_bytes(k) == 0 && atomic_load_explicit(&k->freed, memory_order_relaxed) == 0;
}

size_t keep_bytes(const struct keep *k) {
  return atomic_load_explicit(&k->bytes, memory_order_relaxed);
}
