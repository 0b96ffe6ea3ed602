/* models: the models in service, and the API keys that open them. A request holds the set that it
 * began with; a reload swaps the whole set, and the old one is freed when no request holds it. */
#ifndef SERVER_MODELS_H
#define SERVER_MODELS_H

#include "config/model/registry.h"
#include "config/settings/api_keys.h"

enum { MODELS_OLDER = 3 }; /* older sets that requests may still hold */

struct models;

/* Models and API keys that are put into service together. */
struct models_set {
  struct registry *registry;
  struct api_keys *api_keys; /* NULL: no key is needed */
};
void models_set_free(struct models_set *set); /* a set that was not put into service, or empty */

/* A set that is held does not change until models_release. */
struct models_hold {
  const struct registry *registry; /* NULL: holds nothing */
  const struct api_keys *api_keys;
  struct models *models;
  size_t shard;
  unsigned generation;
};

/* Owns the first set from now on, also after a failure. Threads that pass different shards to
 * models_hold touch no common cache line. NULL: no memory. */
struct models *models_new(struct models_set first, size_t shards, struct error *e);
void models_free(struct models *m); /* no set is held; `m` may be NULL */

/* Holds the set in service; any thread, never waits. `shard` counts modulo the number of shards. */
struct models_hold models_hold(struct models *m, size_t shard);
void models_release(struct models_hold *h); /* on any thread; may be called again */

/* Puts another set into service. False, and the set stays the caller's, while MODELS_OLDER older
 * sets are still held. Only one thread at a time may call this or models_collect. */
bool models_swap(struct models *m, struct models_set next);

/* Frees the older sets that are not held. Returns how many are still held; if these are fewer than
 * MODELS_OLDER, the next swap succeeds. */
size_t models_collect(struct models *m);

#endif
