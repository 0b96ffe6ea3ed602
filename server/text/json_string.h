/* json_string: a JSON string read byte by byte, over as many chunks as it takes. */
#ifndef SERVER_TEXT_JSON_STRING_H
#define SERVER_TEXT_JSON_STRING_H

#include <stdbool.h>

/* All zero behind the opening quote. */
struct json_string {
  bool escaped;     /* behind a backslash */
  unsigned hex;     /* digits of \uXXXX that are still to come */
  unsigned unicode; /* what those so far make */
};

enum {
  JSON_STRING_WITHIN = -1, /* part of an escape: the character is not whole yet */
  JSON_STRING_END = -2,    /* the closing quote */
  JSON_STRING_BAD = -3,    /* no JSON string has this byte here */
  JSON_STRING_OTHER = 255  /* \uXXXX beyond ASCII, which nobody here needs */
};

/* Takes the next byte: a character, one byte beyond ASCII at a time, or what is said above. */
int json_string_byte(struct json_string *s, char byte);

static inline bool json_string_is_escape(const struct json_string *s) {
  return s->escaped || s->hex > 0;
}

#endif
