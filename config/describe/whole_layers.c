/* whole_layers: the two kinds of layers that a model may have, and disentangled positions. Local
 * layers have a window, or no rotary positions. */
#include "config/describe/whole_layers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config/describe/definition.h"
#include "config/describe/whole_settings.h"
#include "config/settings/option.h"

enum { TRAINED = 2048 }; /* positions that NomicBERT was trained for, if config.json has no key */

static const char full[] = "full_attention", sliding[] = "sliding_attention";

/* The object of a key; NULL: there is none, or it is empty. */
static const json_t *object_of(struct whole_translation *t, const char *key) {
  const json_t *value = json_object_get(t->config, key);
  if (json_is_object(value)) return json_object_size(value) > 0 ? value : NULL;
  if (value && !json_is_null(value))
    error_set(t->e, STATUS_CONFIG, "config.json: %s: needs an object, not %s", key,
              option_json_kind(value));
  return NULL;
}

/* The list of a key; NULL: there is none. It must have an entry for each layer. */
static const json_t *list_of(struct whole_translation *t, const char *key) {
  const json_t *value = key ? json_object_get(t->config, key) : NULL;
  const size_t layers = whole_translation_count(t, t->family->keys->own.layers, 1, 0);
  if (!value || json_is_null(value)) return NULL;
  if (!json_is_array(value))
    error_set(t->e, STATUS_CONFIG, "config.json: %s: needs an array, not %s", key,
              option_json_kind(value));
  else if (json_array_size(value) != layers)
    error_set(t->e, STATUS_CONFIG, "config.json: %s: has %zu entries for %zu layers", key,
              json_array_size(value), layers);
  return json_is_array(value) ? value : NULL;
}

/* --- rotary positions --- */

/* The members of config.json about the rotary positions of a kind of layers. */
struct rotation_said {
  const char *where;        /* of `scaling`, for errors */
  const json_t *parameters; /* as transformers 5 writes them, with the base; or NULL */
  const json_t *scaling;    /* the same object, or that of transformers 4; or NULL */
  const char *base;         /* the key of the base as transformers 4 writes it */
  double otherwise;
};

/* Reads a number of the object about scaled rotary positions. */
static double read_stretch_number(struct whole_translation *t, const struct rotation_said *said,
                                  const char *key, double least) {
  const json_t *value = json_object_get(said->scaling, key);
  const double x = json_number_value(value);
  if (!json_is_number(value) || !(x >= least && x <= 1e9))
    error_set(t->e, STATUS_CONFIG, "config.json: %s: %s: needs a number of at least %g",
              said->where, key, least);
  return x;
}

/* NTK scaling of GTE: the frequencies of the base times the factor s, divided by s^(2 / d). */
static void read_ntk(struct whole_translation *t, const struct rotation_said *said,
                     struct whole_layer_kind *out) {
  static const char mixed[] = "mixed_b";
  const double factor = read_stretch_number(t, said, "factor", 1);
  const size_t d = whole_translation_head_size(t);
  const json_t *other = json_object_get(said->scaling, mixed);
  if (other && !json_is_null(other))
    error_set(t->e, STATUS_CONFIG, "config.json: %s: %s: only null is supported", said->where,
              mixed);
  if (d == 0)
    error_set(t->e, STATUS_CONFIG, "config.json: %s: ntk requires %s", said->where,
              t->family->keys->width);
  out->rope_base *= factor;
  out->rope_stretch.factor = pow(factor, 2 / (double)d);
}

/* Dynamic NTK scaling: the base of an item follows its length. Items may be longer than those that
 * the model was trained for, if no key says how long they may be. */
static void read_dynamic(struct whole_translation *t, const struct rotation_said *said,
                         struct layer_stretch *s) {
  if (t->family->decodes && !t->w->both_ways)
    error_set(
        t->e, STATUS_CONFIG,
        "config.json: %s: \"dynamic\" is supported only in encoders: with each generated token, "
        "earlier keys would have to be computed again",
        said->where);
  s->factor = read_stretch_number(t, said, "factor", 1);
  const struct whole_keys *keys = t->family->keys;
  if (keys->dynamic) {
    s->trained = whole_translation_count(t, keys->dynamic, 1, TRAINED);
    return;
  }
  s->trained = whole_translation_count(t, keys->positions, 1, 0);
  if (s->trained == 0)
    error_set(t->e, STATUS_CONFIG, "config.json: %s: dynamic requires %s", said->where,
              keys->positions);
  if (!t->e->status) t->w->positions = (size_t)(s->factor * (double)s->trained);
}

/* Reads the keys that a family has of its own for a base that follows the length of an item. They
 * override the length that rope_parameters gives, as published code reads them alone. */
static void read_growth(struct whole_translation *t, const struct rotation_said *said,
                        struct layer_stretch *s) {
  const char *key = t->family->keys->rope_factor;
  const json_t *value = key ? json_object_get(t->config, key) : NULL;
  const double factor = json_number_value(value);
  if (!value || json_is_null(value) || (json_is_number(value) && factor == 0)) return;
  if (!(factor > 0 && factor <= 1e9))
    error_set(t->e, STATUS_CONFIG, "config.json: %s: needs a number above 0, or null", key);
  if (s->factor > 0 && (s->trained == 0 || s->factor != factor))
    error_set(t->e, STATUS_CONFIG, "config.json: %s: differs from %s", key, said->where);
  s->factor = factor;
  s->trained = whole_translation_count(t, t->family->keys->trained, 1, TRAINED);
}

/* Reads how rotary positions are scaled. False: the kind is not supported. */
static bool read_stretch(struct whole_translation *t, const struct rotation_said *said,
                         const char *kind, struct whole_layer_kind *out) {
  struct layer_stretch *s = &out->rope_stretch;
  if (strcmp(kind, "default") == 0) return true;
  if (t->family->keys->ntk) return strcmp(kind, "ntk") == 0 && (read_ntk(t, said, out), true);
  if (strcmp(kind, "dynamic") == 0) return read_dynamic(t, said, s), true;
  const bool llama = strcmp(kind, "llama3") == 0;
  if (!llama && strcmp(kind, "linear") != 0) return false;
  s->factor = read_stretch_number(t, said, "factor", 1);
  if (!llama) return true;
  s->low = read_stretch_number(t, said, "low_freq_factor", 1e-3);
  s->high = read_stretch_number(t, said, "high_freq_factor", 1e-3);
  s->positions = read_stretch_number(t, said, "original_max_position_embeddings", 1);
  if (!t->e->status && s->high <= s->low)
    error_set(t->e, STATUS_CONFIG,
              "config.json: %s: high_freq_factor: is not above low_freq_factor", said->where);
  return true;
}

static void read_rotation(struct whole_translation *t, const struct rotation_said *said,
                          struct whole_layer_kind *out) {
  const json_t *kind = json_object_get(said->scaling, "rope_type");
  if (!kind) kind = json_object_get(said->scaling, "type");
  static const char theta[] = "rope_theta";
  const json_t *base = json_object_get(said->parameters, theta);
  const char *key = base ? theta : said->base;
  if (!base) base = json_object_get(t->config, key);
  out->rope_base = base ? json_number_value(base) : said->otherwise;
  if (base && !(json_is_number(base) && out->rope_base > 1 && out->rope_base <= 1e30))
    error_set(t->e, STATUS_CONFIG, "config.json: %s: needs a number above 1", key);
  if (json_object_size(said->scaling) > 0 && (kind || !said->parameters) &&
      (!json_is_string(kind) || !read_stretch(t, said, json_string_value(kind), out)))
    error_set(t->e, STATUS_CONFIG,
              "config.json: %s: has an unsupported kind; supported: default, %s", said->where,
              t->family->keys->ntk ? "ntk" : "linear, llama3, dynamic");
  read_growth(t, said, &out->rope_stretch);
}

/* Reads the rotary positions of a family whose layers with a window have others than the rest:
 * rope_parameters has an object for each. rope_scaling is about the rest alone. */
static void read_rotations(struct whole_translation *t, const json_t *parameters,
                           const json_t *scaling, struct whole_layer_kind *local) {
  const struct whole_keys *keys = t->family->keys;
  const char *key;
  char full_where[48], local_where[48];
  json_t *value;
  json_object_foreach((json_t *)parameters, key, value) {
    const bool known = strcmp(key, full) == 0 || strcmp(key, sliding) == 0;
    if (!known || !json_is_object(value))
      error_set(t->e, STATUS_CONFIG,
                "config.json: rope_parameters: %.60s: must be an object for \"%s\" or \"%s\"", key,
                full, sliding);
  }
  snprintf(full_where, sizeof full_where, "rope_parameters: %s", full);
  snprintf(local_where, sizeof local_where, "rope_parameters: %s", sliding);
  const json_t *full_said = json_object_get(parameters, full),
               *local_said = json_object_get(parameters, sliding);
  read_rotation(t,
                &(struct rotation_said){.where = parameters ? full_where : "rope_scaling",
                                        .parameters = full_said,
                                        .scaling = parameters ? full_said : scaling,
                                        .base = keys->rope_base,
                                        .otherwise = t->w->type->rope_base},
                t->w->kind);
  read_rotation(t,
                &(struct rotation_said){.where = local_where,
                                        .parameters = local_said,
                                        .scaling = local_said,
                                        .base = keys->rope_local,
                                        .otherwise = t->w->type->rope_local},
                local);
}

static void read_rope(struct whole_translation *t, struct whole_layer_kind *local) {
  static const char all[] = "rope_parameters", some[] = "rope_scaling";
  const json_t *parameters = object_of(t, all), *scaling = object_of(t, some);
  const char *key;
  json_t *value;
  if (t->family->keys->rope_local) {
    read_rotations(t, parameters, scaling, local);
    return;
  }
  json_object_foreach((json_t *)parameters, key, value) {
    if (json_is_object(value) || strcmp(key, full) == 0 || strcmp(key, sliding) == 0)
      error_set(t->e, STATUS_CONFIG,
                "config.json: %s: %.60s: all layers of this model have the same rotary positions",
                all, key);
  }
  read_rotation(t,
                &(struct rotation_said){.where = parameters ? all : some,
                                        .parameters = parameters,
                                        .scaling = parameters ? parameters : scaling,
                                        .base = t->family->keys->rope_base,
                                        .otherwise = t->w->type->rope_base},
                t->w->kind);
  *local = *t->w->kind;
}

/* --- local layers --- */

/* Marks the layers that have a window: by layer_types, by their number, or all. */
static void mark_windows(struct whole_translation *t, bool *marked) {
  const struct whole_type *type = t->w->type;
  const json_t *types = list_of(t, "layer_types");
  const size_t each = whole_translation_count(t, t->family->keys->full_every, 1, type->full_every);
  const size_t from =
      type->window_from ? whole_translation_count(t, "max_window_layers", 0, type->window_from) : 0;
  for (size_t i = 0; i <= DEFINITION_LAYER_MAX; i++)
    marked[i] = types  ? whole_words_is_kind(json_array_get(types, i), sliding)
                : each ? i % each != (type->full_first ? 0 : each - 1)
                       : i >= from;
}

/* Marks the layers without rotary positions: the zeros of a list, or each nth. */
static void mark_unrotated(struct whole_translation *t, bool *marked) {
  const struct whole_keys *keys = t->family->keys;
  const json_t *list = list_of(t, keys->rotated), *one;
  const size_t each =
      whole_translation_count(t, keys->unrotated_every, 1, t->w->type->unrotated_every);
  size_t i;
  for (i = 0; i <= DEFINITION_LAYER_MAX; i++)
    marked[i] = list ? json_is_integer(json_array_get(list, i)) &&
                           json_integer_value(json_array_get(list, i)) == 0
                     : each > 0 && i % each == each - 1;
  json_array_foreach((json_t *)list, i, one) {
    const json_int_t number = json_integer_value(one);
    if (!json_is_integer(one) || number < 0 || number > 1)
      error_set(t->e, STATUS_CONFIG, "config.json: %s: entry %zu: must be 0 or 1", keys->rotated,
                i);
  }
}

/* Reads which layers are local. If all layers are of one kind, that is the first. */
static void read_kinds(struct whole_translation *t, const struct whole_layer_kind *local) {
  struct whole_words *w = t->w;
  const size_t layers = whole_translation_count(t, t->family->keys->own.layers, 1, 0);
  const size_t count = layers ? layers : DEFINITION_LAYER_MAX;
  bool *marked = calloc(DEFINITION_LAYER_MAX + 1, sizeof *marked);
  size_t locals = 0;
  if (!marked) {
    error_no_memory(t->e);
    return;
  }
  if (local->unrotated)
    mark_unrotated(t, marked);
  else
    mark_windows(t, marked);
  for (size_t i = 0; i < count && i <= DEFINITION_LAYER_MAX; i++) locals += marked[i];
  if (locals > 0) w->kind[locals < count] = *local;
  if (locals == 0 || locals == count) {
    free(marked);
    return;
  }
  w->local = marked;
}

/* Checks the names in layer_types. */
static void check_types(struct whole_translation *t) {
  const json_t *one;
  size_t i;
  json_array_foreach(json_object_get(t->config, "layer_types"), i, one) {
    if (!whole_words_is_kind(one, full) && !whole_words_is_kind(one, sliding))
      error_set(t->e, STATUS_CONFIG,
                "config.json: layer_types: only \"%s\" and \"%s\" are supported", full, sliding);
  }
}

/* Reads the window of local layers. False: they have none. */
static bool read_window(struct whole_translation *t, struct whole_layer_kind *local) {
  const struct whole_type *type = t->w->type;
  const char *key = t->family->keys->window;
  const bool null = json_is_null(json_object_get(t->config, key));
  size_t window = null ? 0 : whole_translation_count(t, key, 1, type->window);
  const bool asked = type->window_asked || !type->windows;
  if (asked && !whole_translation_flag(t, "use_sliding_window", !type->window_asked)) return false;
  if (window == 0) return false;
  if (!type->windows) whole_translation_refuse(t, key, "null");
  /* Hugging Face transformers counts the row itself in one direction, but not in both. */
  const bool both = t->w->both_ways || !t->family->decodes;
  if (both && type->window_halved) window /= 2;
  local->window = window + both;
  return true;
}

void whole_layers_read(struct whole_translation *t) {
  struct whole_layer_kind local = {0};
  const struct whole_keys *keys = t->family->keys;
  read_rope(t, &local);
  check_types(t);
  const bool windows = read_window(t, &local);
  local.unrotated = keys->rotated;
  if (windows || keys->rope_local || keys->rotated) read_kinds(t, &local);
}

/* --- disentangled positions --- */

/* Reads a list of words, as an array or as "word|word". Calls `set` for each; false: it is none of
 * those that are known. */
static void read_terms(struct whole_translation *t, const char *key, const char *known,
                       bool (*set)(struct whole_disentangled *d, const char *word)) {
  json_t *value = json_object_get(t->config, key), *one;
  char words[64];
  size_t i;
  bool good = !value || json_is_null(value) || json_is_array(value);
  json_array_foreach(value, i, one) {
    good = good && json_is_string(one) && set(&t->w->disentangled, json_string_value(one));
  }
  if (json_is_string(value) && json_string_length(value) < sizeof words) {
    snprintf(words, sizeof words, "%s", json_string_value(value));
    good = true;
    char *rest = words;
    for (char *word; good && (word = strsep(&rest, "|"));) {
      while (*word == ' ') word++;
      word[strcspn(word, " ")] = '\0';
      good = *word == '\0' || set(&t->w->disentangled, word);
    }
  }
  if (!good) whole_translation_refuse(t, key, known);
}

static bool set_term(struct whole_disentangled *d, const char *word) {
  const bool keys = strcasecmp(word, "c2p") == 0, queries = strcasecmp(word, "p2c") == 0;
  d->keys |= keys, d->queries |= queries;
  return keys || queries;
}

static bool set_norm(struct whole_disentangled *d, const char *word) {
  const bool normed = strcasecmp(word, "layer_norm") == 0;
  d->normed |= normed;
  return normed || strcasecmp(word, "none") == 0;
}

/* A count for which 0 and less mean that there is none. */
static size_t read_open_count(struct whole_translation *t, const char *key) {
  const json_t *value = json_object_get(t->config, key);
  if (json_is_integer(value) && json_integer_value(value) <= 0) return 0;
  return whole_translation_count(t, key, 1, 0);
}

void whole_layers_read_disentangled(struct whole_translation *t) {
  /* The default of transformers; and the greatest reach: each layer has a number for each distance
   * within it. */
  enum { POSITIONS = 512, REACH_MOST = 1 << 16 };
  static const char biased[] = "position_biased_input", buckets_key[] = "position_buckets";
  static const char known_terms[] = "\"c2p\", \"p2c\" and both";
  static const char reach_key[] = "max_relative_positions", shared[] = "share_att_key";
  struct whole_disentangled *d = &t->w->disentangled;
  const struct whole_keys *keys = t->family->keys;
  const size_t width = whole_translation_count(t, keys->width, 1, 0);
  if (whole_translation_count(t, keys->embedded, 1, width) != width) /* projected before the norm */
    whole_translation_refuse(t, keys->embedded, keys->width);
  t->w->unplaced = !whole_translation_flag(t, biased, true);
  read_terms(t, "pos_att_type", known_terms, set_term);
  read_terms(t, "norm_rel_ebd", "\"layer_norm\" and \"none\"", set_norm);
  const bool relative = whole_translation_flag(t, "relative_attention", false);
  const bool own = !whole_translation_flag(t, shared, false);
  const size_t buckets = read_open_count(t, buckets_key), said = read_open_count(t, reach_key);
  const size_t reach =
      said ? said : whole_translation_count(t, t->family->keys->positions, 1, POSITIONS);
  if (!relative) { /* the scale still depends on the terms */
    d->normed = false;
    return;
  }
  if (!d->keys && !d->queries) whole_translation_refuse(t, "pos_att_type", known_terms);
  d->own = own;
  d->span = buckets ? buckets : reach;
  d->reach = buckets ? reach : 0;
  if (reach > REACH_MOST)
    error_set(t->e, STATUS_CONFIG, "config.json: %s: %zu exceeds the %d that are supported",
              said ? reach_key : t->family->keys->positions, reach, REACH_MOST);
  else if (buckets % 2 != 0)
    error_set(t->e, STATUS_CONFIG, "config.json: %s: %zu is not supported: needs an even number",
              buckets_key, buckets);
  else if (buckets && reach < buckets / 2 + 2)
    error_set(t->e, STATUS_CONFIG,
              "config.json: %s: %zu is within the %zu distances that have a row each",
              said ? reach_key : t->family->keys->positions, reach, buckets / 2 + 1);
}

/* --- the convolution behind layer 0 --- */

void whole_layers_read_convolution(struct whole_translation *t) {
  static const char taps_key[] = "conv_kernel_size", act_key[] = "conv_act";
  struct stack_convolution *c = &t->w->convolution;
  c->taps = read_open_count(t, taps_key);
  if (c->taps == 0) return;
  if (c->taps % 2 == 0)
    error_set(t->e, STATUS_CONFIG, "config.json: %s: %zu is not supported: needs an odd number",
              taps_key, c->taps);
  const json_t *value = json_object_get(t->config, act_key);
  const char *said = value ? json_string_value(value) : "tanh";
  c->tanh = said && strcmp(said, "tanh") == 0;
  if (!c->tanh && !(said && whole_settings_activation(said, &c->activation)))
    error_set(t->e, STATUS_CONFIG, "config.json: %s: \"%.60s\" is not a supported activation",
              act_key, said ? said : option_json_kind(value));
}
