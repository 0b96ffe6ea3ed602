/* models: the models in service, and the keys that open them. Requests hold the set that they began
 * with; a reload swaps it whole, and the old set goes when nobody holds it any more. */
#ifndef SERVER_MODELS_H
#define SERVER_MODELS_H

#include "config/model/registry.h"
#include "config/settings/api_keys.h"

enum { MODELS_OLDER = 3 }; /* sets out of service that may be held beside the one in service */

struct models;

/* What is put into service together. */
struct models_set {
  struct registry *registry;
  struct api_keys *api_keys; /* NULL: none is asked for */
};
void models_set_free(struct models_set *set); /* one that was not taken; empty is fine */

/* A set that is held: it stays as it is until models_release. */
struct models_hold {
  const struct registry *registry; /* NULL: holds nothing */
  const struct api_keys *api_keys;
  struct models *models;
  size_t shard;
  unsigned generation;
};

/* Takes the first set, always. `shards`: threads that hold sets at the same time touch no common
 * cache line if each gives a shard of its own. NULL: no memory. */
struct models *models_new(struct models_set first, size_t shards, struct error *e);
void models_free(struct models *m); /* nobody holds anything; NULL is fine */

/* Any thread; never waits. `shard` is taken modulo the number of shards. */
struct models_hold models_hold(struct models *m, size_t shard);
void models_release(struct models_hold *h); /* maybe from another thread; again is fine */

/* Puts another set into service. False, and nothing is taken, while MODELS_OLDER older sets are
 * still held. One thread at a time, as models_collect. */
bool models_swap(struct models *m, struct models_set next);

/* Frees the sets that are out of service and not held. Returns how many still are: with fewer than
 * MODELS_OLDER the next swap succeeds. */
size_t models_collect(struct models *m);

#endif
