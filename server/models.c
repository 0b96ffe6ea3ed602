/* models: the models in service. */
#include "server/models.h"

#include <stdlib.h>

struct models {
  struct registry *registry;
};

struct models *models_new(struct registry *first, size_t shards, struct error *e) {
  struct models *m = calloc(1, sizeof *m);
  (void)shards;
  if (m) {
    m->registry = first;
    return m;
  }
  registry_free(first);
  error_set(e, STATUS_OUT_OF_MEMORY, "no memory for the models");
  return NULL;
}

void models_free(struct models *m) {
  if (!m) return;
  registry_free(m->registry);
  free(m);
}

struct models_hold models_hold(struct models *m, size_t shard) {
  return (struct models_hold){.registry = m->registry, .models = m, .shard = shard};
}

void models_release(struct models_hold *h) { *h = (struct models_hold){0}; }
