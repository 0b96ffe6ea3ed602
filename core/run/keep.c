/* keep: large blocks that were freed, kept for a while for the next request. */
#include "core/run/keep.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/run/clock.h"

enum { NOTED = 16 * 1024 }; /* a block that is smaller is no reason to return pages */

/* The head of a kept block, in its own memory. */
struct kept {
  struct kept *older, *newer;
  size_t bytes;
  uint64_t since;
};

struct keep {
  size_t limit;
  atomic_size_t bytes;    /* written under the lock, read by anyone */
  _Atomic uint64_t freed; /* when a block was last given to us; 0: none since pages were returned */
  pthread_mutex_t lock;
  struct kept *newest, *oldest;
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

static void link_newest(struct keep *k, struct kept *b) {
  b->older = k->newest;
  b->newer = NULL;
  *(k->newest ? &k->newest->newer : &k->oldest) = b;
  k->newest = b;
  k->bytes += b->bytes;
}

static void unlink_kept(struct keep *k, struct kept *b) {
  *(b->newer ? &b->newer->older : &k->newest) = b->older;
  *(b->older ? &b->older->newer : &k->oldest) = b->newer;
  k->bytes -= b->bytes;
}

void *keep_take(struct keep *k, size_t least, size_t most, bool largest, size_t *bytes) {
  struct kept *chosen = NULL;
  pthread_mutex_lock(&k->lock);
  for (struct kept *b = k->newest; b; b = b->older) {
    if (b->bytes < least || b->bytes > most) continue;
    if (!chosen || (largest ? b->bytes > chosen->bytes : b->bytes < chosen->bytes)) chosen = b;
  }
  if (chosen) {
    unlink_kept(k, chosen);
    *bytes = chosen->bytes;
  }
  pthread_mutex_unlock(&k->lock);
  return chosen;
}

/* Unlinks, oldest first, what has lain since `until` or before, or must go for `bytes` to be at
 * most `limit`. Returns a list, linked by `older`: to be freed outside of the lock. */
static struct kept *unlink_oldest(struct keep *k, uint64_t until, size_t limit) {
  struct kept *list = NULL;
  while (k->oldest && (k->bytes > limit || k->oldest->since <= until)) {
    struct kept *b = k->oldest;
    unlink_kept(k, b);
    b->older = list;
    list = b;
  }
  return list;
}

static void free_list(struct kept *list) {
  while (list) {
    struct kept *next = list->older;
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
  struct kept *b = block;
  b->bytes = bytes;
  b->since = clock_now();
  pthread_mutex_lock(&k->lock);
  struct kept *surplus = unlink_oldest(k, 0, k->limit - bytes);
  link_newest(k, b);
  pthread_mutex_unlock(&k->lock);
  free_list(surplus);
}

/* What lies free between blocks in use goes back, too, when no large request has ended for a while.
 * glibc gives only the end of a heap back by itself, so every mix of sizes would leave a little
 * more than the one before. */
static void return_pages(struct keep *k, uint64_t until) {
  uint64_t freed = atomic_load_explicit(&k->freed, memory_order_relaxed);
  if (freed && freed <= until && atomic_compare_exchange_strong(&k->freed, &freed, 0))
    malloc_trim(0);
}

size_t keep_trim(struct keep *k, uint64_t now) {
  const uint64_t span = (uint64_t)KEEP_MS * CLOCK_MS;
  if (keep_rests(k) || now < span) return keep_bytes(k);
  const uint64_t until = now == UINT64_MAX ? now : now - span;
  pthread_mutex_lock(&k->lock);
  struct kept *old = unlink_oldest(k, until, k->limit);
  pthread_mutex_unlock(&k->lock);
  free_list(old);
  return_pages(k, until);
  return keep_bytes(k);
}

bool keep_rests(const struct keep *k) {
  return keep_bytes(k) == 0 && atomic_load_explicit(&k->freed, memory_order_relaxed) == 0;
}

size_t keep_bytes(const struct keep *k) {
  return atomic_load_explicit(&k->bytes, memory_order_relaxed);
}
