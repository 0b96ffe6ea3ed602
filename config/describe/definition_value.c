/* definition_value: a function for each kind of value. */
#include "config/describe/definition_value.h"

#include <stdio.h>
#include <string.h>

#include "config/document/nearest.h"
#include "config/document/text.h"
#include "config/settings/option.h"

void definition_value_refuse(const char *key, const char *wanted, const json_t *value,
                             struct error *e) {
  error_set(e, STATUS_CONFIG, "%s: needs %s, not %s", key, wanted, option_json_kind(value));
}

/* --- values --- */

void definition_value_count(const json_t *json, const char *key, size_t low, size_t high,
                            size_t *out, struct error *e) {
  const json_t *value = json_object_get(json, key);
  if (!value) return;
  json_int_t number = json_integer_value(value);
  if (!json_is_integer(value)) {
    definition_value_refuse(key, "an integer", value, e);
  } else if (number < (json_int_t)low || number > (json_int_t)high) {
    error_set(e, STATUS_CONFIG, "%s: %" JSON_INTEGER_FORMAT " is outside %zu to %zu", key, number,
              low, high);
  } else {
    *out = (size_t)number;
  }
}

void definition_value_toggle(const json_t *json, const char *key, enum toggle *out,
                             struct error *e) {
  const json_t *value = json_object_get(json, key);
  if (!value) return;
  if (!json_is_boolean(value)) definition_value_refuse(key, "true or false", value, e);
  *out = json_is_true(value) ? TOGGLE_ON : TOGGLE_OFF;
}

void definition_value_string(const json_t *json, const char *key, const char **out,
                             struct error *e) {
  const json_t *value = json_object_get(json, key);
  if (!value) return;
  if (!json_is_string(value)) definition_value_refuse(key, "a string", value, e);
  *out = json_string_value(value);
}

void definition_value_choice(const json_t *json, const char *key, const char *const *choices,
                             const char **out, struct error *e) {
  const char *word = NULL;
  char words[160] = "";
  size_t used = 0;
  *out = choices[0];
  definition_value_string(json, key, &word, e);
  if (!word) return;
  for (const char *const *choice = choices; *choice; choice++) {
    if (strcmp(*choice, word) == 0) {
      *out = *choice;
      return;
    }
    if (used < sizeof words)
      used +=
          (size_t)snprintf(words + used, sizeof words - used, "%s%s", used ? ", " : "", *choice);
  }
  error_set(e, STATUS_CONFIG, "%s: \"%.60s\" is not one of %s", key, word, words);
}

bool definition_value_lists(const json_t *json, const char *key, const char *end) {
  const json_t *all = json_object_get(json, key), *one;
  size_t i;
  json_array_foreach((json_t *)all, i, one) {
    const char *text = json_string_value(one);
    if (text && text_ends_with(text, end)) return true;
  }
  return false;
}

bool definition_value_compute(const json_t *json, enum compute *out, struct error *e) {
  const char *word;
  if (!json_object_get(json, "compute")) return false;
  definition_value_choice(json, "compute", compute_names, &word, e);
  for (enum compute i = 0; i < COMPUTE_COUNT; i++)
    if (word == compute_names[i]) *out = i;
  return e->status == STATUS_OK;
}

void definition_value_seed(const json_t *json, bool *random, uint64_t *out, struct error *e) {
  const json_t *value = json_object_get(json, "random");
  if (!value) return;
  const json_t *seed = json_object_get(value, "seed");
  json_int_t number = json_integer_value(seed);
  if (!json_is_object(value)) {
    definition_value_refuse("random", "an object", value, e);
  } else if (!json_is_integer(seed) || json_object_size(value) != 1 || number < 0 ||
             number >= (json_int_t)1 << 53) {
    error_set(e, STATUS_CONFIG, "random: needs {\"seed\": n} with an integer from 0 to 2^53 - 1");
  }
  *random = true;
  *out = (uint64_t)number;
}

/* --- keys --- */

void definition_value_names_called(const json_t *json, const char *const *known,
                                   definition_value_called *called, struct error *e) {
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)json, key, value) {
    char hint[NEAREST_HINT], word[DEFINITION_CALLED];
    struct nearest near;
    nearest_init(&near, key);
    const char *const *k = known;
    for (; *k && strcmp(key, *k) != 0; k++) nearest_offer(&near, *k);
    if (*k) continue;
    if (called && called(key, word))
      error_set(e, STATUS_CONFIG, "unknown key \"%.60s\"; here it is %s", key, word);
    else
      error_set(e, STATUS_CONFIG, "unknown key \"%.60s\"%s", key, nearest_hint(&near, hint));
  }
}

void definition_value_names(const json_t *json, const char *const *known, struct error *e) {
  definition_value_names_called(json, known, NULL, e);
}
