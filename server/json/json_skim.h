/* json_skim: one JSON value of any kind, chunk by chunk: where it ends, and that it is JSON. What
 * it means is left to others; nothing is stored, and brackets are counted to a fixed depth. */
#ifndef SERVER_JSON_SKIM_H
#define SERVER_JSON_SKIM_H

#include "core/base/status.h"
#include "server/number/number_scan.h"
#include "server/text/json_string.h"

enum { JSON_SKIM_DEPTH = 64 }; /* brackets open together */

enum json_skim_state {
  SKIM_VALUE,        /* a value belongs here */
  SKIM_VALUE_OR_END, /* behind '[' */
  SKIM_KEY,          /* behind ',' in an object */
  SKIM_KEY_OR_END,   /* behind '{' */
  SKIM_COLON,
  SKIM_COMMA_OR_END,
  SKIM_STRING,
  SKIM_NUMBER,
  SKIM_WORD, /* within true, false or null */
  SKIM_COMPLETE
};

struct json_skim {
  enum json_skim_state state;
  bool key;         /* the string is one */
  unsigned depth;   /* brackets open now */
  uint64_t object;  /* a bit per open bracket, the innermost is the lowest: is it a brace? */
  const char *word; /* what is left of it */
  struct json_string string;
  struct number_scan number;
};

void json_skim_begin(struct json_skim *s);

/* Reads on in text[0 .. length). `offset` is the place of text[0] in the body, for messages.
 * Returns how many bytes belong to the value; *complete is whether it has ended. A number outside
 * of all brackets ends at the first byte that is no part of it, which may be in the next chunk.
 * Fails with invalid-json; then the skim is dead. */
size_t json_skim_feed(struct json_skim *s, const char *text, size_t length, size_t offset,
                      bool *complete, struct error *e);

bool json_starts_value(char c); /* may a value begin so? */

/* What an error about this byte adds for those who print numbers that JSON has not; or "". */
const char *json_hint(char c);

/* "'x' where a value belongs": an invalid-json for the byte at `offset`. */
enum status json_unexpected(struct error *e, size_t offset, char c, const char *wanted);

/* An invalid-json for a byte for which json_string_byte has returned JSON_STRING_BAD. */
enum status json_bad_string(struct error *e, size_t offset, char c);

#endif
