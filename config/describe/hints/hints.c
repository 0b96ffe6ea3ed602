/* hints: reads config.json, and finds the object in it that is about a layer. */
#include "config/describe/hints/hints.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config/checkpoint/checkpoint.h"
#include "config/describe/definition.h"
#include "config/document/file.h"
#include "config/family/whole_type.h"

enum { DISTANCE_MOST = 1 << 20 };

enum status hints_read(struct hints *h, const char *path, struct error *why, struct error *e) {
  char *beside = file_beside(path, "config.json");
  struct stat about;
  h->config = NULL;
  if (!beside) return error_no_memory(e);
  if (stat(beside, &about) == 0 && S_ISREG(about.st_mode)) h->config = file_json(beside, why);
  free(beside);
  if (h->config && !json_is_object(h->config)) {
    error_set(why, STATUS_CONFIG, "config.json: is not an object");
    hints_free(h);
  }
  return why->status == STATUS_OUT_OF_MEMORY ? error_set(e, why->status, "%s", why->detail)
                                             : STATUS_OK;
}

void hints_free(struct hints *h) {
  json_decref(h->config);
  h->config = NULL;
}

/* --- towers --- */

static bool is_one_of(const char *word, size_t length, const char *const *words) {
  for (; *words; words++)
    if (strlen(*words) == length && strncmp(*words, word, length) == 0) return true;
  return false;
}

/* May one word in config.json and the other in tensors' names mean the same tower? */
static bool mean_the_same(const char *a, size_t a_length, const char *b, size_t b_length) {
  static const char *const called[][5] = {{"vision", "visual", "image", NULL},
                                          {"text", "language", "llm", "lm", NULL},
                                          {"audio", "speech", NULL}};
  if (a_length == b_length && strncmp(a, b, a_length) == 0) return true;
  for (size_t i = 0; i < sizeof called / sizeof *called; i++)
    if (is_one_of(a, a_length, called[i]) && is_one_of(b, b_length, called[i])) return true;
  return false;
}

/* Does a word of the address, such as "vision_tower" or "vision", name the tower with this key? The
 * stem of the key counts: "vision" of "vision_config", all of "text_encoder". */
static bool names_tower(const char *word, const char *key) {
  static const char end[] = "_config";
  const size_t length = strlen(key), tail = sizeof end - 1;
  const bool cut = length > tail && strcmp(key + length - tail, end) == 0;
  const size_t whole = strcspn(word, "."), first = strcspn(word, "._");
  const size_t stem = cut ? length - tail : length;
  return mean_the_same(word, whole, key, stem) || mean_the_same(word, first, key, stem);
}

/* The value of the first key that one of the families has at this offset of struct whole_keys. */
static const json_t *find_key(const json_t *object, size_t offset) {
  for (size_t i = 0; i < whole_family_count(); i++) {
    const struct whole_keys *k = whole_family_at(i)->keys;
    const char *key = k ? *(const char *const *)((const char *)k + offset) : NULL;
    const json_t *value = key ? json_object_get(object, key) : NULL;
    if (value) return value;
  }
  return NULL;
}

static bool tells_heads(const json_t *object) {
  return find_key(object, offsetof(struct whole_keys, own.heads)) ||
         find_key(object, offsetof(struct whole_keys, decoder.heads)) ||
         json_object_get(object, "heads");
}

static bool is_tower(const json_t *value) {
  return json_is_object(value) && (tells_heads(value) || json_object_get(value, "model_type"));
}

/* The object about the layer at this address; the whole document if it has no towers; NULL:
 * unknown. */
static const json_t *find_tower(const struct hints *h, const char *address) {
  const char *key;
  json_t *value;
  for (const char *word = address; *word; word += strcspn(word, "."), word += *word == '.')
    json_object_foreach(h->config, key,
                        value) if (is_tower(value) && names_tower(word, key)) return value;
  size_t towers = 0;
  json_object_foreach(h->config, key, value) { towers += is_tower(value); }
  const json_t *text = json_object_get(h->config, "text_config");
  if (towers == 1 && is_tower(text)) return text;
  return towers == 0 || tells_heads(h->config) ? h->config : NULL;
}

/* --- values --- */

/* A positive integer of at most `most`, or 0. */
static size_t count_of(const json_t *value, json_int_t most) {
  const json_int_t number = json_integer_value(value);
  return number > 0 && number <= most ? (size_t)number : 0;
}

/* The count under the key that one of the families has at this offset of struct whole_keys, or 0.
 * Keys about one of two stacks are left out: the layer's own family has them. */
static size_t count_under(const json_t *object, size_t offset, json_int_t most) {
  size_t count = 0;
  for (size_t i = 0; i < whole_family_count() && !count; i++) {
    const struct whole_keys *k = whole_family_at(i)->keys;
    const char *key =
        k && !k->decoder.heads ? *(const char *const *)((const char *)k + offset) : NULL;
    if (key) count = count_of(json_object_get(object, key), most);
  }
  return count;
}

/* Reads the heads of one of two stacks, or those of a model. */
static size_t read_heads(const json_t *object, const struct hints_layer *at) {
  const struct whole_family *names = at->family ? at->family->names : NULL;
  const struct whole_keys *k = names ? names->keys : NULL;
  size_t heads = 0;
  if (k && k->decoder.heads)
    heads = count_of(json_object_get(object, names->decodes ? k->decoder.heads : k->own.heads),
                     DEFINITION_HEADS_MAX);
  if (!heads)
    heads = count_under(object, offsetof(struct whole_keys, own.heads), DEFINITION_HEADS_MAX);
  return heads ? heads : count_of(json_object_get(object, "heads"), DEFINITION_HEADS_MAX);
}

/* Is it the type of a family of encoders alone? Models that take rows may have a decoder that is not
 * served, as Whisper's. */
static bool only_encodes(const char *name) {
  const struct whole_type *type = name ? whole_type_find(name, NULL) : NULL;
  const struct whole_family *family = type && type->family ? whole_family_find(type->family) : NULL;
  return family && family->keys && !family->decodes && !family->decoder && !family->rows_only;
}

static enum toggle read_causal(const struct hints_said *s, const struct hints_layer *at) {
  const struct layout_family *f = at->family;
  if (f && f->cross) return TOGGLE_UNSAID;
  if (f && f->names->decodes && only_encodes(s->type)) return TOGGLE_OFF;
  if (f && f->not_causal && s->type && strncmp(s->type, f->not_causal, strlen(f->not_causal)) == 0)
    return TOGGLE_OFF;
  if (f && f->may_decode && json_is_true(json_object_get(s->config, "is_decoder")))
    return TOGGLE_ON;
  if (json_is_false(json_object_get(s->config, "is_causal")) ||
      json_is_true(json_object_get(s->config, "use_bidirectional_attention")))
    return TOGGLE_OFF;
  return TOGGLE_UNSAID;
}

struct hints_said hints_of(const struct hints *h, const struct hints_layer *at) {
  const json_t *config = find_tower(h, at->address);
  struct hints_said s = {.config = config, .ambiguous = h->config && !config};
  s.type = json_string_value(json_object_get(config, "model_type"));
  if (!s.type) s.type = json_string_value(json_object_get(h->config, "model_type"));
  s.heads = read_heads(config, at);
  s.kv_heads = count_under(config, offsetof(struct whole_keys, kv_heads), DEFINITION_HEADS_MAX);
  if (!s.kv_heads) s.kv_heads = count_of(json_object_get(config, "kv_heads"), DEFINITION_HEADS_MAX);
  s.distance = count_under(config, offsetof(struct whole_keys, distance), DISTANCE_MOST);
  const size_t rope = offsetof(struct whole_keys, rope_base);
  const json_t *base = find_key(config, rope);
  if (!base) base = find_key(json_object_get(config, "rope_parameters"), rope);
  const double number = json_number_value(base);
  s.rope_base = number > 1 && number <= 1e12 ? number : 0;
  s.causal = read_causal(&s, at);
  return s;
}
