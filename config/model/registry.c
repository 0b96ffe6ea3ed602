/* registry: all models of a configuration. */
#include "config/model/registry.h"

#include <stdlib.h>
#include <string.h>

#include "config/layer/layers_all.h"
#include "config/model/whole.h"
#include "core/run/cpu.h"
#include "core/run/size.h"
#include "core/run/team.h"

/* Bytes of numbers that one thread loads about as fast as others could begin to help. */
enum { THREADS_FROM = 8 * 1024 * 1024 };

struct registry {
  size_t count, chosen; /* `chosen` is the default */
  bool named;           /* by the setting */
  struct model *models[];
};

static enum gemm_engine configured_engine(const struct config *c) {
  if (strcmp(c->gemm, "packed") == 0) return GEMM_PACKED;
  if (strcmp(c->gemm, "openblas") == 0) return GEMM_OPENBLAS;
  must(strcmp(c->gemm, "auto") == 0);
  return GEMM_AUTO;
}

/* A load under way. */
struct registry_loading {
  const struct config *config;
  const json_t *definitions;
  struct progress *progress;
  struct registry *registry;
  struct registry_entry {
    const char *name;
    const json_t *definition;
    uint64_t bytes; /* of its numbers */
  } * entry;        /* for each model */
};

/* Lists the models. What can be wrong without their numbers is reported before any is read. */
static enum status measure_models(struct registry_loading *l, struct error *e) {
  const char *name;
  json_t *definition;
  json_object_foreach((json_t *)l->definitions, name, definition) {
    struct registry_entry *entry = &l->entry[l->registry->count++];
    *entry = (struct registry_entry){.name = name, .definition = definition};
    if (model_measure(name, definition, l->config->directory, &entry->bytes, e)) return e->status;
    if (strcmp(name, l->config->default_model) != 0) continue;
    l->registry->chosen = l->registry->count - 1;
    l->registry->named = true;
  }
  must(l->registry->count > 0); /* config_read has checked this, and that the default is there */
  return STATUS_OK;
}

/* A job of the team. Only one large model is in memory twice, as it was read and packed. */
static enum status load_model(void *of, size_t index, struct error *e) {
  struct registry_loading *l = of;
  const struct registry_entry *entry = &l->entry[index];
  if (entry->bytes > MODEL_SMALL) team_turn_begin();
  l->registry->models[index] = model_load(entry->name, entry->definition, l->config->directory,
                                          configured_engine(l->config), e);
  team_turn_end();
  if (e->status == STATUS_OK) progress_loaded(l->progress, entry->bytes);
  return e->status;
}

/* As many threads as there will be workers, unless others would come too late to help. */
static size_t count_threads(const struct registry_loading *l, uint64_t all) {
  const size_t workers = l->config->workers ? l->config->workers : cpu_quota();
  uint64_t largest = 0;
  for (size_t i = 0; i < l->registry->count; i++)
    if (l->entry[i].bytes > largest) largest = l->entry[i].bytes;
  if (all < THREADS_FROM) return 1;
  return largest > MODEL_SMALL ? workers : size_min(workers, l->registry->count);
}

/* Where none is named, the default is the first model that is one layer: it is asked for attention.
 */
static void choose_default(struct registry_loading *l) {
  struct registry *r = l->registry;
  if (r->named) return;
  while (r->chosen + 1 < r->count && r->models[r->chosen]->kind != MODEL_ATTENTION) r->chosen++;
  if (r->models[r->chosen]->kind != MODEL_ATTENTION) r->chosen = 0;
}

static void tick(void *of) { progress_tick(of); }

static enum status load_measured(struct registry_loading *l, struct error *e) {
  uint64_t all = 0;
  for (size_t i = 0; i < l->registry->count; i++) all += l->entry[i].bytes;
  struct team *team = team_new(count_threads(l, all), tick, l->progress);
  if (!team) return error_set(e, STATUS_OUT_OF_MEMORY, "no memory to load the models");
  progress_begin(l->progress, l->definitions, all);
  team_each(team, l->registry->count, load_model, l, e);
  progress_end(l->progress);
  team_free(team);
  if (e->status == STATUS_OK) choose_default(l);
  return e->status;
}

/* Loads the models of these definitions. */
static struct registry *load_models(const struct config *c, const json_t *definitions,
                                    struct progress *p, struct error *e) {
  const size_t count = json_object_size(definitions);
  struct registry *r = calloc(1, sizeof *r + count * sizeof *r->models);
  struct registry_loading l = {.config = c,
                               .definitions = definitions,
                               .progress = p,
                               .registry = r,
                               .entry = calloc(count + 1, sizeof *l.entry)};
  if (!r || !l.entry)
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for the models");
  else if (measure_models(&l, e) == STATUS_OK)
    load_measured(&l, e);
  free(l.entry);
  if (e->status == STATUS_OK) return r;
  registry_free(r);
  return NULL;
}

/* config_read has checked that the default is a model or a layer; here it is known which there
 * are. */
static enum status check_default(const struct config *c, const json_t *models, struct error *e) {
  if (!*c->default_model || json_object_get(models, c->default_model)) return STATUS_OK;
  return config_refuse_default(c, models, e);
}

struct registry *registry_load(const struct config *c, struct progress *p, struct error *e) {
  struct registry *r = NULL;
  json_t *models = layers_all_expand(c->models, c->directory, e);
  if (models && check_default(c, models, e) == STATUS_OK) r = load_models(c, models, p, e);
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

const struct model *registry_chosen(const struct registry *r) {
  return r->named ? r->models[r->chosen] : NULL;
}

size_t registry_count(const struct registry *r) { return r->count; }

const struct model *registry_at(const struct registry *r, size_t index) {
  must(index < r->count);
  return r->models[index];
}

size_t registry_scratch_bytes(const struct registry *r) {
  size_t bytes = 0;
  for (size_t i = 0; i < r->count; i++) {
    const struct model *m = r->models[i];
    bytes =
        size_max(bytes, m->whole ? whole_scratch_bytes(m->whole) : layer_scratch_bytes(m->layer));
  }
  return bytes;
}
