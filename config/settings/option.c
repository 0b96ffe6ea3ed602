/* option: the table of settings, and the values that they accept. */
#include "config/settings/option.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "config/document/text.h"
#include "config/settings/address.h"
#include "config/settings/origins.h"

static const struct option options[] = {
#define OPTION_TEXT(name, fallback, placeholder, brief, details)                         \
  {#name, OPTION_IS_TEXT, offsetof(struct config, name), fallback, 0, 0, 0, placeholder, \
   brief, details},
#define OPTION_ADDRESS(name, fallback, brief, details) \
  {#name,                                              \
   OPTION_IS_ADDRESS,                                  \
   offsetof(struct config, name),                      \
   fallback,                                           \
   0,                                                  \
   0,                                                  \
   0,                                                  \
   "ADDRESS:PORT",                                     \
   brief,                                              \
   details},
#define OPTION_ORIGINS(name, fallback, brief, details)                                            \
  {#name,  OPTION_IS_ORIGINS, offsetof(struct config, name), fallback, 0, 0, 0, "ORIGINS", brief, \
   details},
#define OPTION_CHOICE(name, fallback, choices, brief, details)                         \
  {#name, OPTION_IS_CHOICE, offsetof(struct config, name), fallback, 0, 0, 0, choices, \
   brief, details},
#define OPTION_COUNT(name, fallback, low, high, unit, brief, details)                      \
  {#name, OPTION_IS_COUNT, offsetof(struct config, name), NULL, fallback, low, high, unit, \
   brief, details},
#define OPTION_FLAG(name, fallback, brief, details)                                  \
  {#name, OPTION_IS_FLAG, offsetof(struct config, name), NULL, fallback, 0, 1, NULL, \
   brief, details},
#include "config/settings/options.def"
};

/* Each group begins with the setting that is at this offset of struct config. */
static const struct {
  const char *title;
  size_t offset;
} groups[] = {
#define OPTION_GROUP(title, first) {title, offsetof(struct config, first)},
#include "config/settings/options.def"
};

const char *option_group(const struct option *o) {
  for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
    if (groups[i].offset == o->offset) return groups[i].title;
  return NULL;
}

size_t option_count(void) { return sizeof options / sizeof options[0]; }

const struct option *option_at(size_t index) { return &options[index]; }

const struct option *option_find(const char *name) {
  for (size_t i = 0; i < option_count(); i++)
    if (strcmp(options[i].name, name) == 0) return &options[i];
  return NULL;
}

static void *setting_in(const struct option *o, struct config *c) { return (char *)c + o->offset; }

const char **option_text(const struct option *o, struct config *c) { return setting_in(o, c); }
uint64_t *option_number(const struct option *o, struct config *c) { return setting_in(o, c); }
bool *option_flag(const struct option *o, struct config *c) { return setting_in(o, c); }

/* --- values --- */

static bool is_choice(const char *choices, const char *text) {
  size_t length = strlen(text);
  if (strchr(text, '|')) return false; /* two words at once */
  for (const char *at = choices; at; at = strchr(at, '|')) {
    if (*at == '|') at++;
    if (strncmp(at, text, length) == 0 && (at[length] == '|' || !at[length])) return length > 0;
  }
  return false;
}

static enum status set_text(const struct option *o, struct config *c, const char *value,
                            const char *where, struct error *e) {
  if (!text_is_utf8(value, strlen(value)))
    return error_set(e, STATUS_CONFIG, "%s: is not UTF-8", where);
  if (o->kind == OPTION_IS_CHOICE && !is_choice(o->unit, value))
    return error_set(e, STATUS_CONFIG, "%s: \"%.60s\" is not one of %s", where, value, o->unit);
  struct address address;
  bool off = !*value && !*o->text;
  if (o->kind == OPTION_IS_ADDRESS && !off && !address_parse(&address, value))
    return error_set(
        e, STATUS_CONFIG,
        "%s: \"%.80s\" is not ADDRESS:PORT, such as 127.0.0.1:8080, [::1]:8080 or 0.0.0.0:0", where,
        value);
  if (o->kind == OPTION_IS_ORIGINS && origins_check(value, where, e)) return e->status;
  *option_text(o, c) = value;
  return STATUS_OK;
}

static enum status set_number(const struct option *o, struct config *c, uint64_t value,
                              const char *written, const char *where, struct error *e) {
  if (value < o->low || value > o->high)
    return error_set(e, STATUS_CONFIG, "%s: %.40s is outside %ju to %ju %s", where, written,
                     (uintmax_t)o->low, (uintmax_t)o->high, o->unit);
  *option_number(o, c) = value;
  return STATUS_OK;
}

static bool is_on(const char *value) {
  return strcmp(value, "on") == 0 || strcmp(value, "true") == 0;
}

bool option_is_flag_word(const char *value) {
  return is_on(value) || strcmp(value, "off") == 0 || strcmp(value, "false") == 0;
}

enum status option_set(const struct option *o, struct config *c, const char *value,
                       const char *where, struct error *e) {
  uint64_t number;
  switch (o->kind) {
  case OPTION_IS_COUNT:
    if (!text_decimal(value, &number))
      return error_set(e, STATUS_CONFIG,
                       "%s: must be an integer from %ju to %ju (%s), not \"%.60s\"", where,
                       (uintmax_t)o->low, (uintmax_t)o->high, o->unit, value);
    return set_number(o, c, number, value, where, e);
  case OPTION_IS_FLAG:
    if (!option_is_flag_word(value))
      return error_set(e, STATUS_CONFIG, "%s: \"%.60s\" is not one of on, off, true, false", where,
                       value);
    *option_flag(o, c) = is_on(value);
    return STATUS_OK;
  default:
    return set_text(o, c, value, where, e);
  }
}

enum status option_set_json(const struct option *o, struct config *c, const json_t *value,
                            const char *where, struct error *e) {
  const char *wanted = "a string";
  if (o->kind == OPTION_IS_COUNT) {
    wanted = "an integer";
    if (json_is_integer(value)) {
      json_int_t number = json_integer_value(value);
      char written[32];
      snprintf(written, sizeof written, "%" JSON_INTEGER_FORMAT, number);
      /* A negative number becomes one that no setting allows. */
      return set_number(o, c, number < 0 ? UINT64_MAX : (uint64_t)number, written, where, e);
    }
  } else if (o->kind == OPTION_IS_FLAG) {
    wanted = "true or false";
    if (json_is_boolean(value)) {
      *option_flag(o, c) = json_is_true(value);
      return STATUS_OK;
    }
  } else if (json_is_string(value)) {
    return set_text(o, c, json_string_value(value), where, e);
  }
  return error_set(e, STATUS_CONFIG, "%s: needs %s, not %s", where, wanted,
                   option_json_kind(value));
}

const char *option_json_kind(const json_t *value) {
  switch (json_typeof(value)) {
  case JSON_OBJECT:
    return "an object";
  case JSON_ARRAY:
    return "an array";
  case JSON_STRING:
    return "a string";
  case JSON_INTEGER:
    return "an integer";
  case JSON_REAL:
    return "a number with a fraction or an exponent";
  case JSON_NULL:
    return "null";
  default:
    return "a boolean";
  }
}

/* --- names --- */

const char *option_switch(const struct option *o, char out[64]) {
  snprintf(out, 64, "%s", o->name);
  for (char *at = out; *at; at++)
    if (*at == '_') *at = '-';
  return out;
}

const char *option_variable(const struct option *o, char out[64]) {
  snprintf(out, 64, "ATTEND_%s", o->name);
  for (char *at = out; *at; at++) *at = (char)toupper((unsigned char)*at);
  return out;
}
