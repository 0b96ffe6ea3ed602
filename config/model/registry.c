/* registry: all models of a configuration. */
#include "config/model/registry.h"

#include <stdlib.h>
#include <string.h>

#include "config/document/nearest.h"
#include "config/model/layers_all.h"
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

/* Loads the models of these definitions. */
static struct registry *load_models(const struct config *c, json_t *models, struct error *e) {
  const char *name;
  json_t *definition;
  struct registry *r = calloc(1, sizeof *r + json_object_size(models) * sizeof *r->models);
  if (!r) {
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for the models");
    return NULL;
  }
  json_object_foreach(models, name, definition) {
    struct model *m = model_load(name, definition, c->directory, configured_engine(c), e);
    if (!m) {
      registry_free(r);
      return NULL;
    }
    if (strcmp(name, c->default_model) == 0) r->chosen = r->count;
    r->models[r->count++] = m;
  }
  must(r->count > 0); /* config_read has checked this */
  return r;
}

/* config_read has checked that the default is a model or a layer; here it is known which there
 * are. */
static enum status check_default(const struct config *c, const json_t *models, struct error *e) {
  struct nearest near;
  const char *name;
  json_t *definition;
  if (!*c->default_model || json_object_get(models, c->default_model)) return STATUS_OK;
  nearest_init(&near, c->default_model);
  json_object_foreach((json_t *)models, name, definition) nearest_offer(&near, name);
  return error_set(e, STATUS_CONFIG,
                   "default_model: there is no model \"%.64s\"; the nearest is \"%s\"",
                   c->default_model, near.name);
}

struct registry *registry_load(const struct config *c, struct error *e) {
  struct registry *r = NULL;
  json_t *models = layers_all_expand(c->models, c->directory, e);
  if (models && check_default(c, models, e) == STATUS_OK) r = load_models(c, models, e);
  json_decref(models);
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
