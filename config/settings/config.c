/* config: reads the settings: defaults, the file, the environment, the command line. */
#include "config/settings/config.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "config/document/file.h"
#include "config/document/json_reserve.h"
#include "config/document/nearest.h"
#include "config/document/text.h"
#include "config/settings/address.h"
#include "config/settings/option.h"
#include "core/base/cpu.h"
#include "core/base/size.h"

enum { WHERE_SIZE = 160 };

struct config_string {
  struct config_string *next;
  char bytes[];
};

struct config_store {
  struct config_string *strings; /* every string of the config */
  json_t *document;              /* the file, or NULL */
  char default_from[WHERE_SIZE]; /* the source of default_model, which is checked last */
};

/* The models if none is configured: those that are part of the program, a layer small enough to
 * read, one of the size of the original Transformer, and the additive attention of Dive into Deep
 * Learning (d2l). The web UI opens at the first one. */
static const char built_in_models[] =
    "{\"words\": {\"transformer\": {\"builtin\": \"words\"}},"
    " \"story\": {\"transformer\": {\"builtin\": \"story\"}},"
    " \"sort\": {\"transformer\": {\"builtin\": \"sort\"}},"
    " \"demo\": {\"random\": {\"seed\": 1}, \"query_size\": 4, \"heads\": 2},"
    " \"base\": {\"random\": {\"seed\": 1}, \"query_size\": 512, \"heads\": 8, \"bias\": true},"
    " \"additive\": {\"random\": {\"seed\": 1}, \"projection\": \"none\", \"score\": \"additive\","
    " \"query_size\": 20, \"key_size\": 2, \"value_size\": 4, \"score_size\": 8}}";

/* Copies `size` bytes, for as long as the config lives; NULL with an error. */
static const char *copy_string(struct config *c, const char *bytes, size_t size, struct error *e) {
  struct config_string *t = malloc(sizeof *t + size + 1);
  if (!t) {
    error_no_memory(e);
    return NULL;
  }
  memcpy(t->bytes, bytes, size);
  t->bytes[size] = '\0';
  t->next = c->store->strings;
  c->store->strings = t;
  return t->bytes;
}

/* Records the source of default_model. */
static void record_source(struct config *c, const struct option *o, const char *where) {
  if (strcmp(o->name, "default_model") == 0)
    snprintf(c->store->default_from, WHERE_SIZE, "%s", where);
}

/* The setting with the name nearest to a word, among them `other`, which is not an option. */
static struct nearest nearest_setting(const char *word, const char *other) {
  struct nearest near;
  nearest_init(&near, word);
  nearest_offer(&near, other);
  for (size_t i = 0; i < option_count(); i++) nearest_offer(&near, option_at(i)->name);
  return near;
}

/* --- the file --- */

static enum status set_models(struct config *c, json_t *models, const char *path, struct error *e) {
  const char *name;
  json_t *definition;
  if (!json_is_object(models))
    return error_set(e, STATUS_CONFIG, "%s: models: needs an object, not %s", path,
                     option_json_kind(models));
  if (json_object_size(models) == 0)
    return error_set(e, STATUS_CONFIG, "%s: models: must have at least one model", path);
  json_object_foreach(models, name, definition) {
    if (!text_is_model_name(name))
      return error_set(
          e, STATUS_CONFIG,
          "%s: models: \"%.80s\" is not a model name: 1 to %d of letters, digits, '.', '_', '-'; "
          "or two such words with '/' between, the second of which is not a route of this server",
          path, name, MODEL_NAME_PART);
    if (!json_is_object(definition))
      return error_set(e, STATUS_CONFIG, "%s: model %s: needs an object, not %s", path, name,
                       option_json_kind(definition));
  }
  json_decref(c->models);
  c->models = json_incref(models);
  return STATUS_OK;
}

static enum status read_config_file(struct config *c, const char *path, struct error *e) {
  const char *key, *slash = strrchr(path, '/'), *shown = text_tail(path);
  json_t *value;
  if (!(c->file = copy_string(c, path, strlen(path), e))) return e->status;
  if (slash) c->directory = slash == path ? "/" : copy_string(c, path, (size_t)(slash - path), e);
  if (!c->directory || !(c->store->document = file_json_or_pipe(path, e))) return e->status;
  if (!json_is_object(c->store->document))
    return error_set(e, STATUS_CONFIG, "%s: needs an object, not %s", shown,
                     option_json_kind(c->store->document));
  json_object_foreach(c->store->document, key, value) {
    char where[WHERE_SIZE], hint[NEAREST_HINT];
    if (strcmp(key, "models") == 0) {
      if (set_models(c, value, shown, e)) return e->status;
      continue;
    }
    const struct option *o = option_find(key);
    if (!o) {
      const struct nearest near = nearest_setting(key, "models");
      return error_set(e, STATUS_CONFIG, "%s: unknown setting \"%.60s\"%s%s", shown, key,
                       nearest_hint(&near, hint),
                       json_is_object(value) ? "; put a model into \"models\"" : "");
    }
    snprintf(where, sizeof where, "%s in %s", key, shown);
    if (option_set_json(o, c, value, where, e)) return e->status;
    record_source(c, o, where);
  }
  return STATUS_OK;
}

/* --- the environment --- */

/* Is the variable one that Kubernetes adds to each pod for a service? A service called attend, or
 * attend-something, makes ATTEND_PORT=tcp://..., ATTEND_SERVICE_HOST and others. */
static bool is_service_link(const char *name, size_t length, const char *value) {
  char copy[128];
  if (length >= sizeof copy) return false;
  memcpy(copy, name, length);
  copy[length] = '\0';
  if (text_ends_with(copy, "_SERVICE_HOST") || strstr(copy, "_SERVICE_PORT")) return true;
  if (text_ends_with(copy, "_PORT") && strstr(value, "://")) return true;
  const char *port = strstr(copy, "_PORT_");
  return port && isdigit((unsigned char)port[6]) &&
         (strstr(port, "_TCP") || strstr(port, "_UDP") || strstr(port, "_SCTP"));
}

/* Sets the setting of a variable. `entry` is NAME=value, and the name begins with ATTEND_. */
static enum status set_from_variable(struct config *c, const char *entry, struct error *e) {
  char known[64], where[WHERE_SIZE];
  size_t length = strcspn(entry, "=");
  if (entry[length] != '=') return STATUS_OK;
  const char *value = entry + length + 1;
  for (size_t i = 0; i < option_count(); i++) {
    const struct option *o = option_at(i);
    option_variable(o, known);
    if (strlen(known) != length || memcmp(known, entry, length) != 0) continue;
    snprintf(where, sizeof where, "environment: %s", known);
    if (!(value = copy_string(c, value, strlen(value), e))) return e->status;
    if (option_set(o, c, value, where, e) == STATUS_OK) record_source(c, o, where);
    return e->status;
  }
  if (strncmp(entry, "ATTEND_CONFIG=", 14) == 0) return STATUS_OK;
  if (strncmp(entry, "ATTEND_CPU=", 11) == 0) {
    /* core/base/cpu.c reads it, and ignores an unknown word, which is therefore rejected here. */
    for (size_t i = 0; i < CPU_WORD_COUNT; i++)
      if (strcmp(value, cpu_words[i].name) == 0) return STATUS_OK;
    return error_set(e, STATUS_CONFIG,
                     "environment: ATTEND_CPU: \"%.60s\" is not one of portable, avx2, avx2vnni, "
                     "avx512, avx512vnni",
                     value);
  }
  if (is_service_link(entry, length, value)) return STATUS_OK;
  char word[80];
  snprintf(word, sizeof word, "%.*s", (int)size_min(length, 70), entry);
  const struct nearest near = nearest_setting(word + strlen("ATTEND_"), "config");
  const struct option *o = near.name ? option_find(near.name) : NULL;
  const char *spelled = o ? option_variable(o, known) : near.name ? "ATTEND_CONFIG" : "";
  return error_set(e, STATUS_CONFIG, "environment: unknown variable %s%s%s%s", word,
                   *spelled ? " (did you mean " : "", spelled, *spelled ? "?)" : "");
}

/* --- the command line --- */

/* One word of the command line. */
struct config_word {
  const char *name;  /* without "--" */
  size_t length;     /* of the name */
  const char *value; /* after '='; or NULL */
};

static bool is_named(const struct config_word *w, const char *name) {
  return strlen(name) == w->length && memcmp(name, w->name, w->length) == 0;
}

/* Is the following word this setting's value? A flag's is only on, off, true or false. */
static bool value_follows(const struct option *o, const struct config_word *w, bool no,
                          const char *following) {
  if (w->value || no || !following) return false;
  return o->kind != OPTION_IS_FLAG || option_is_flag_word(following);
}

/* Sets one setting. Returns the number of its words, one or two; 0 with an error. */
static size_t set_from_switch(struct config *c, const struct option *o, const struct config_word *w,
                              bool no, const char *following, struct error *e) {
  char name[64], where[WHERE_SIZE];
  const size_t words = value_follows(o, w, no, following) ? 2 : 1;
  const char *value = words == 2 ? following : w->value;
  snprintf(where, sizeof where, "command line: --%s%s", no ? "no-" : "", option_switch(o, name));
  if (o->kind == OPTION_IS_FLAG) {
    if (no && value) error_set(e, STATUS_CONFIG, "%s: takes no value", where);
    if (!value) value = no ? "off" : "on";
  }
  if (!value) error_set(e, STATUS_CONFIG, "%s: needs a value", where);
  if (e->status || !(value = copy_string(c, value, strlen(value), e))) return 0;
  if (option_set(o, c, value, where, e)) return 0;
  record_source(c, o, where);
  return words;
}

static enum status split_word(const char *arg, struct config_word *w, struct error *e) {
  if (arg[0] != '-' && text_ends_with(arg, ".json"))
    return error_set(e, STATUS_CONFIG,
                     "command line: unexpected argument \"%.80s\": use --config %.80s", arg, arg);
  if (strncmp(arg, "--", 2) != 0 || !arg[2])
    return error_set(e, STATUS_CONFIG,
                     "command line: unexpected argument \"%.80s\": settings are --name VALUE or "
                     "--name=VALUE, and flags --name, --no-name or --name=off",
                     arg);
  w->name = arg + 2;
  w->length = strcspn(w->name, "=");
  w->value = w->name[w->length] ? w->name + w->length + 1 : NULL;
  return STATUS_OK;
}

static const struct option *find_switch(const struct config_word *w, bool *no) {
  char name[64], negated[68];
  for (size_t i = 0; i < option_count(); i++) {
    const struct option *o = option_at(i);
    *no = false;
    if (is_named(w, option_switch(o, name))) return o;
    snprintf(negated, sizeof negated, "no-%s", name);
    *no = true;
    if (o->kind == OPTION_IS_FLAG && is_named(w, negated)) return o;
  }
  return NULL;
}

size_t config_words(char *const *args) {
  struct config_word w = {0};
  struct error none = {0};
  bool no = false;
  if (split_word(*args, &w, &none)) return 1;
  const struct option *o = find_switch(&w, &no);
  const bool two =
      o ? value_follows(o, &w, no, args[1]) : is_named(&w, "config") && !w.value && args[1];
  return two ? 2 : 1;
}

/* Reads the words of the command line. With `path` it only looks for --config: the file must be
 * read before the environment. Without `path` it sets everything else. */
static enum status read_arguments(struct config *c, char *const *args, const char **path,
                                  struct error *e) {
  for (size_t used; *args; args += used) {
    struct config_word w = {0};
    bool no = false;
    if (split_word(*args, &w, e)) return e->status;
    const struct option *o = find_switch(&w, &no);
    if (is_named(&w, "config")) {
      const char *value = w.value ? w.value : args[1];
      if (!value || !*value)
        return error_set(e, STATUS_CONFIG, "command line: --config: needs a path");
      used = w.value ? 1 : 2;
      if (path) *path = value;
    } else if (!o) {
      char word[80], known[64];
      snprintf(word, sizeof word, "%.*s", (int)size_min(w.length, 70), w.name);
      const struct nearest near = nearest_setting(word, "config");
      const struct option *other = near.name ? option_find(near.name) : NULL;
      const char *spelled = other ? option_switch(other, known) : near.name ? "config" : "";
      return error_set(e, STATUS_CONFIG, "command line: unknown setting --%s%s%s%s", word,
                       *spelled ? " (did you mean --" : "", spelled, *spelled ? "?)" : "");
    } else if (path) {
      used = value_follows(o, &w, no, args[1]) ? 2 : 1;
    } else {
      used = set_from_switch(c, o, &w, no, args[1], e);
      if (used == 0) return e->status;
    }
  }
  return STATUS_OK;
}

/* --- all together --- */

/* Does the definition mean a model for each layer? A whole model also has "layers". */
static bool is_of_each_layer(const json_t *definition) {
  return json_object_get(definition, "layers") && !json_object_get(definition, "transformer");
}

const json_t *config_definition(const struct config *c, const char *name) {
  const json_t *own = json_object_get(c->models, name);
  const char *other;
  size_t i;
  json_t *definition, *one;
  if (own) return own;
  json_object_foreach(c->models, other, definition) {
    json_array_foreach(json_object_get(definition, "aliases"), i, one) {
      if (json_is_string(one) && strcmp(json_string_value(one), name) == 0) return definition;
    }
  }
  const char *dot = strrchr(name, '.');
  char stem[MODEL_NAME_SIZE];
  if (!text_is_model_name(name) || !dot || !dot[1] || dot[1 + strspn(dot + 1, "0123456789")])
    return NULL;
  snprintf(stem, sizeof stem, "%.*s", (int)(dot - name), name);
  const json_t *all = json_object_get(c->models, stem);
  return is_of_each_layer(all) ? all : NULL;
}

enum status config_refuse_default(const struct config *c, const json_t *models, struct error *e) {
  char hint[NEAREST_HINT];
  struct nearest near;
  const char *name;
  json_t *definition;
  nearest_init(&near, c->default_model);
  json_object_foreach((json_t *)models, name, definition) nearest_offer(&near, name);
  return error_set(e, STATUS_CONFIG, "%s: there is no model \"%.193s\"%s",
                   c->store ? c->store->default_from : "default_model", c->default_model,
                   nearest_hint(&near, hint));
}

/* Checks settings against each other. The layers of a checkpoint are not known yet. */
static enum status check_settings(const struct config *c, struct error *e) {
  struct address main, admin;
  if (address_parse(&main, c->listen) && address_parse(&admin, c->admin_listen) &&
      strcmp(main.host, admin.host) == 0 && strcmp(main.port, admin.port) == 0 &&
      strcmp(main.port, "0") != 0)
    return error_set(e, STATUS_CONFIG,
                     "admin_listen: \"%.80s\" is also the address of listen: choose another port",
                     c->admin_listen);
  if (!*c->default_model) return STATUS_OK;
  if (is_of_each_layer(json_object_get(c->models, c->default_model)))
    return error_set(
        e, STATUS_CONFIG,
        "%s: \"%.193s\" is one model per layer: name one of them, such as \"%.193s.0\"",
        c->store->default_from, c->default_model, c->default_model);
  return config_definition(c, c->default_model) ? STATUS_OK
                                                : config_refuse_default(c, c->models, e);
}

static enum status read_sources(struct config *c, char *const *args, char *const *environment,
                                struct error *e) {
  for (size_t i = 0; i < option_count(); i++) {
    const struct option *o = option_at(i);
    if (o->kind == OPTION_IS_COUNT)
      *option_number(o, c) = o->number;
    else if (o->kind == OPTION_IS_FLAG)
      *option_flag(o, c) = o->number != 0;
    else
      *option_text(o, c) = o->text;
  }
  c->directory = ".";
  if (!(c->store = calloc(1, sizeof *c->store))) return error_no_memory(e);

  const char *path = ""; /* of the file */
  char *const *variable = environment;
  while (*variable && strncmp(*variable, "ATTEND_CONFIG=", 14) != 0) variable++;
  if (*variable) path = *variable + 14;
  if (read_arguments(c, args, &path, e)) return e->status;
  if (*path && read_config_file(c, path, e)) return e->status;
  for (; *environment; environment++)
    if (strncmp(*environment, "ATTEND_", 7) == 0 && set_from_variable(c, *environment, e))
      return e->status;
  if (read_arguments(c, args, NULL, e)) return e->status;

  bool no_memory;
  c->built_in = !c->models;
  if (c->built_in &&
      !(c->models = json_reserve_load(built_in_models, strlen(built_in_models), NULL, &no_memory)))
    return error_no_memory(e);
  return check_settings(c, e);
}

enum status config_read(struct config *c, char *const *args, char *const *environment,
                        struct error *e) {
  *c = (struct config){0};
  if (read_sources(c, args, environment, e)) config_free(c);
  return text_plain(e);
}

void config_free(struct config *c) {
  if (c->store) {
    for (struct config_string *t = c->store->strings; t;) {
      struct config_string *next = t->next;
      free(t);
      t = next;
    }
    json_decref(c->store->document);
    free(c->store);
  }
  json_decref(c->models);
  *c = (struct config){0};
}
