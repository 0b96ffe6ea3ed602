/* whole_layers: rotary positions and sliding windows. */
#include "config/describe/whole_layers.h"

#include <string.h>

#include "config/settings/option.h"

/* --- sliding windows --- */

enum { LAYERS_NONE, LAYERS_SOME, LAYERS_ALL };

/* Reads which layers have a window: those from max_window_layers on, or those of layer_types. */
static int read_window_layers(struct whole_translation *t) {
  const json_t *types = json_object_get(t->config, "layer_types"), *one;
  const size_t layers = whole_translation_count(t, t->family->keys->own.layers, 1, 0);
  const size_t first =
      whole_translation_count(t, "max_window_layers", 0, t->w->type->window_asked ? 28 : 0);
  size_t slide = 0, i;
  t->w->second_from = first;
  if (types && !json_is_null(types) && !json_is_array(types))
    error_set(t->e, STATUS_CONFIG, "config.json: layer_types: needs an array, not %s",
              option_json_kind(types));
  if (!json_is_array(types))
    return first == 0 ? LAYERS_ALL : layers > 0 && first >= layers ? LAYERS_NONE : LAYERS_SOME;
  t->w->layer_types = types;
  if (json_array_size(types) != layers)
    error_set(t->e, STATUS_CONFIG, "config.json: layer_types: has %zu entries for %zu layers",
              json_array_size(types), layers);
  json_array_foreach(types, i, one) slide += whole_words_is_kind(one, "sliding_attention");
  return slide == 0 ? LAYERS_NONE : slide == i ? LAYERS_ALL : LAYERS_SOME;
}

static void read_window(struct whole_translation *t) {
  static const char key[] = "sliding_window";
  const struct whole_type *type = t->w->type;
  const json_t *one;
  size_t i;
  json_array_foreach(json_object_get(t->config, "layer_types"), i, one) {
    if (!whole_words_is_kind(one, "full_attention") &&
        !whole_words_is_kind(one, "sliding_attention"))
      error_set(t->e, STATUS_CONFIG,
                "config.json: layer_types: only \"full_attention\" and \"sliding_attention\" are "
                "supported");
  }
  const bool null = json_is_null(json_object_get(t->config, key));
  const size_t window = null ? 0 : whole_translation_count(t, key, 1, type->window);
  if (window == 0 || !whole_translation_flag(t, "use_sliding_window", !type->window_asked)) return;
  const int layers = read_window_layers(t);
  if (!type->windows) whole_translation_refuse(t, key, "null");
  if (layers == LAYERS_NONE) return;
  t->w->kinds = layers == LAYERS_SOME ? 2 : 1;
  t->w->kind[1] = t->w->kind[0];
  /* Hugging Face transformers counts the row itself in one direction, but not in both. */
  t->w->kind[t->w->kinds - 1].window = window + t->w->both_ways;
}

/* --- rotary positions --- */

/* Reads a number of the object about scaled rotary positions. */
static double read_stretch_number(struct whole_translation *t, const char *all,
                                  const json_t *scaling, const char *key, double least) {
  const json_t *value = json_object_get(scaling, key);
  const double x = json_number_value(value);
  if (!json_is_number(value) || !(x >= least && x <= 1e9))
    error_set(t->e, STATUS_CONFIG, "config.json: %s: %s: needs a number of at least %g", all, key,
              least);
  return x;
}

/* Reads how rotary positions are scaled. False: the kind is not supported. */
static bool read_stretch(struct whole_translation *t, const char *all, const json_t *scaling,
                         const char *kind) {
  struct layer_stretch *s = &t->w->kind->rope_stretch;
  if (strcmp(kind, "default") == 0) return true;
  const bool llama = strcmp(kind, "llama3") == 0;
  if (!llama && strcmp(kind, "linear") != 0) return false;
  s->factor = read_stretch_number(t, all, scaling, "factor", 1);
  if (!llama) return true;
  s->low = read_stretch_number(t, all, scaling, "low_freq_factor", 1e-3);
  s->high = read_stretch_number(t, all, scaling, "high_freq_factor", 1e-3);
  s->positions = read_stretch_number(t, all, scaling, "original_max_position_embeddings", 1);
  if (!t->e->status && s->high <= s->low)
    error_set(t->e, STATUS_CONFIG,
              "config.json: %s: high_freq_factor: is not above low_freq_factor", all);
  return true;
}

/* The object of a key; NULL: there is none. */
static const json_t *object_of(struct whole_translation *t, const char *key) {
  const json_t *value = json_object_get(t->config, key);
  if (json_is_object(value)) return value;
  if (value && !json_is_null(value))
    error_set(t->e, STATUS_CONFIG, "config.json: %s: needs an object, not %s", key,
              option_json_kind(value));
  return NULL;
}

static void read_rope(struct whole_translation *t) {
  static const char all[] = "rope_parameters", some[] = "rope_scaling";
  const json_t *parameters = object_of(t, all), *others = object_of(t, some);
  const bool has_all = parameters;
  const json_t *scaling = has_all ? parameters : others;
  const json_t *kind = json_object_get(scaling, "rope_type");
  if (!kind) kind = json_object_get(scaling, "type");
  const char *where = has_all ? all : some, *member;
  json_t *value;
  json_object_foreach((json_t *)(has_all ? parameters : NULL), member, value) {
    if (json_is_object(value))
      error_set(t->e, STATUS_CONFIG,
                "config.json: rope_parameters: %.60s: parameters for each kind of layer are not "
                "supported",
                member);
  }
  if (json_object_size(scaling) > 0 && (kind || !has_all) &&
      (!json_is_string(kind) || !read_stretch(t, where, scaling, json_string_value(kind))))
    error_set(t->e, STATUS_CONFIG,
              "config.json: %s: has an unsupported kind; supported: default, linear, llama3",
              where);
  const char *key = t->family->keys->rope_base;
  const json_t *base = json_object_get(parameters, key);
  if (!base) base = json_object_get(t->config, key);
  t->w->kind->rope_base = base ? json_number_value(base) : t->w->type->rope_base;
  if (base && !(json_is_number(base) && t->w->kind->rope_base > 1 && t->w->kind->rope_base <= 1e30))
    error_set(t->e, STATUS_CONFIG, "config.json: %s: needs a number above 1", key);
}

void whole_layers_read(struct whole_translation *t) {
  read_rope(t);
  read_window(t);
}
