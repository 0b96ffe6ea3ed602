/* prefix: the prefix cache: a table of blocks, and their order of use, under one lock. */
#include "core/generate/prefix.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/size.h"

enum { PLACES = 1 << 14 }; /* in the table */

struct prefixes {
  pthread_mutex_t lock;
  struct budget *budget;
  size_t most;
  atomic_size_t bytes;
  uint64_t ids;
  struct prefix_block *newest, *oldest; /* by use */
  struct prefix_block *place[PLACES];
};

/* --- with the lock held --- */

static size_t place_of(uint64_t parent, const int32_t *token) {
  uint64_t h = parent * 0x9e3779b97f4a7c15;
  for (size_t i = 0; i < STACK_PREFIX_ROWS; i++) h = (h ^ (uint32_t)token[i]) * 0x100000001b3;
  return (size_t)(h >> 40) % PLACES;
}

static struct prefix_block *find_block(struct prefixes *p, uint64_t parent, const int32_t *token) {
  struct prefix_block *b = p->place[place_of(parent, token)];
  while (b && (b->parent != parent || memcmp(b->token, token, sizeof b->token))) b = b->chained;
  return b;
}

static void unlink_block(struct prefixes *p, struct prefix_block *b) {
  *(b->newer ? &b->newer->older : &p->newest) = b->older;
  *(b->older ? &b->older->newer : &p->oldest) = b->newer;
}

static void link_newest(struct prefixes *p, struct prefix_block *b) {
  b->newer = NULL;
  b->older = p->newest;
  *(p->newest ? &p->newest->newer : &p->oldest) = b;
  p->newest = b;
}

static void free_block(struct prefixes *p, struct prefix_block *b) {
  atomic_fetch_sub(&p->bytes, b->bytes);
  budget_return(p->budget, b->bytes);
  free(b->number);
  free(b);
}

static void remove_block(struct prefixes *p, struct prefix_block *b) {
  struct prefix_block **at = &p->place[place_of(b->parent, b->token)];
  while (*at != b) at = &(*at)->chained;
  *at = b->chained;
  unlink_block(p, b);
  free_block(p, b);
}

/* Removes the least recently used blocks, until at most `most` bytes are left. Blocks in use stay.
 */
static void remove_oldest(struct prefixes *p, size_t most) {
  for (struct prefix_block *b = p->oldest, *newer; b && p->bytes > most; b = newer) {
    newer = b->newer;
    if (b->users == 0) remove_block(p, b);
  }
}

/* --- making --- */

/* The budget's give_way: releases memory for requests that get none. */
static bool give_way(void *of, size_t bytes) {
  struct prefixes *p = of;
  pthread_mutex_lock(&p->lock);
  const size_t before = p->bytes;
  remove_oldest(p, before - size_min(bytes, before));
  const bool gave = p->bytes < before;
  pthread_mutex_unlock(&p->lock);
  return gave;
}

struct prefixes *prefixes_new(size_t most, struct budget *budget, struct error *e) {
  struct prefixes *p = calloc(1, sizeof *p);
  if (!p || pthread_mutex_init(&p->lock, NULL)) {
    free(p);
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for the prefix cache");
    return NULL;
  }
  p->most = most;
  p->budget = budget;
  budget->give_way = give_way;
  budget->giving = p;
  return p;
}

void prefixes_free(struct prefixes *p) {
  if (!p) return;
  p->budget->give_way = NULL;
  while (p->oldest) remove_block(p, p->oldest);
  pthread_mutex_destroy(&p->lock);
  free(p);
}

size_t prefixes_bytes(const struct prefixes *p) { return atomic_load(&p->bytes); }

/* --- blocks --- */

size_t prefixes_find(struct prefixes *p, uint64_t root, const int32_t *token, size_t most,
                     struct prefix_block **found) {
  size_t count = 0;
  pthread_mutex_lock(&p->lock);
  for (uint64_t parent = root; count < most; parent = found[count++]->id) {
    found[count] = find_block(p, parent, token + count * STACK_PREFIX_ROWS);
    if (!found[count]) break;
    found[count]->users++;
  }
  for (size_t i = count; i > 0; i--) { /* a block is of use only where those before it are */
    unlink_block(p, found[i - 1]);
    link_newest(p, found[i - 1]);
  }
  pthread_mutex_unlock(&p->lock);
  return count;
}

void prefixes_give_back(struct prefixes *p, struct prefix_block *block) {
  pthread_mutex_lock(&p->lock);
  block->users--;
  pthread_mutex_unlock(&p->lock);
}

uint64_t prefixes_behind(struct prefixes *p, uint64_t parent, const int32_t *token) {
  pthread_mutex_lock(&p->lock);
  const struct prefix_block *b = find_block(p, parent, token);
  const uint64_t id = b ? b->id : 0;
  pthread_mutex_unlock(&p->lock);
  return id;
}

struct prefix_block *prefixes_make(struct prefixes *p, uint64_t parent, const int32_t *token,
                                   size_t numbers) {
  const size_t bytes = numbers * sizeof(float) + sizeof(struct prefix_block);
  pthread_mutex_lock(&p->lock);
  remove_oldest(p, p->most - size_min(bytes, p->most));
  const bool fits = p->bytes + bytes <= p->most && budget_charge(p->budget, bytes);
  if (fits) atomic_fetch_add(&p->bytes, bytes);
  pthread_mutex_unlock(&p->lock);
  if (!fits) return NULL;
  struct prefix_block *b = calloc(1, sizeof *b);
  float *number = malloc(numbers * sizeof *number);
  if (!b || !number) {
    free(b);
    free(number);
    atomic_fetch_sub(&p->bytes, bytes);
    budget_return(p->budget, bytes);
    return NULL;
  }
  *b = (struct prefix_block){.parent = parent, .bytes = bytes, .number = number};
  memcpy(b->token, token, sizeof b->token);
  return b;
}

uint64_t prefixes_add(struct prefixes *p, struct prefix_block *b) {
  pthread_mutex_lock(&p->lock);
  const struct prefix_block *there = find_block(p, b->parent, b->token);
  if (!there) {
    b->id = ++p->ids;
    struct prefix_block **place = &p->place[place_of(b->parent, b->token)];
    b->chained = *place;
    *place = b;
    link_newest(p, b);
  }
  const uint64_t id = there ? there->id : b->id;
  pthread_mutex_unlock(&p->lock);
  if (there) free_block(p, b);
  return id;
}
