/* json_string: reads a JSON string byte by byte, over any number of chunks, and writes one. */
#ifndef SERVER_TEXT_JSON_STRING_H
#define SERVER_TEXT_JSON_STRING_H

#include <stdbool.h>
#include <stddef.h>

/* The state of reading: all zero after the opening quote. */
struct json_string {
  bool escaped;            /* whether the last byte was a backslash */
  bool pair;               /* whether the first half of a surrogate pair was read */
  unsigned char hex;       /* how many digits after \u are still to come */
  unsigned char tail;      /* how many bytes of a character beyond ASCII are still to come */
  unsigned char low, high; /* bounds of the next of them */
  unsigned unicode;        /* value of the digits so far */
};

enum {
  JSON_STRING_WITHIN = -1, /* the character is not whole yet */
  JSON_STRING_END = -2,    /* the closing quote */
  JSON_STRING_BAD = -3,    /* no JSON string has this byte here: it is no UTF-8, or no escape */
  JSON_STRING_OTHER = 255  /* a character beyond ASCII, which no field name or type has */
};

/* Reads the next byte. Returns the character if it is whole and ASCII, else one of the above. */
int json_string_byte(struct json_string *s, char byte);

enum { JSON_STRING_ROOM = 6 }; /* most bytes that one byte becomes; the quotes are two more */

/* Writes a string of UTF-8 with its quotes, or a part of one without; only characters that must be
 * escaped are. `out` has JSON_STRING_ROOM bytes for each byte. Returns the end. */
char *json_string_write(const char *text, size_t length, char *out);
char *json_string_write_part(const char *text, size_t length, char *out);

/* Whether a character has begun that is not whole yet. */
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
