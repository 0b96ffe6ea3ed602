/* json_string: a JSON string read byte by byte. */
#include "server/text/json_string.h"

#include <string.h>

/* --- escapes --- */

/* Reads a hexadecimal digit after \u. */
static int add_hex_digit(struct json_string *s, char byte) {
  const int value = hex_value(byte);
  if (value < 0) return JSON_STRING_BAD;
  s->unicode = s->unicode << 4 | (unsigned)value;
  if (--s->hex > 0) return JSON_STRING_WITHIN;
  const bool first = s->unicode >= 0xd800 && s->unicode < 0xdc00;
  const bool second = s->unicode >= 0xdc00 && s->unicode < 0xe000;
  if (s->pair != second) return JSON_STRING_BAD; /* half a pair */
  s->pair = first;
  if (first) return JSON_STRING_WITHIN;
  return s->unicode < 0x80 ? (int)s->unicode : JSON_STRING_OTHER;
}

/* Reads the character after a backslash. */
static int read_escaped(struct json_string *s, char byte) {
  static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
  s->escaped = false;
  if (byte == 'u') {
    s->hex = 4;
    s->unicode = 0;
    return JSON_STRING_WITHIN;
  }
  const char *found = byte && !s->pair ? strchr(letters, byte) : NULL;
  return found ? meant[found - letters] : JSON_STRING_BAD;
}

/* --- UTF-8 --- */

/* Reads the first byte of a character beyond ASCII. The second byte's bounds exclude overlong
 * encodings, halves of surrogate pairs and values above U+10FFFF. */
static int begin_character(struct json_string *s, unsigned char byte) {
  if (byte < 0xc2 || byte > 0xf4) return JSON_STRING_BAD;
  s->tail = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
  s->low = byte == 0xe0 ? 0xa0 : byte == 0xf0 ? 0x90 : 0x80;
  s->high = byte == 0xed ? 0x9f : byte == 0xf4 ? 0x8f : 0xbf;
  return JSON_STRING_WITHIN;
}

int json_string_byte(struct json_string *s, char byte) {
  const unsigned char code = (unsigned char)byte;
  if (s->tail > 0) { /* a further byte of a character beyond ASCII */
    if (code < s->low || code > s->high) return JSON_STRING_BAD;
    s->low = 0x80;
    s->high = 0xbf;
    return --s->tail > 0 ? JSON_STRING_WITHIN : JSON_STRING_OTHER;
  }
  if (s->hex > 0) return add_hex_digit(s, byte);
  if (s->escaped) return read_escaped(s, byte);
  s->escaped = byte == '\\';
  if (s->escaped) return JSON_STRING_WITHIN;
  if (s->pair || code < 0x20) return JSON_STRING_BAD;
  if (code >= 0x80) return begin_character(s, code);
  return byte == '"' ? JSON_STRING_END : byte;
}

/* --- writing --- */

char *json_string_write_part(const char *text, size_t length, char *out) {
  static const char meant[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt",
                    digits[] = "0123456789abcdef";
  for (size_t i = 0; i < length; i++) {
    const unsigned char byte = (unsigned char)text[i];
    if (byte >= 0x20 && byte != '"' && byte != '\\') {
      *out++ = text[i];
      continue;
    }
    *out++ = '\\';
    const char *found = byte ? strchr(meant, byte) : NULL;
    if (found) {
      *out++ = letters[found - meant];
      continue;
    }
    memcpy(out, "u00", 3);
    out[3] = digits[byte >> 4];
    out[4] = digits[byte & 0xf];
    out += 5;
  }
  return out;
}

char *json_string_write(const char *text, size_t length, char *out) {
  *out++ = '"';
  out = json_string_write_part(text, length, out);
  *out++ = '"';
  return out;
}
