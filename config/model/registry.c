/* registry: all models of a configuration. */
#include "config/model/registry.h"

#include <stdlib.h>
#include <string.h>

#include "core/run/size.h"

struct registry {
  size_t count, chosen; /* `chosen` is the default */
  struct model *models[];
};

static enum gemm_engine configured_engine(const struct config *c) {
  if (strcmp(c->gemm, "packed") == 0) return GEMM_PACKED;
  if (strcmp(c->gemm, "openblas") == 0) return GEMM_OPENBLAS;
  must(strcmp(c->gemm, "auto") == 0);
  return GEMM_AUTO;
}

struct registry *registry_load(const struct config *c, struct error *e) {
  const char *name;
  json_t *definition;
  struct registry *r = calloc(1, sizeof *r + json_object_size(c->models) * sizeof *r->models);
  if (!r) {
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for the models");
    return NULL;
  }
  json_object_foreach(c->models, name, definition) {
    struct model *m = model_load(name, definition, c->directory, configured_engine(c), e);
    if (!m) {
      registry_free(r);
      return NULL;
    }
    if (strcmp(name, c->default_model) == 0) r->chosen = r->count;
    r->models[r->count++] = m;
  }
  must(r->count > 0); /* config_read has checked this, and that the default is one of them */
  return r;
}

void registry_free(struct registry *r) {
  if (!r) return;
  for (size_t i = 0; i < r->count; i++) model_free(r->models[i]);
  free(r);
}

const struct model *registry_find(const struct registry *r, const char *name) {
  for (size_t i = 0; i < r->count; i++)
    if (strcmp(r->models[i]->name, name) == 0) return r->models[i];
  return NULL;
}

const struct model *registry_default(const struct registry *r) { return r->models[r->chosen]; }

size_t registry_count(const struct registry *r) { return r->count; }

const struct model *registry_at(const struct registry *r, size_t index) {
  must(index < r->count);
  return r->models[index];
}

size_t registry_scratch_bytes(const struct registry *r) {
  size_t bytes = 0;
  for (size_t i = 0; i < r->count; i++)
    bytes = size_max(bytes, layer_scratch_bytes(r->models[i]->layer));
  return bytes;
}
