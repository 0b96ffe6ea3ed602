/* member: the members of one part of a tokenizer.json, an object with a "type", read strictly.
 *
 * Each function records the first mistake in `e`, STATUS_CONFIG with a detail that begins with the
 * member's name, and returns a harmless value: a part with a mistake is not used. Texts belong to
 * the JSON. */
#ifndef CONFIG_MEMBER_H
#define CONFIG_MEMBER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/base/status.h"

struct member_type {
  const char *name;
  const char *members; /* in addition to "type"; each is followed by a space */
};

/* The index of the part's type among `count`. Rejects an unknown type, and a member that its type
 * does not have. */
size_t member_type(const json_t *json, const struct member_type *type, size_t count,
                   struct error *e);

/* Rejects a member other than "type" and these; each is followed by a space. */
void member_known(const json_t *json, const char *members, struct error *e);

/* Rejects a member: the message says what it needs, and whether it is missing. */
void member_refuse(const json_t *json, const char *key, const char *needs, struct error *e);

/* Required. */
bool member_flag(const json_t *json, const char *key, struct error *e);

/* Optional: `otherwise` if it is absent or null. */
bool member_flag_or(const json_t *json, const char *key, bool otherwise, struct error *e);

/* A flag of any document: `otherwise` if it is absent or another value. No mistake. */
bool member_says(const json_t *json, const char *key, bool otherwise);

struct member_text {
  const char *bytes; /* ends with a zero */
  size_t length;
};

/* Required: a string; a string of one character; a list, NULL if it is not a list. */
struct member_text member_string(const json_t *json, const char *key, struct error *e);
struct member_text member_character(const json_t *json, const char *key, struct error *e);
const json_t *member_list(const json_t *json, const char *key, struct error *e);

/* Required: an integer from `low` to `high`. */
size_t member_count(const json_t *json, const char *key, size_t low, size_t high, struct error *e);

/* Required: one of the words, which end with NULL. Returns its index. */
size_t member_word(const json_t *json, const char *key, const char *const *words, struct error *e);

#endif
