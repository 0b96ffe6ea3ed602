/* whole_translate: translates config.json, key by key. The first mistake is kept in `e`, and the
 * translation continues: it is not used then. */
#include "config/describe/whole_translate.h"

#include <stdio.h>
#include <string.h>

#include "config/describe/guard_value.h"
#include "config/describe/whole_choice.h"
#include "config/describe/whole_layers.h"
#include "config/describe/whole_settings.h"
#include "config/settings/option.h"

enum { SHARED_LAYERS = 12 /* of ALBERT, the default of transformers */ };

/* Sets a word of one stack, or of the model if `side` is NULL. `key` is NULL for a default. */
static void put_of(struct whole_translation *t, const char *side, const char *word, const char *key,
                   json_t *value) {
  whole_words_put(t->w, &(struct whole_word){side, word}, value,
                  &(struct whole_by){"config.json", key}, t->e);
}

static void put(struct whole_translation *t, const char *word, const char *key, json_t *value) {
  put_of(t, NULL, word, key, value);
}

/* Sets a word to the value of a key, which is checked later like a definition's; else to
 * `otherwise`, whose reference is taken, unless that is NULL. */
static void put_said(struct whole_translation *t, const char *side, const char *word,
                     const char *key, json_t *otherwise) {
  json_t *value = key ? json_object_get(t->config, key) : NULL;
  if (value) {
    json_decref(otherwise);
    put_of(t, side, word, key, json_incref(value));
  } else if (otherwise) {
    put_of(t, side, word, NULL, otherwise);
  }
}

/* --- values --- */

static void put_count(struct whole_translation *t, const char *side, const char *word,
                      const char *key, size_t otherwise) {
  put_said(t, side, word, key, otherwise ? json_integer((json_int_t)otherwise) : NULL);
}

/* Sets a size that each stack has. If the decoder has a key of its own, the other key is about the
 * encoder alone, unless the family takes it as the decoder's default. */
static void put_size(struct whole_translation *t, const char *word, const char *key,
                     const char *decoder_key, size_t otherwise) {
  const json_t *value = decoder_key ? json_object_get(t->config, decoder_key) : NULL;
  const bool follows = !decoder_key || t->family->keys->follows;
  put_count(t, follows ? NULL : whole_settings_side(WHOLE_ENCODER), word, key, otherwise);
  if (!follows || (value && !json_is_null(value)))
    put_count(t, whole_settings_side(WHOLE_DECODER), word, decoder_key, otherwise);
}

/* Sets a count that follows from the other sizes if its key is null. */
static void put_free_count(struct whole_translation *t, const char *word, const char *key) {
  if (!json_is_null(json_object_get(t->config, key))) put_count(t, NULL, word, key, 0);
}

/* Checks two keys that transformers derives from the name of the activation. */
static void check_gate(struct whole_translation *t, enum activation is, bool gated) {
  static const char act[] = "dense_act_fn", gate[] = "is_gated_act";
  const json_t *value = json_object_get(t->config, act);
  enum activation said;
  if (value && (!json_is_string(value) ||
                !whole_settings_activation(json_string_value(value), &said) || said != is))
    error_set(t->e, STATUS_CONFIG, "config.json: %s: is not what %s says", act,
              t->family->keys->activation);
  if (whole_translation_flag(t, gate, gated) != gated)
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
  for (const struct whole_alias *a = t->family->keys->alias; a && a->name; a++)
    if (strcmp(said, a->name) == 0) name = a->is;
  const bool gated = before && strncmp(name, before, strlen(before)) == 0;
  if (gated) name += strlen(before);
  /* An alias is about the layers. */
  if (t->family->keys->alias)
    t->w->has_head_activation = whole_settings_activation(said, &t->w->head_activation);
  if (!whole_settings_activation(name, &is)) {
    error_set(t->e, STATUS_CONFIG, "config.json: %s: \"%.60s\" is not a supported activation", key,
              said);
    return;
  }
  put(t, "activation", value ? key : NULL, json_string(name));
  if (gated) put(t, "gated", value ? key : NULL, json_true());
  if (before) check_gate(t, is, gated);
}

/* Reads the activation of the heads, in a family whose config.json has it. */
static void read_head_activation(struct whole_translation *t) {
  const char *key = t->family->keys->head_activation;
  const json_t *value = json_object_get(t->config, key);
  const char *said = value ? json_string_value(value) : t->family->class_activation;
  t->w->has_head_activation = said && whole_settings_activation(said, &t->w->head_activation);
  if (!t->w->has_head_activation)
    error_set(t->e, STATUS_CONFIG, "config.json: %s: \"%.60s\" is not a supported activation", key,
              said ? said : option_json_kind(value));
}

/* --- tokens --- */

/* Sets a token from either document, or to `otherwise` unless that is negative. */
static void put_token(struct whole_translation *t, const char *word, const char *key,
                      int64_t otherwise) {
  json_t *value = json_object_get(t->of->generation, key);
  if (value)
    whole_words_put(t->w, &(struct whole_word){NULL, word}, json_incref(value),
                    &(struct whole_by){"generation_config.json", key}, t->e);
  else
    put_said(t, NULL, word, key, otherwise >= 0 ? json_integer(otherwise) : NULL);
}

/* --- the direction of attention --- */

/* Reads whether a decoder attends in both directions, as an encoder does. */
static void read_direction(struct whole_translation *t) {
  static const char one[] = "is_causal", both[] = "use_bidirectional_attention";
  const bool says =
      !json_is_null(json_object_get(t->config, both)) && whole_translation_flag(t, both, false);
  if (says && !t->w->type->both_ways) whole_translation_refuse(t, both, "false");
  t->w->both_ways = says || (!json_is_null(json_object_get(t->config, one)) &&
                             !whole_translation_flag(t, one, true));
}

/* --- the document --- */

/* Is it a key that the family reads itself: for its kinds of layers, or for its scores? */
static bool reads(const struct whole_keys *keys, const char *key) {
  const char *const own[] = {keys->window, keys->rotated, keys->score_scalar, keys->score_cap,
                             keys->logit_cap};
  bool reads = false;
  for (size_t i = 0; i < sizeof own / sizeof *own; i++) reads |= own[i] && strcmp(own[i], key) == 0;
  return reads;
}

/* Rejects values that would change what is computed. Some are outside the member about the model,
 * or within the objects about rotary positions. */
static void check_guards(struct whole_translation *t) {
  const struct whole_family *f = t->family;
  const json_t *rope = json_object_get(t->config, "rope_parameters");
  const json_t *const places[] = {t->config, t->of->config, rope,
                                  json_object_get(rope, "full_attention"),
                                  json_object_get(rope, "sliding_attention")};
  const size_t head_size = whole_translation_head_size(t);
  for (size_t i = 0; i < guard_count(); i++) {
    const struct guard *g = guard_at(i);
    if (g->models == GUARD_NO_MODEL) continue;
    if (g->family && strcmp(g->family, f->name) != 0) continue;
    if (reads(f->keys, g->key)) continue;
    if (g->models && (g->models == GUARD_DECODERS) != f->decodes) continue;
    if (g->rotary && f->rotary) continue;
    if (g->moot && json_is_false(json_object_get(t->config, g->moot))) continue;
    for (size_t j = 0; j < sizeof places / sizeof *places; j++)
      if (!guard_value_is(g, json_object_get(places[j], g->key), head_size))
        whole_translation_refuse(t, g->key, g->only);
  }
}

/* Reads a cap, which null takes away. */
static double cap_of(struct whole_translation *t, const char *key, double otherwise) {
  if (key && json_is_null(json_object_get(t->config, key))) return 0;
  return whole_translation_number(t, key, otherwise);
}

/* Reads how scores and logits are scaled and capped. */
static void read_scores(struct whole_translation *t) {
  const struct whole_keys *keys = t->family->keys;
  const struct whole_type *type = t->w->type;
  t->w->score_scalar = whole_translation_number(t, keys->score_scalar, type->score_scalar);
  t->w->score_cap = cap_of(t, keys->score_cap, type->score_cap);
  t->w->logit_cap = cap_of(t, keys->logit_cap, type->logit_cap);
}

/* Reads which layers share parameters. */
static void read_sharing(struct whole_translation *t) {
  const struct whole_keys *keys = t->family->keys;
  struct whole_words *w = t->w;
  w->outer = whole_translation_count(t, keys->own.layers, 1, SHARED_LAYERS);
  w->groups = whole_translation_count(t, keys->groups, 1, 1);
  w->inner = whole_translation_count(t, keys->inner, 1, 1);
  if (w->groups > w->outer)
    error_set(t->e, STATUS_CONFIG, "config.json: %s: %zu for %zu layers", keys->groups, w->groups,
              w->outer);
}

static void translate(struct whole_translation *t) {
  const struct whole_keys *keys = t->family->keys;
  const struct whole_side_keys *own = &keys->own, *decoder = &keys->decoder;
  const struct whole_type *type = t->w->type;
  check_guards(t);
  put_size(t, "layers", own->layers, decoder->layers, t->family->shared ? SHARED_LAYERS : 0);
  put_size(t, "heads", own->heads, decoder->heads, type->heads);
  if (!json_is_null(json_object_get(t->config, own->forward_size)))
    put_size(t, "feed_forward", own->forward_size, decoder->forward_size, 0);
  put_count(t, NULL, "width", keys->width, 0);
  if (type->head_size)
    put_count(t, NULL, "head_size", keys->head_size, type->head_size);
  else
    put_free_count(t, "head_size", keys->head_size);
  put_free_count(t, "kv_heads", keys->kv_heads);
  put_count(t, NULL, "vocabulary", keys->vocabulary, 0);
  put_said(t, NULL, "norm_eps", keys->epsilon, json_real(type->epsilon));
  put_activation(t);
  if (keys->head_activation) read_head_activation(t);
  if (t->family->gated) put(t, "gated", NULL, json_true());
  if (t->family->ends) put(t, "pool", NULL, json_string("pooler"));
  if (t->family->decodes && t->family->rotary) read_direction(t);
  t->w->positions = whole_translation_count(t, keys->positions, 1, 0);
  if (t->family->rotary) whole_layers_read(t);
  if (t->family->disentangled) whole_layers_read_disentangled(t);
  if (t->family->stem[WHOLE_CONVOLUTION]) whole_layers_read_convolution(t);
  if (!t->family->layer) { /* a module of sentence-transformers has no such key */
    put(t, "pool", NULL, json_string("mean"));
    const bool unsaid = json_is_null(json_object_get(t->config, "normalize"));
    if (!t->of->type) put_said(t, NULL, "normalize", unsaid ? NULL : "normalize", json_false());
  }

  /* The first position. Some types skip the rows of the table up to the padding token's. */
  const json_t *pad = json_object_get(t->config, "pad_token_id");
  const json_int_t padding = pad ? json_integer_value(pad) : (json_int_t)type->pad;
  if (type->first_behind_pad && pad &&
      (!json_is_integer(pad) || padding < 0 || padding > WHOLE_TRANSLATION_MOST))
    error_set(t->e, STATUS_CONFIG,
              "config.json: pad_token_id: needs a token, after which positions begin");
  const size_t first = type->first_behind_pad ? 1 + (size_t)padding : type->first_position;
  put(t, "first_position", NULL, json_integer((json_int_t)first));

  static const char start[] = "decoder_start_token_id";
  const bool starts =
      json_object_get(t->of->generation, start) || json_object_get(t->config, start);
  put_token(t, "begin", starts ? start : "bos_token_id", type->begin);
  put_token(t, "end", "eos_token_id", type->end);
  put_token(t, "pad", "pad_token_id", type->pad);
  put_token(t, "forced_begin", "forced_bos_token_id", -1);
  put_token(t, "forced_end", "forced_eos_token_id", type->forced_end);
  /* How text is generated: generation_config.json replaces config.json. */
  const json_t *generation = t->of->generation;
  const struct whole_generating said = {.said = generation ? generation : t->of->config,
                                        .document =
                                            generation ? "generation_config.json" : "config.json",
                                        .pair = t->family->decoder};
  const bool generates = t->family->decoder || (t->family->decodes && !t->w->both_ways);
  json_t *words = generates ? whole_choice_translate(&said, t->notes, t->e) : NULL;
  if (words) put(t, "generate", NULL, words);

  put_said(t, NULL, "scale_embedding", "scale_embedding", json_boolean(type->scaled_embedding));
  put_said(t, NULL, "tie_output", "tie_word_embeddings", json_boolean(!type->untied));
  t->w->has_types = keys->types && json_object_get(t->config, keys->types);
  t->w->types = whole_translation_count(t, keys->types, 0, 0);
  t->w->buckets = whole_translation_count(t, keys->buckets, 1, 0);
  t->w->distance = whole_translation_count(t, keys->distance, 1, 0);
  t->w->embedded = whole_translation_count(t, keys->embedded, 1, 0);
  read_scores(t);
  if (t->family->shared) read_sharing(t);
  if (type->may_part)
    t->w->apart = !whole_translation_flag(t, "share_encoder_decoder_embeddings", true);
  if (t->w->apart) t->w->target_vocabulary = whole_translation_count(t, "decoder_vocab_size", 1, 0);
}

/* The member of config.json about a tower. Older files also have "text_config_dict", whose values
 * and defaults override those of "text_config". */
static const json_t *tower_of(const json_t *config, const char *key) {
  char older[40];
  snprintf(older, sizeof older, "%s_dict", key);
  const json_t *dict = json_object_get(config, older);
  return json_is_object(dict) ? dict : json_object_get(config, key);
}

/* Is it the member about the tower of this name? "text_config" is that of "text". */
static bool is_tower(const char *key, const char *name) {
  const size_t length = strlen(name);
  return strncmp(key, name, length) == 0 && strcmp(key + length, "_config") == 0;
}

enum status whole_translate(struct whole_words *w, const struct whole_documents *of,
                            struct notes *n, struct error *e) {
  if (whole_words_init(w, e)) return e->status;
  if (!of->config && !of->type)
    return of->tower ? error_set(e, STATUS_CONFIG, "tower: requires a config.json") : STATUS_OK;
  const char *name =
      of->type ? of->type : json_string_value(json_object_get(of->config, "model_type"));
  if (!name)
    return error_set(e, STATUS_CONFIG,
                     "config.json: no model_type; for a custom model set it to \"transformer\"");
  const json_t *positions = json_object_get(of->config, "position_embedding_type");
  w->type = whole_type_find(name, of->tower ? of->tower : json_string_value(positions));
  if (!w->type) {
    char known[WHOLE_TYPE_LIST_SIZE];
    whole_type_list(known, sizeof known);
    return error_set(e, STATUS_CONFIG,
                     "config.json: unsupported model_type \"%.60s\"; supported: %s", name, known);
  }
  if (!w->type->family)
    return error_set(e, STATUS_CONFIG, "config.json: model_type: %s %s", name, w->type->why);
  if (of->tower && !w->type->tower)
    return error_set(e, STATUS_CONFIG, "tower: a model of model_type %s has only one", name);
  if (of->tower && !is_tower(w->type->tower, of->tower))
    return error_set(e, STATUS_CONFIG, "tower: \"%.60s\" of model_type %s is not supported",
                     of->tower, name);
  const struct whole_family *family = whole_family_find(w->type->family);
  must(family != NULL);
  if (!family->keys) return whole_words_copy(w, of->config, e);

  const json_t *tower = w->type->tower ? tower_of(of->config, w->type->tower) : NULL;
  struct whole_settings read;
  translate(&(struct whole_translation){.w = w,
                                        .of = of,
                                        .config = tower ? tower : of->config,
                                        .family = family,
                                        .notes = n,
                                        .e = e});
  if (e->status == STATUS_OK && whole_settings_read(&read, w->words, e))
    whole_words_blame(w, true, e);
  return e->status;
}
