/* registry: all models of a configuration. */
#include "config/model/registry.h"

#include <stdlib.h>
#include <string.h>

#include "config/build/layer/layers_all.h"
#include "config/build/whole.h"
#include "config/document/text.h"
#include "core/base/cpu.h"
#include "core/base/size.h"
#include "core/base/team.h"

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
  const json_t *aliases; /* {"another name": "name"} */
  struct progress *progress;
  struct registry *registry;
  struct registry_entry {
    const char *name;
    const json_t *definition;
    uint64_t bytes; /* of its numbers; 0: they are those of `root` */
    size_t root;    /* the first entry with this definition, maybe itself */
  } * entry;        /* for each definition */
};

/* Two models with the same definition are loaded once. */
static size_t find_root(const struct registry_loading *l, size_t index) {
  size_t i = 0;
  while (i < index && !json_equal(l->entry[i].definition, l->entry[index].definition)) i++;
  return i;
}

static void note_default(struct registry_loading *l, const char *name, size_t index) {
  if (strcmp(name, l->config->default_model) != 0) return;
  l->registry->chosen = index;
  l->registry->named = true;
}

/* Lists the models. What can be wrong without their numbers is reported before any is read. */
static enum status measure_models(struct registry_loading *l, struct error *e) {
  const char *name;
  json_t *definition;
  json_object_foreach((json_t *)l->definitions, name, definition) {
    struct registry_entry *entry = &l->entry[l->registry->count++];
    *entry = (struct registry_entry){.name = name, .definition = definition};
    entry->root = find_root(l, l->registry->count - 1);
    if (entry == &l->entry[entry->root] &&
        model_measure(name, definition, l->config->directory, &entry->bytes, e))
      return e->status;
    note_default(l, name, l->registry->count - 1);
  }
  must(l->registry->count > 0); /* config_read has checked this, and that the default is there */
  return STATUS_OK;
}

/* A job of the team. Only one large model is in memory twice, as it was read and packed. */
static enum status load_model(void *of, size_t index, struct error *e) {
  struct registry_loading *l = of;
  const struct registry_entry *entry = &l->entry[index];
  if (entry != &l->entry[entry->root]) return STATUS_OK;
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

/* Adds what shares the numbers of another one: models with its definition, and then aliases. */
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
    note_default(l, name, r->count);
    r->models[r->count++] = alias;
  }
  return e->status;
}

static void tick(void *of) { progress_tick(of); }

static enum status load_measured(struct registry_loading *l, struct error *e) {
  uint64_t all = 0;
  for (size_t i = 0; i < l->registry->count; i++) all += l->entry[i].bytes;
  struct team *team = team_new(count_threads(l, all), tick, l->progress);
  if (!team) return error_no_memory(e);
  progress_begin(l->progress, l->definitions, all);
  team_each(team, l->registry->count, load_model, l, e);
  if (e->status == STATUS_OK) share_models(l, e);
  progress_end(l->progress);
  team_free(team);
  if (e->status == STATUS_OK) choose_default(l);
  return e->status;
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

/* Takes the aliases out of the definitions; the result is {"alias": "name"}, or NULL with an error.
 */
static json_t *take_aliases(json_t *models, struct error *e) {
  static const char key[] = "aliases";
  json_t *aliases = json_object(), *definition;
  const char *name;
  if (!aliases) error_no_memory(e);
  json_object_foreach(models, name, definition) {
    const json_t *list = json_object_get(definition, key);
    if (e->status || !list) continue;
    if (add_aliases(aliases, models, name, list, e)) break;
    json_t *copy = json_copy(definition); /* it is the configuration's */
    if (json_object_del(copy, key) || json_object_set_new(models, name, copy)) error_no_memory(e);
  }
  if (e->status == STATUS_OK) return aliases;
  text_plain(e);
  json_decref(aliases);
  return NULL;
}

/* config_read has checked that the default is a model, an alias or a layer; here it is known which
 * there are. */
static enum status check_default(const struct config *c, const json_t *models,
                                 const json_t *aliases, struct error *e) {
  if (!*c->default_model || json_object_get(models, c->default_model) ||
      json_object_get(aliases, c->default_model))
    return STATUS_OK;
  return config_refuse_default(c, models, e);
}

struct registry *registry_load(const struct config *c, struct progress *p, struct error *e) {
  struct registry *r = NULL;
  json_t *models = layers_all_expand(c->models, c->directory, e);
  json_t *aliases = models ? take_aliases(models, e) : NULL;
  if (aliases && check_default(c, models, aliases, e) == STATUS_OK)
    r = load_models(c, models, aliases, p, e);
  json_decref(models);
  json_decref(aliases);
  return r;
}

void registry_free(struct registry *r) {
  if (!r) return;
  for (size_t i = r->count; i-- > 0;)
    model_free(r->models[i]); /* roots stand before what shares them */
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
