/* member: reads one member at a time. */
#include "config/document/member.h"

#include <stdio.h>
#include <string.h>

#include "config/document/nearest.h"
#include "config/document/text.h"
#include "core/base/size.h"

enum { LIST_MOST = 400 }; /* bytes of the names in a message */

/* --- types --- */

static void refuse_type(const char *name, const struct member_type *type, size_t count,
                        struct error *e) {
  struct nearest near;
  char hint[NEAREST_HINT], known[LIST_MOST] = "";
  size_t used = 0;
  nearest_init(&near, name);
  for (size_t i = 0; i < count; i++) {
    nearest_offer(&near, type[i].name);
    used += (size_t)snprintf(known + used, sizeof known - used, "%s%s",
                             i == 0          ? ""
                             : i + 1 < count ? ", "
                                             : " and ",
                             type[i].name);
    must(used < sizeof known);
  }
  error_set(e, STATUS_CONFIG, "the type \"%.60s\" is not supported%s; supported: %s", name,
            nearest_hint(&near, hint), known);
}

static bool is_member(const char *key, const char *members) {
  const size_t length = strlen(key);
  for (const char *at = members; *at; at += strcspn(at, " ") + 1)
    if (strncmp(at, key, length) == 0 && at[length] == ' ') return true;
  return false;
}

void member_known(const json_t *json, const char *members, struct error *e) {
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)json, key, value) {
    if (strcmp(key, "type") == 0 || is_member(key, members)) continue;
    struct nearest near;
    char hint[NEAREST_HINT], copy[LIST_MOST];
    nearest_init(&near, key);
    snprintf(copy, sizeof copy, "%s", members);
    for (char *at = copy, *end; (end = strchr(at, ' ')); at = end + 1) {
      *end = '\0';
      nearest_offer(&near, at);
    }
    error_set(e, STATUS_CONFIG, "the member \"%.60s\" is not known%s", key,
              nearest_hint(&near, hint));
  }
}

size_t member_type(const json_t *json, const struct member_type *type, size_t count,
                   struct error *e) {
  const char *name = json_string_value(json_object_get(json, "type"));
  size_t found = 0;
  if (!json_is_object(json)) error_set(e, STATUS_CONFIG, "is not an object");
  if (!name) member_refuse(json, "type", "a name", e);
  while (name && found < count && strcmp(type[found].name, name) != 0) found++;
  if (name && found == count) refuse_type(name, type, count, e);
  if (e->status) return 0;
  member_known(json, type[found].members, e);
  return found;
}

/* --- members --- */

void member_refuse(const json_t *json, const char *key, const char *needs, struct error *e) {
  const bool absent = !json_object_get(json, key);
  error_set(e, STATUS_CONFIG, "%s: needs %s%s", key, needs, absent ? ", and is missing" : "");
}

bool member_flag(const json_t *json, const char *key, struct error *e) {
  const json_t *value = json_object_get(json, key);
  if (!json_is_boolean(value)) member_refuse(json, key, "true or false", e);
  return json_is_true(value);
}

bool member_flag_or(const json_t *json, const char *key, bool otherwise, struct error *e) {
  const json_t *value = json_object_get(json, key);
  return !value || json_is_null(value) ? otherwise : member_flag(json, key, e);
}

bool member_says(const json_t *json, const char *key, bool otherwise) {
  const json_t *value = json_object_get(json, key);
  return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

struct member_text member_string(const json_t *json, const char *key, struct error *e) {
  const json_t *value = json_object_get(json, key);
  if (json_is_string(value))
    return (struct member_text){json_string_value(value), json_string_length(value)};
  member_refuse(json, key, "a string", e);
  return (struct member_text){"", 0};
}

struct member_text member_character(const json_t *json, const char *key, struct error *e) {
  const struct member_text text = member_string(json, key, e);
  if (text.length == 0 || text_character(text.bytes, text.length) != text.length)
    member_refuse(json, key, "a string of one character", e);
  return text;
}

const json_t *member_list(const json_t *json, const char *key, struct error *e) {
  const json_t *value = json_object_get(json, key);
  if (json_is_array(value)) return value;
  member_refuse(json, key, "a list", e);
  return NULL;
}

size_t member_count(const json_t *json, const char *key, size_t low, size_t high, struct error *e) {
  const json_t *value = json_object_get(json, key);
  const json_int_t count = json_integer_value(value);
  if (json_is_integer(value) && count >= (json_int_t)low && count <= (json_int_t)high)
    return (size_t)count;
  char needs[80];
  snprintf(needs, sizeof needs, "an integer from %zu to %zu", low, high);
  member_refuse(json, key, needs, e);
  return low;
}

size_t member_word(const json_t *json, const char *key, const char *const *words, struct error *e) {
  const char *word = member_string(json, key, e).bytes;
  char needs[LIST_MOST] = "one of";
  for (size_t i = 0; words[i]; i++) {
    if (strcmp(words[i], word) == 0) return i;
    const size_t used = strlen(needs);
    snprintf(needs + used, sizeof needs - used, "%s %s", i ? "," : "", words[i]);
  }
  member_refuse(json, key, needs, e);
  return 0;
}
