/* json_string: a JSON string read byte by byte, over as many chunks as it takes; and written. */
#ifndef SERVER_TEXT_JSON_STRING_H
#define SERVER_TEXT_JSON_STRING_H

#include <stdbool.h>
#include <stddef.h>

/* All zero behind the opening quote. */
struct json_string {
  bool escaped;            /* behind a backslash */
  bool pair;               /* behind the first half of a surrogate pair */
  unsigned char hex;       /* digits of \uXXXX that are still to come */
  unsigned char tail;      /* bytes of a character beyond ASCII that are still to come, */
  unsigned char low, high; /* and what the next of them may be */
  unsigned unicode;        /* what the digits so far make */
};

enum {
  JSON_STRING_WITHIN = -1, /* the character is not whole yet */
  JSON_STRING_END = -2,    /* the closing quote */
  JSON_STRING_BAD = -3,    /* no JSON string has this byte here: it is not UTF-8, or no escape */
  JSON_STRING_OTHER = 255  /* a character beyond ASCII, which no name or type has */
};

/* Reads the next byte. Returns the character, if it is whole and ASCII, or one of the above. */
int json_string_byte(struct json_string *s, char byte);

enum { JSON_STRING_ROOM = 6 }; /* bytes that a byte takes at most; the quotes are two more */

/* Writes a string of UTF-8 with its quotes, or a part of one without: what must be escaped is, and
 * nothing else. Returns its end. */
char *json_string_write(const char *text, size_t length, char *out);
char *json_string_write_part(const char *text, size_t length, char *out);

/* Has a character begun that is not whole yet? */
static inline bool json_string_is_within(const struct json_string *s) {
  return s->escaped || s->pair || s->hex > 0 || s->tail > 0;
}

/* The value of a hexadecimal digit, 0 to 15; -1 for any other character. */
static inline int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

#endif
