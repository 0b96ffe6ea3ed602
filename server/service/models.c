/* models: the models in service.
 *
 * A set lies in one of a few slots. The holds of a slot are counted, in one counter for each shard,
 * so that no request waits for another.
 *
 * Why no set is freed that is held: a hold is counted first (A), then checks whether the generation
 * that it read is still current (B). A swap publishes the next generation (C), and only after that
 * are the old slot's counters read (D). All four are sequentially consistent. If B still saw the
 * old generation, B came before C, so A came before D, and D sees the count until it is released.
 * If B saw another generation, the count is taken back, and the set was never touched. Such a count
 * may even be added to the slot's next set, which then merely lives a moment longer. After C no
 * hold of the old set begins, so each of its counters needs to be seen at zero only once.
 *
 * The members of set[] need no atomics: a thread writes them before C, after it has seen all
 * counters of that slot at zero, and they are read only after a B that succeeded. */
#include "server/service/models.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { SLOTS = MODELS_OLDER + 1 };

struct models_shard {
  _Alignas(64) _Atomic uint64_t held[SLOTS];
};

struct models {
  _Alignas(64)
      atomic_uint current; /* generation: a number that grows, times SLOTS, plus the slot */
  size_t shards;
  struct models_set set[SLOTS]; /* a set without a registry is a free slot */
  struct models_shard shard[];
};

void models_set_free(struct models_set *set) {
  registry_free(set->registry);
  api_keys_free(set->api_keys);
  *set = (struct models_set){0};
}

struct models *models_new(struct models_set first, size_t shards, struct error *e) {
  struct models *m =
      aligned_alloc(_Alignof(struct models), sizeof *m + shards * sizeof(struct models_shard));
  if (!m) {
    models_set_free(&first);
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for the models");
    return NULL;
  }
  atomic_init(&m->current, 0);
  m->shards = shards;
  for (size_t slot = 0; slot < SLOTS; slot++)
    m->set[slot] = slot == 0 ? first : (struct models_set){0};
  for (size_t i = 0; i < shards; i++)
    for (size_t slot = 0; slot < SLOTS; slot++) atomic_init(&m->shard[i].held[slot], 0);
  return m;
}

struct models_hold models_hold(struct models *m, size_t shard) {
  struct models_shard *own = &m->shard[shard % m->shards];
  unsigned seen = atomic_load(&m->current);
  for (;;) {
    const unsigned generation = seen;
    atomic_fetch_add(&own->held[generation % SLOTS], 1); /* A */
    seen = atomic_load(&m->current);                     /* B */
    if (seen == generation)
      return (struct models_hold){.registry = m->set[generation % SLOTS].registry,
                                  .api_keys = m->set[generation % SLOTS].api_keys,
                                  .models = m,
                                  .shard = shard,
                                  .generation = generation};
    atomic_fetch_sub(&own->held[generation % SLOTS], 1);
  }
}

void models_release(struct models_hold *h) {
  if (!h->models) return;
  struct models_shard *own = &h->models->shard[h->shard % h->models->shards];
  atomic_fetch_sub_explicit(&own->held[h->generation % SLOTS], 1, memory_order_release);
  *h = (struct models_hold){0};
}

static bool is_held(struct models *m, size_t slot) {
  for (size_t i = 0; i < m->shards; i++)
    if (atomic_load(&m->shard[i].held[slot])) return true; /* D */
  return false;
}

size_t models_collect(struct models *m) {
  const size_t current = atomic_load(&m->current) % SLOTS;
  size_t held = 0;
  for (size_t slot = 0; slot < SLOTS; slot++) {
    if (slot == current || !m->set[slot].registry) continue;
    if (is_held(m, slot))
      held++;
    else
      models_set_free(&m->set[slot]);
  }
  return held;
}

bool models_swap(struct models *m, struct models_set next) {
  if (models_collect(m) == MODELS_OLDER) return false;
  size_t slot = 0;
  while (m->set[slot].registry) slot++;
  m->set[slot] = next;
  atomic_store(&m->current,
               (unsigned)((atomic_load(&m->current) / SLOTS + 1) * SLOTS + slot)); /* C */
  return true;
}

void models_free(struct models *m) {
  if (!m) return;
  must(models_collect(m) == 0);
  const size_t current = atomic_load(&m->current) % SLOTS;
  must(!is_held(m, current));
  models_set_free(&m->set[current]);
  free(m);
}
