/* registry: expands the definitions of a configuration, and loads their models. */
#include "config/model/registry.h"

#include <stdlib.h>
#include <string.h>

#include "config/build/layer/layers_all.h"
#include "config/build/whole.h"
#include "config/document/text.h"
#include "core/base/cpu.h"
#include "core/base/size.h"
#include "core/base/team.h"

/* Bytes of numbers; one thread loads fewer before others could begin to help. */
enum { THREADS_FROM = 8 * 1024 * 1024 };

struct registry {
  size_t count, chosen; /* `chosen` is the default */
  bool named;           /* whether the setting chose it */
  struct model *models[];
};

/* The state of a load. */
struct registry_loading {
  const struct config *config;
  const json_t *definitions;
  const json_t *aliases; /* {"another name": "name"} */
  struct progress *progress;
  struct registry *registry;
  struct registry_entry {
    const char *name;
    const json_t *definition;
    uint64_t bytes; /* of its numbers; 0: it has those of `root` */
    size_t root;    /* the first entry with this definition, maybe itself */
  } * entry;        /* for each definition */
};

/* Records the index of default_model, if this is its name. */
static void record_default(struct registry_loading *l, const char *name, size_t index) {
  if (strcmp(name, l->config->default_model) != 0) return;
  l->registry->chosen = index;
  l->registry->named = true;
}

/* Lists the models, and checks everything except their numbers. */
static enum status measure_models(struct registry_loading *l, struct error *e) {
  const char *name;
  json_t *definition;
  json_object_foreach((json_t *)l->definitions, name, definition) {
    struct registry_entry *entry = &l->entry[l->registry->count++];
    *entry = (struct registry_entry){.name = name, .definition = definition};
    /* Models with the same definition are loaded once. */
    while (!json_equal(l->entry[entry->root].definition, definition)) entry->root++;
    if (entry == &l->entry[entry->root] &&
        model_measure(name, definition, l->config->directory, &entry->bytes, e))
      return e->status;
    record_default(l, name, l->registry->count - 1);
  }
  must(l->registry->count > 0); /* as config_read has checked */
  return STATUS_OK;
}

/* A job of the team. Only one large model at a time is in memory twice, as read and packed. */
static enum status load_model(void *of, size_t index, struct error *e) {
  struct registry_loading *l = of;
  const struct registry_entry *entry = &l->entry[index];
  if (entry != &l->entry[entry->root]) return STATUS_OK;
  const char *gemm = l->config->gemm;
  const enum gemm_engine engine = strcmp(gemm, "packed") == 0     ? GEMM_PACKED
                                  : strcmp(gemm, "openblas") == 0 ? GEMM_OPENBLAS
                                                                  : GEMM_AUTO;
  enum compute compute = COMPUTE_FLOAT32;
  while (strcmp(l->config->compute, compute_names[compute]) != 0) compute++;
  if (entry->bytes > MODEL_SMALL) team_turn_begin();
  l->registry->models[index] =
      model_load(entry->name, entry->definition, l->config->directory, engine, compute, e);
  team_turn_end();
  if (e->status == STATUS_OK) progress_loaded(l->progress, entry->bytes);
  return e->status;
}

/* Adds the models that share the numbers of another one: those with its definition, and aliases. */
static enum status share_models(struct registry_loading *l, struct error *e) {
  struct registry *r = l->registry;
  const char *name;
  json_t *of;
  for (size_t i = 0; i < r->count && e->status == STATUS_OK; i++) {
    if (l->entry[i].root == i) continue;
    r->models[i] = model_share(r->models[l->entry[i].root], l->entry[i].name, e);
    progress_loaded(l->progress, 0);
  }
  json_object_foreach((json_t *)l->aliases, name, of) {
    const struct model *m = e->status ? NULL : registry_find(r, json_string_value(of));
    struct model *alias = m ? model_share(m->root ? m->root : m, name, e) : NULL;
    if (!alias) break;
    alias->alias = true;
    record_default(l, name, r->count);
    r->models[r->count++] = alias;
  }
  return e->status;
}

static void tick(void *of) { progress_tick(of); }

static enum status load_measured(struct registry_loading *l, struct error *e) {
  struct registry *r = l->registry;
  uint64_t all = 0, largest = 0;
  for (size_t i = 0; i < r->count; i++) {
    all += l->entry[i].bytes;
    if (l->entry[i].bytes > largest) largest = l->entry[i].bytes;
  }
  size_t threads = l->config->workers ? l->config->workers : cpu_quota();
  if (largest <= MODEL_SMALL) threads = size_min(threads, r->count);
  struct team *team = team_new(all < THREADS_FROM ? 1 : threads, tick, l->progress);
  if (!team) return error_no_memory(e);
  progress_begin(l->progress, l->definitions, all);
  team_each(team, r->count, load_model, l, e);
  if (e->status == STATUS_OK) share_models(l, e);
  progress_end(l->progress);
  team_free(team);
  if (e->status || r->named) return e->status;
  /* Without the setting the first attention layer is the default, for requests for attention. */
  while (r->chosen + 1 < r->count && r->models[r->chosen]->kind != MODEL_ATTENTION) r->chosen++;
  if (r->models[r->chosen]->kind != MODEL_ATTENTION) r->chosen = 0;
  return STATUS_OK;
}

/* Loads the models of these definitions. */
static struct registry *load_models(const struct config *c, const json_t *definitions,
                                    const json_t *aliases, struct progress *p, struct error *e) {
  const size_t count = json_object_size(definitions);
  struct registry *r =
      calloc(1, sizeof *r + (count + json_object_size(aliases)) * sizeof *r->models);
  struct registry_loading l = {.config = c,
                               .definitions = definitions,
                               .aliases = aliases,
                               .progress = p,
                               .registry = r,
                               .entry = calloc(count + 1, sizeof *l.entry)};
  if (!r || !l.entry)
    error_no_memory(e);
  else if (measure_models(&l, e) == STATUS_OK)
    load_measured(&l, e);
  free(l.entry);
  if (e->status == STATUS_OK) return r;
  registry_free(r);
  return NULL;
}

/* --- aliases --- */

/* Adds {"alias": "name"} for each of the list. */
static enum status add_aliases(json_t *aliases, const json_t *models, const char *name,
                               const json_t *list, struct error *e) {
  size_t i;
  json_t *one;
  if (!json_is_array(list))
    return error_set(e, STATUS_CONFIG, "model %.193s: aliases: needs a list of names", name);
  json_array_foreach((json_t *)list, i, one) {
    const char *alias = json_string_value(one);
    if (!alias || !text_is_model_name(alias))
      return error_set(e, STATUS_CONFIG, "model %.193s: aliases: \"%.80s\" is not a model name",
                       name, alias ? alias : "");
    if (json_object_get(models, alias) || json_object_get(aliases, alias))
      return error_set(e, STATUS_CONFIG, "model %.193s: aliases: there is another model %s", name,
                       alias);
    if (json_object_set_new(aliases, alias, json_string(name))) return error_no_memory(e);
  }
  return STATUS_OK;
}

/* Removes the aliases from the definitions and returns them as {"alias": "name"}; NULL with an
 * error. */
static json_t *detach_aliases(json_t *models, struct error *e) {
  static const char key[] = "aliases";
  json_t *aliases = json_object(), *definition;
  const char *name;
  if (!aliases) error_no_memory(e);
  json_object_foreach(models, name, definition) {
    const json_t *list = json_object_get(definition, key);
    if (e->status || !list) continue;
    if (add_aliases(aliases, models, name, list, e)) break;
    json_t *copy = json_copy(definition); /* the original belongs to the configuration */
    if (json_object_del(copy, key) || json_object_set_new(models, name, copy)) error_no_memory(e);
  }
  if (e->status == STATUS_OK) return aliases;
  text_plain(e);
  json_decref(aliases);
  return NULL;
}

struct registry *registry_load(const struct config *c, struct progress *p, struct error *e) {
  struct registry *r = NULL;
  json_t *models = layers_all_expand(c->models, c->directory, e);
  json_t *aliases = models ? detach_aliases(models, e) : NULL;
  /* config_read could not check the number of a layer. */
  const char *chosen = c->default_model;
  if (aliases && *chosen && !json_object_get(models, chosen) && !json_object_get(aliases, chosen))
    config_refuse_default(c, models, e);
  else if (aliases)
    r = load_models(c, models, aliases, p, e);
  json_decref(models);
  json_decref(aliases);
  return r;
}

void registry_free(struct registry *r) {
  if (!r) return;
  for (size_t i = r->count; i-- > 0;)
    model_free(r->models[i]); /* a root precedes the models that share it */
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
