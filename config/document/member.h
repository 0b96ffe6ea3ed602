/* member: the members of one part of a tokenizer.json, an object with a "type", read strictly.
 *
 * Each of these records the first mistake in `e`, STATUS_CONFIG with a detail that begins with the
 * member, and goes on: what is read of a part that is refused is not used. Texts are the JSON's. */
#ifndef CONFIG_MEMBER_H
#define CONFIG_MEMBER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/base/status.h"

struct member_type {
  const char *name;
  const char *members; /* beside "type", each with a blank behind it */
};

/* Which of the types it is, of so many. One that is not known is refused, and so is a member that
 * its type does not have. */
size_t member_type(const json_t *json, const struct member_type *type, size_t count,
                   struct error *e);

/* Refuses a member that is none of these, each with a blank behind it; "type" may be there. */
void member_known(const json_t *json, const char *members, struct error *e);

void member_refuse(const json_t *json, const char *key, const char *needs, struct error *e);

/* Must be there. */
bool member_flag(const json_t *json, const char *key, struct error *e);

/* May be absent, or null. */
bool member_flag_or(const json_t *json, const char *key, bool otherwise, struct error *e);

struct member_text {
  const char *bytes; /* ends with a zero */
  size_t length;
};

/* Must be there: a string; one of one character; a list. The last is NULL if it is none. */
struct member_text member_string(const json_t *json, const char *key, struct error *e);
struct member_text member_character(const json_t *json, const char *key, struct error *e);
const json_t *member_list(const json_t *json, const char *key, struct error *e);

/* Must be there: an integer from `low` to `high`. */
size_t member_count(const json_t *json, const char *key, size_t low, size_t high, struct error *e);

/* One of the words, by its place among them; they end with NULL. */
size_t member_word(const json_t *json, const char *key, const char *const *words, struct error *e);

#endif
