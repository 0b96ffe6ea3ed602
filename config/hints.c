/* hints: reads config.json. */
#include "config/hints.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config/file.h"

enum { HEADS_MOST = 4096, DISTANCE_MOST = 1 << 20 };

enum status hints_read(struct hints *h, const char *path, struct error *why, struct error *e) {
  char *beside = file_beside(path, "config.json");
  struct stat about;
  h->config = NULL;
  if (!beside) return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a path");
  if (stat(beside, &about) == 0 && S_ISREG(about.st_mode)) h->config = file_json(beside, why);
  free(beside);
  if (h->config && !json_is_object(h->config)) {
    error_set(why, STATUS_CONFIG, "config.json: is no object");
    hints_free(h);
  }
  return why->status == STATUS_OUT_OF_MEMORY ? error_set(e, why->status, "%s", why->detail)
                                             : STATUS_OK;
}

void hints_free(struct hints *h) {
  json_decref(h->config);
  h->config = NULL;
}

/* What a key says of such a layer: towers have an object of their own, and so has the language
 * model among them. */
static const json_t *look(const struct hints *h, const char *label, const char *key) {
  const char *tower = strcmp(label, "vision") == 0 ? "vision_config" : "text_config";
  const json_t *value = json_object_get(json_object_get(h->config, tower), key);
  return value ? value : json_object_get(h->config, key);
}

static size_t count_of(const struct hints *h, const char *label, const char *key, json_int_t most) {
  const json_t *value = look(h, label, key);
  const json_int_t number = json_integer_value(value);
  return number > 0 && number <= most ? (size_t)number : 0;
}

size_t hints_heads(const struct hints *h, const char *label) {
  static const char *const keys[] = {"num_attention_heads", "num_heads", "n_head", "n_heads"};
  size_t heads = 0;
  if (strcmp(label, "encoder") == 0)
    heads = count_of(h, label, "encoder_attention_heads", HEADS_MOST);
  if (strcmp(label, "decoder") == 0)
    heads = count_of(h, label, "decoder_attention_heads", HEADS_MOST);
  for (size_t i = 0; i < sizeof keys / sizeof *keys && !heads; i++)
    heads = count_of(h, label, keys[i], HEADS_MOST);
  return heads;
}

size_t hints_kv_heads(const struct hints *h, const char *label) {
  return count_of(h, label, "num_key_value_heads", HEADS_MOST);
}

double hints_rope_base(const struct hints *h, const char *label) {
  const json_t *base = look(h, label, "rope_theta");
  if (!base) base = json_object_get(look(h, label, "rope_parameters"), "rope_theta");
  const double number = json_number_value(base);
  return number > 1 && number <= 1e12 ? number : 0;
}

size_t hints_distance(const struct hints *h, const char *label) {
  return count_of(h, label, "relative_attention_max_distance", DISTANCE_MOST);
}

bool hints_text_sees_all(const struct hints *h) {
  const char *type = json_string_value(json_object_get(h->config, "model_type"));
  return type && strncmp(type, "siglip", 6) == 0;
}

/* --- what is not served --- */

static bool is_plain_rope(const json_t *parameters) {
  const json_t *type = json_object_get(parameters, "rope_type");
  if (!type) type = json_object_get(parameters, "type");
  const char *word = json_string_value(type);
  return !word || strcmp(word, "default") == 0;
}

/* Null, false, zero and one are what a key says that changes nothing. */
static bool changes_nothing(const json_t *value) {
  const double number = json_number_value(value);
  return !value || json_is_null(value) || json_is_false(value) ||
         (json_is_number(value) && (!(number < 0 || number > 0) || !(number < 1 || number > 1)));
}

const char *hints_unserved(const struct hints *h, const char *label, size_t index) {
  static const char *const keys[] = {"rope_scaling",           "rope_parameters",
                                     "sliding_window",         "partial_rotary_factor",
                                     "attn_logit_softcapping", "query_pre_attn_scalar",
                                     "attention_multiplier",   "scale_attn_by_inverse_layer_idx"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    const json_t *value = look(h, label, keys[i]);
    if (changes_nothing(value)) continue;
    if (strncmp(keys[i], "rope_", 5) == 0 && is_plain_rope(value)) continue;
    if (strcmp(keys[i], "sliding_window") == 0 &&
        json_is_false(look(h, label, "use_sliding_window")))
      continue;
    if (index-- == 0) return keys[i];
  }
  return NULL;
}
