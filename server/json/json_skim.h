/* json_skim: finds where one JSON value of any kind ends, chunk by chunk, and checks its syntax.
 * Nothing is stored; brackets are counted to a fixed depth. */
#ifndef SERVER_JSON_SKIM_H
#define SERVER_JSON_SKIM_H

#include "core/base/status.h"
#include "server/number/number_scan.h"
#include "server/text/json_string.h"

enum { JSON_SKIM_DEPTH = 64 }; /* brackets open together */

enum json_skim_state {
  SKIM_VALUE,        /* before a value */
  SKIM_VALUE_OR_END, /* after '[' */
  SKIM_KEY,          /* after ',' in an object */
  SKIM_KEY_OR_END,   /* after '{' */
  SKIM_COLON,
  SKIM_COMMA_OR_END,
  SKIM_STRING,
  SKIM_NUMBER,
  SKIM_WORD, /* within true, false or null */
  SKIM_COMPLETE
};

struct json_skim {
  enum json_skim_state state;
  bool key;         /* whether the string is a key */
  unsigned depth;   /* brackets open now */
  uint64_t object;  /* a bit per open bracket, the innermost lowest: whether it is a brace */
  const char *word; /* SKIM_WORD: the characters still expected */
  struct json_string string;
  struct number_scan number;
};

void json_skim_begin(struct json_skim *s);

/* Continues with text[0 .. length), which is at `offset` of the body. Returns how many bytes belong
 * to the value; *complete is whether it has ended. A number outside of brackets ends at the first
 * byte that is not part of it, which may be in the next chunk. After a failure, invalid-json in
 * `e`, the skim must not be used. */
size_t json_skim_feed(struct json_skim *s, const char *text, size_t length, size_t offset,
                      bool *complete, struct error *e);

bool json_starts_value(char c); /* whether a value may begin with this byte */

/* Returns a hint about NaN and Infinity for an error about this byte; or "". */
const char *json_hint(char c);

/* Fails with invalid-json, "expected a value, got 'x'", for the byte at `offset`. */
enum status json_unexpected(struct error *e, size_t offset, char c, const char *wanted);

/* Fails with invalid-json for a byte for which json_string_byte has returned JSON_STRING_BAD. */
enum status json_bad_string(struct error *e, size_t offset, char c);

#endif
