/* whole_translation: values in config.json that definitions do not have. */
#include "config/describe/whole_translation.h"

#include "config/settings/option.h"

size_t whole_translation_count(struct whole_translation *t, const char *key, size_t low,
                               size_t otherwise) {
  const json_t *value = key ? json_object_get(t->config, key) : NULL;
  const json_int_t number = json_integer_value(value);
  if (!value) return otherwise;
  if (!json_is_integer(value) || number < (json_int_t)low || number > WHOLE_TRANSLATION_MOST)
    error_set(t->e, STATUS_CONFIG, "config.json: %s: needs an integer from %zu to %d", key, low,
              WHOLE_TRANSLATION_MOST);
  return (size_t)number;
}

double whole_translation_number(struct whole_translation *t, const char *key, double otherwise) {
  const json_t *value = key ? json_object_get(t->config, key) : NULL;
  const double number = json_number_value(value);
  if (!value) return otherwise;
  if (!json_is_number(value) || !(number >= 1e-6 && number <= 1e9))
    error_set(t->e, STATUS_CONFIG, "config.json: %s: needs a number from 1e-6 to 1e9", key);
  return number;
}

bool whole_translation_flag(struct whole_translation *t, const char *key, bool otherwise) {
  const json_t *value = json_object_get(t->config, key);
  if (!value) return otherwise;
  if (!json_is_boolean(value))
    error_set(t->e, STATUS_CONFIG, "config.json: %s: needs true or false, not %s", key,
              option_json_kind(value));
  return json_is_true(value);
}

size_t whole_translation_head_size(const struct whole_translation *t) {
  const struct whole_keys *k = t->family->keys;
  const json_t *size = k->head_size ? json_object_get(t->config, k->head_size) : NULL;
  const json_t *heads = json_object_get(t->config, k->own.heads);
  const json_int_t width = json_integer_value(json_object_get(t->config, k->width));
  const json_int_t count = heads ? json_integer_value(heads) : (json_int_t)t->w->type->heads;
  if (json_is_integer(size)) return (size_t)json_integer_value(size);
  if (t->w->type->head_size) return t->w->type->head_size;
  return width > 0 && count > 0 ? (size_t)(width / count) : 0;
}

void whole_translation_refuse(const struct whole_translation *t, const char *key,
                              const char *only) {
  error_set(
      t->e, STATUS_CONFIG,
      "config.json: %s: has an unsupported value, which would change the outputs; supported: %s",
      key, only);
}
