/* whole_words: translates config.json. */
#include "config/model/whole_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/document/text.h"
#include "config/model/whole_settings.h"
#include "config/settings/option.h"

enum { COUNT_MOST = 1 << 24, WORD_SIZE = 32, FROM_SIZE = 96 };

/* A translation under way. What follows records the first mistake in `e` and goes on. */
struct whole_translation {
  struct whole_words *w;
  const json_t *whole;  /* config.json */
  const json_t *config; /* what in it is about the encoder */
  const json_t *generation;
  const struct whole_family *family;
  struct error *e;
};

/* `key` of that document said it; NULL: none did. */
static void put_from(struct whole_words *w, const char *word, json_t *value, const char *document,
                     const char *key, struct error *e) {
  char from[FROM_SIZE];
  snprintf(from, sizeof from, "%s: %s", document, key ? key : "");
  if (json_object_set_new(w->words, word, value) != 0 ||
      (key && json_object_set_new(w->from, word, json_string(from)) != 0))
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for what %s says", document);
}

static void put(struct whole_translation *t, const char *word, const char *key, json_t *value) {
  put_from(t->w, word, value, "config.json", key, t->e);
}

/* What config.json says there, whose value is checked as one of a definition is; else the other,
 * whose reference is taken; NULL: nothing. */
static void put_said(struct whole_translation *t, const char *word, const char *key,
                     json_t *otherwise) {
  json_t *value = key ? json_object_get(t->config, key) : NULL;
  if (value) {
    json_decref(otherwise);
    put(t, word, key, json_incref(value));
  } else if (otherwise) {
    put(t, word, NULL, otherwise);
  }
}

/* --- values --- */

/* One that no definition says. */
static size_t count_of(struct whole_translation *t, const char *key, size_t low, size_t otherwise) {
  const json_t *value = key ? json_object_get(t->config, key) : NULL;
  const json_int_t number = json_integer_value(value);
  if (!value) return otherwise;
  if (!json_is_integer(value) || number < (json_int_t)low || number > COUNT_MOST)
    error_set(t->e, STATUS_CONFIG, "config.json: %s: needs an integer from %zu to %d", key, low,
              COUNT_MOST);
  return (size_t)number;
}

static void put_count(struct whole_translation *t, const char *word, const char *key,
                      size_t otherwise) {
  put_said(t, word, key, otherwise ? json_integer((json_int_t)otherwise) : NULL);
}

/* Of a key for which the library takes null to be what the other sizes make. */
static void put_free_count(struct whole_translation *t, const char *word, const char *key) {
  if (!json_is_null(json_object_get(t->config, key))) put_count(t, word, key, 0);
}

static bool flag_of(struct whole_translation *t, const char *key, bool otherwise) {
  const json_t *value = json_object_get(t->config, key);
  if (!value) return otherwise;
  if (!json_is_boolean(value))
    error_set(t->e, STATUS_CONFIG, "config.json: %s: needs true or false, not %s", key,
              option_json_kind(value));
  return json_is_true(value);
}

/* What the library works out of the activation's name, and writes beside it. */
static void check_gate(struct whole_translation *t, enum activation is, bool gated) {
  static const char act[] = "dense_act_fn", gate[] = "is_gated_act";
  const json_t *value = json_object_get(t->config, act);
  enum activation said;
  if (value && (!json_is_string(value) ||
                !whole_settings_activation(json_string_value(value), &said) || said != is))
    error_set(t->e, STATUS_CONFIG, "config.json: %s: is not what %s says", act,
              t->family->keys->activation);
  if (flag_of(t, gate, gated) != gated)
    error_set(t->e, STATUS_CONFIG, "config.json: %s: is not what %s says", gate,
              t->family->keys->activation);
}

static void put_activation(struct whole_translation *t) {
  const char *key = t->family->keys->activation, *before = t->family->keys->gated;
  const json_t *value = json_object_get(t->config, key);
  if (t->family->keys->activation_open && json_is_null(value)) value = NULL;
  const char *said = value ? json_string_value(value) : t->w->type->activation, *name = said;
  enum activation is;
  if (!said) {
    error_set(t->e, STATUS_CONFIG, "config.json: %s: needs a string, not %s", key,
              option_json_kind(value));
    return;
  }
  const bool gated = before && strncmp(said, before, strlen(before)) == 0;
  if (gated) name += strlen(before);
  if (gated && strcmp(name, "gelu") == 0) name = "gelu_new";
  if (!whole_settings_activation(name, &is)) {
    error_set(t->e, STATUS_CONFIG, "config.json: %s: \"%.60s\" is no activation that is served",
              key, said);
    return;
  }
  put(t, "activation", value ? key : NULL, json_string(name));
  if (gated) put(t, "gated", value ? key : NULL, json_true());
  if (before) check_gate(t, is, gated);
}

/* --- tokens --- */

/* NULL: none of the two documents says it; JSON's null is none. */
static json_t *said_token(const struct whole_translation *t, const char *key) {
  json_t *value = json_object_get(t->generation, key);
  return value ? value : json_object_get(t->config, key);
}

static void put_token(struct whole_translation *t, const char *word, const char *key,
                      int64_t otherwise) {
  json_t *value = json_object_get(t->generation, key);
  if (value)
    put_from(t->w, word, json_incref(value), "generation_config.json", key, t->e);
  else
    put_said(t, word, key, otherwise >= 0 ? json_integer(otherwise) : NULL);
}

/* How it goes on from a text. */
static void put_choice(struct whole_translation *t) {
  if (!t->generation) return;
  json_t *words = whole_choice_translate(t->generation, t->e);
  if (words) put(t, "generate", NULL, words);
}

static void put_tokens(struct whole_translation *t) {
  const struct whole_type *type = t->w->type;
  static const char start[] = "decoder_start_token_id";
  put_token(t, "begin", said_token(t, start) ? start : "bos_token_id", type->begin);
  put_token(t, "end", "eos_token_id", type->end);
  put_token(t, "pad", "pad_token_id", type->pad);
  put_token(t, "forced_begin", "forced_bos_token_id", -1);
  put_token(t, "forced_end", "forced_eos_token_id", type->forced_end);
}

/* Where a table of positions begins: the library leaves out the rows up to that of the pad. */
static void put_first(struct whole_translation *t) {
  const struct whole_type *type = t->w->type;
  const json_t *pad = json_object_get(t->config, "pad_token_id");
  size_t first = type->first_position;
  if (type->first_behind_pad)
    first = 1 + (size_t)(pad ? json_integer_value(pad) : (json_int_t)type->pad);
  if (type->first_behind_pad && pad &&
      (!json_is_integer(pad) || json_integer_value(pad) < 0 ||
       json_integer_value(pad) > COUNT_MOST))
    error_set(t->e, STATUS_CONFIG,
              "config.json: pad_token_id: needs a token, behind which positions begin");
  put(t, "first_position", NULL, json_integer((json_int_t)first));
}

/* --- what a row sees --- */

enum { LAYERS_NONE, LAYERS_SOME, LAYERS_ALL };

/* In which layers: those from max_window_layers on, or as layer_types has it. */
static int read_window_layers(struct whole_translation *t) {
  const json_t *types = json_object_get(t->config, "layer_types"), *one;
  const size_t layers = count_of(t, t->family->keys->layers, 1, 0);
  const size_t first = count_of(t, "max_window_layers", 0, t->w->type->window_asked ? 28 : 0);
  size_t slide = 0, i;
  if (!json_is_array(types))
    return first == 0 ? LAYERS_ALL : layers > 0 && first >= layers ? LAYERS_NONE : LAYERS_SOME;
  json_array_foreach(types, i, one) {
    const char *name = json_string_value(one);
    if (name && strcmp(name, "sliding_attention") == 0)
      slide++;
    else if (!name || strcmp(name, "full_attention") != 0)
      error_set(t->e, STATUS_CONFIG,
                "config.json: layer_types: needs \"full_attention\" and "
                "\"sliding_attention\" alone");
  }
  return slide == 0 ? LAYERS_NONE : slide == i ? LAYERS_ALL : LAYERS_SOME;
}

/* A row may see a stretch of those before it alone. */
static void read_window(struct whole_translation *t) {
  static const char key[] = "sliding_window";
  const struct whole_type *type = t->w->type;
  const bool null = json_is_null(json_object_get(t->config, key));
  const size_t window = null ? 0 : count_of(t, key, 1, type->window);
  if (window == 0 || !flag_of(t, "use_sliding_window", !type->window_asked)) return;
  const int layers = read_window_layers(t);
  if (!type->windows || layers == LAYERS_SOME)
    error_set(t->e, STATUS_CONFIG,
              "config.json: %s: has a value that is not served, which would change the answers; "
              "served is %s",
              key, type->windows ? "one for all layers" : "null");
  if (layers == LAYERS_ALL) t->w->window = window;
}

/* --- how positions turn queries and keys --- */

/* A number of the object that says how rotary positions are stretched. */
static double read_stretch_number(struct whole_translation *t, const char *all,
                                  const json_t *scaling, const char *key, double least) {
  const json_t *value = json_object_get(scaling, key);
  const double x = json_number_value(value);
  if (!json_is_number(value) || !(x >= least && x <= 1e9))
    error_set(t->e, STATUS_CONFIG, "config.json: %s: %s: needs a number of at least %g", all, key,
              least);
  return x;
}

/* False: the kind is not served. */
static bool read_stretch(struct whole_translation *t, const char *all, const json_t *scaling,
                         const char *kind) {
  struct layer_stretch *s = &t->w->rope_stretch;
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

static void read_rope(struct whole_translation *t) {
  static const char all[] = "rope_parameters", some[] = "rope_scaling";
  const json_t *parameters = json_object_get(t->config, all);
  const bool has_all = json_is_object(parameters);
  const json_t *scaling = has_all ? parameters : json_object_get(t->config, some);
  const json_t *kind = json_object_get(scaling, "rope_type");
  if (!kind) kind = json_object_get(scaling, "type");
  const char *where = has_all ? all : some;
  if (json_object_size(scaling) > 0 && (kind || !has_all) &&
      (!json_is_string(kind) || !read_stretch(t, where, scaling, json_string_value(kind))))
    error_set(t->e, STATUS_CONFIG,
              "config.json: %s: has a kind that is not served; served are default, linear and "
              "llama3",
              where);
  const char *key = t->family->keys->rope_base;
  const json_t *base = json_object_get(has_all ? parameters : t->config, key);
  t->w->rope_base = base ? json_number_value(base) : t->w->type->rope_base;
  if (base && !(json_is_number(base) && t->w->rope_base > 1 && t->w->rope_base <= 1e30))
    error_set(t->e, STATUS_CONFIG, "config.json: %s: needs a number above 1", key);
}

/* --- the whole --- */

static bool is_only(const json_t *value, const char *only) {
  if (!value || json_is_null(value)) return true;
  if (json_is_object(value) || json_is_array(value))
    return json_object_size(value) + json_array_size(value) == 0;
  if (json_is_boolean(value)) return strcmp(only, json_is_true(value) ? "true" : "false") == 0;
  if (json_is_string(value))
    return *only == '"' && strlen(only) == json_string_length(value) + 2 &&
           strncmp(only + 1, json_string_value(value), json_string_length(value)) == 0;
  return *only >= '0' && *only <= '9' && json_number_value(value) == strtod(only, NULL);
}

/* Some values stand beside what is about the encoder. */
static void check_guards(struct whole_translation *t) {
  for (size_t i = 0; i < whole_type_guard_count(); i++) {
    const struct whole_type_guard *g = whole_type_guard_at(i);
    if (g->family && strcmp(g->family, t->family->name) != 0) continue;
    if (g->but && strcmp(g->but, t->family->name) == 0) continue;
    if (g->rotary && t->family->rotary) continue;
    if (g->moot && json_is_false(json_object_get(t->config, g->moot))) continue;
    if (!is_only(json_object_get(t->config, g->key), g->only) ||
        !is_only(json_object_get(t->whole, g->key), g->only))
      error_set(t->e, STATUS_CONFIG,
                "config.json: %s: has a value that is not served, which would change the answers; "
                "served is %s",
                g->key, g->only);
  }
}

static void translate(struct whole_translation *t) {
  const struct whole_keys *keys = t->family->keys;
  const struct whole_type *type = t->w->type;
  check_guards(t);
  put_count(t, "layers", keys->layers, 0);
  put_count(t, "width", keys->width, 0);
  put_count(t, "heads", keys->heads, type->heads);
  if (type->head_size)
    put_count(t, "head_size", keys->head_size, type->head_size);
  else
    put_free_count(t, "head_size", keys->head_size);
  put_free_count(t, "kv_heads", keys->kv_heads);
  put_free_count(t, "feed_forward", keys->forward_size);
  put_count(t, "vocabulary", keys->vocabulary, 0);
  put_said(t, "norm_eps", keys->epsilon, json_real(type->epsilon));
  put_activation(t);
  if (t->family->gated) put(t, "gated", NULL, json_true());
  if (t->family->rotary) read_rope(t), read_window(t);
  put_first(t);
  put_tokens(t);
  put_choice(t);
  put_said(t, "scale_embedding", "scale_embedding", json_boolean(type->scaled_embedding));
  put_said(t, "tie_output", "tie_word_embeddings", json_boolean(!type->untied));
  t->w->positions = count_of(t, keys->positions, 1, 0);
  t->w->has_types = keys->types && json_object_get(t->config, keys->types);
  t->w->types = count_of(t, keys->types, 0, 0);
  t->w->buckets = count_of(t, keys->buckets, 1, 0);
  t->w->distance = count_of(t, keys->distance, 1, 0);
  if (type->may_part) t->w->apart = !flag_of(t, "share_encoder_decoder_embeddings", true);
}

static const struct whole_family *first_family(const char *name) {
  for (size_t i = 0; i < whole_family_count(); i++)
    if (strcmp(whole_family_at(i)->name, name) == 0) return whole_family_at(i);
  return NULL;
}

static enum status find_type(struct whole_words *w, const json_t *config, struct error *e) {
  const json_t *value = json_object_get(config, "model_type");
  const char *name = json_string_value(value);
  if (!name)
    return error_set(e, STATUS_CONFIG,
                     "config.json: has no model_type, which would tell the family; of a model of "
                     "one's own it is \"transformer\"");
  w->type = whole_type_find(name);
  if (!w->type) {
    char known[300];
    whole_type_list(known, sizeof known);
    return error_set(e, STATUS_CONFIG,
                     "config.json: model_type: \"%.60s\" is not known; served are %s", name, known);
  }
  if (!w->type->family)
    return error_set(e, STATUS_CONFIG, "config.json: model_type: %s %s", name, w->type->why);
  return STATUS_OK;
}

/* NULL: no memory, where json_copy would leave members out. */
static json_t *copy_object(const json_t *json) {
  json_t *copy = json_object();
  if (!copy || json_object_update(copy, (json_t *)json) == 0) return copy;
  json_decref(copy);
  return NULL;
}

/* A new object: what `encoder` says of itself stands where both stacks' is said. NULL: no memory.
 */
static json_t *flatten(const json_t *json) {
  json_t *copy = copy_object(json), *encoder = json_object_get(json, "encoder");
  if (copy && encoder && (json_object_update(copy, encoder) || json_object_del(copy, "encoder"))) {
    json_decref(copy);
    return NULL;
  }
  return copy;
}

/* A config.json in the words of a definition. */
static enum status copy_words(struct whole_words *w, const json_t *config, struct error *e) {
  struct whole_settings read;
  const char *word;
  json_t *value, *own = copy_object(config);
  json_object_del(own, "model_type");
  json_t *flat = own ? flatten(own) : NULL;
  if (!flat) error_set(e, STATUS_OUT_OF_MEMORY, "no memory for what config.json says");
  if (flat && whole_settings_read(&read, own, e)) text_before(e, "config.json: ");
  json_object_foreach(flat, word, value) {
    char key[WORD_SIZE + 16];
    const bool alone = json_object_get(json_object_get(own, "encoder"), word);
    snprintf(key, sizeof key, "%s%.32s", alone ? "encoder: " : "", word);
    put_from(w, word, json_incref(value), "config.json", key, e);
  }
  json_decref(flat);
  json_decref(own);
  return e->status;
}

enum status whole_words_make(struct whole_words *w, const json_t *config, const json_t *generation,
                             struct error *e) {
  *w = (struct whole_words){.words = json_object(), .from = json_object()};
  if (!w->words || !w->from) return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for words");
  if (!config || find_type(w, config, e)) return e->status;
  const json_t *tower = w->type->tower ? json_object_get(config, w->type->tower) : NULL;
  struct whole_translation t = {.w = w,
                                .whole = config,
                                .config = tower ? tower : config,
                                .generation = generation,
                                .family = first_family(w->type->family),
                                .e = e};
  must(t.family);
  if (!t.family->keys) return copy_words(w, config, e);
  translate(&t);
  struct whole_settings read;
  if (e->status == STATUS_OK && whole_settings_read(&read, w->words, e)) whole_words_blame(w, e);
  return e->status;
}

void whole_words_free(struct whole_words *w) {
  json_decref(w->words);
  json_decref(w->from);
  *w = (struct whole_words){0};
}

/* Writes a small value. */
static void write_value(const json_t *value, char *out, size_t size) {
  char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9) | JSON_COMPACT);
  snprintf(out, size, "%s", text ? text : "?");
  free(text);
}

/* Are both the same number, or the same value? */
static bool is_same(const json_t *a, const json_t *b) {
  if (json_is_number(a) && json_is_number(b)) return json_number_value(a) == json_number_value(b);
  return json_equal(a, b);
}

/* Notes that the definition says something else than what is known of the word. */
static void compare(const struct whole_words *w, const char *word, const json_t *value,
                    struct notes *n) {
  const json_t *known = json_object_get(w->words, word);
  const char *from = json_string_value(json_object_get(w->from, word));
  char here[40], there[40];
  if (!known || is_same(known, value)) return;
  write_value(value, here, sizeof here);
  write_value(known, there, sizeof there);
  if (from)
    notes_add(n, "%s is %s, but here %s is %s", from, there, word, here);
  else
    notes_add(n, "the family's %s is %s, but here it is %s", word, there, here);
}

enum status whole_words_override(struct whole_words *w, const json_t *definition, struct notes *n,
                                 struct error *e) {
  const char *word;
  json_t *value, *flat = flatten(definition);
  if (!flat) return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a definition");
  json_object_foreach(flat, word, value) {
    json_t *known = json_object_get(w->words, word);
    if (json_is_object(known) && json_is_object(value)) { /* of `generate` what is not said stays */
      if (json_object_update(known, value))
        error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a definition");
      continue;
    }
    compare(w, word, value, n);
    json_object_del(w->from, word);
    if (json_object_set(w->words, word, value) != 0)
      error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a definition");
  }
  json_decref(flat);
  return e->status;
}

enum status whole_words_blame(const struct whole_words *w, struct error *e) {
  char word[WORD_SIZE];
  const size_t length = strcspn(e->detail, ":");
  if (e->status != STATUS_CONFIG || length >= sizeof word) return e->status;
  snprintf(word, sizeof word, "%.*s", (int)length, e->detail);
  const char *from = json_string_value(json_object_get(w->from, word));
  if (!from) return e->status;
  memmove(e->detail, e->detail + length, strlen(e->detail + length) + 1);
  return text_before(e, "%s", from);
}
