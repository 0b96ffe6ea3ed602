/* hints: reads config.json, and finds the object in it that is about a layer. */
#include "config/describe/hints.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config/checkpoint/checkpoint.h"
#include "config/describe/definition.h"
#include "config/document/file.h"

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

/* Keys of the number of heads. The last two belong to one tower each; "heads" is the word of
 * definitions, which the config.json of a custom model has. */
static const char *const head_members[] = {
    "num_attention_heads",    "num_heads", "n_head", "n_heads", "heads", "encoder_attention_heads",
    "decoder_attention_heads"};
enum { HEAD_MEMBERS_OF_ALL = 5 };

static bool tells_heads(const json_t *object) {
  for (size_t i = 0; i < sizeof head_members / sizeof *head_members; i++)
    if (json_object_get(object, head_members[i])) return true;
  return false;
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

const json_t *hints_value(const struct hints *h, const struct hints_layer *at, const char *key) {
  return json_object_get(find_tower(h, at->address), key);
}

bool hints_ambiguous(const struct hints *h, const struct hints_layer *at) {
  return h->config && !find_tower(h, at->address);
}

/* A positive integer of at most `most`, or 0. */
static size_t hinted_count(const struct hints *h, const struct hints_layer *at, const char *key,
                           json_int_t most) {
  const json_int_t number = json_integer_value(hints_value(h, at, key));
  return number > 0 && number <= most ? (size_t)number : 0;
}

static bool is_labelled(const struct hints_layer *at, const char *label) {
  return at->family && strcmp(at->family->label, label) == 0;
}

size_t hints_heads(const struct hints *h, const struct hints_layer *at) {
  size_t heads = 0;
  if (is_labelled(at, "encoder"))
    heads = hinted_count(h, at, "encoder_attention_heads", DEFINITION_HEADS_MAX);
  if (is_labelled(at, "decoder"))
    heads = hinted_count(h, at, "decoder_attention_heads", DEFINITION_HEADS_MAX);
  for (size_t i = 0; i < HEAD_MEMBERS_OF_ALL && !heads; i++)
    heads = hinted_count(h, at, head_members[i], DEFINITION_HEADS_MAX);
  return heads;
}

size_t hints_kv_heads(const struct hints *h, const struct hints_layer *at) {
  const size_t heads = hinted_count(h, at, "num_key_value_heads", DEFINITION_HEADS_MAX);
  return heads ? heads : hinted_count(h, at, "kv_heads", DEFINITION_HEADS_MAX);
}

double hints_rope_base(const struct hints *h, const struct hints_layer *at) {
  const json_t *base = hints_value(h, at, "rope_theta");
  if (!base) base = json_object_get(hints_value(h, at, "rope_parameters"), "rope_theta");
  const double number = json_number_value(base);
  return number > 1 && number <= 1e12 ? number : 0;
}

size_t hints_distance(const struct hints *h, const struct hints_layer *at) {
  return hinted_count(h, at, "relative_attention_max_distance", DISTANCE_MOST);
}

const char *hints_type(const struct hints *h, const struct hints_layer *at) {
  const char *own = json_string_value(hints_value(h, at, "model_type"));
  return own ? own : json_string_value(json_object_get(h->config, "model_type"));
}

enum toggle hints_causal(const struct hints *h, const struct hints_layer *at) {
  const char *type = hints_type(h, at), *layout = at->family ? at->family->layout : "";
  if (at->family && at->family->cross) return TOGGLE_UNSAID;
  if (strcmp(layout, "clip") == 0 && is_labelled(at, "text") && type &&
      strncmp(type, "siglip", 6) == 0)
    return TOGGLE_OFF;
  if (strcmp(layout, "bert") == 0 && json_is_true(hints_value(h, at, "is_decoder")))
    return TOGGLE_ON;
  if (json_is_false(hints_value(h, at, "is_causal")) ||
      json_is_true(hints_value(h, at, "use_bidirectional_attention")))
    return TOGGLE_OFF;
  return TOGGLE_UNSAID;
}
