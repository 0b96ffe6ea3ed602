/* json_string: a JSON string read byte by byte. */
#include "server/text/json_string.h"

#include <string.h>

static int hex_digit(struct json_string *s, char byte) {
  static const char digits[] = "0123456789abcdefABCDEF";
  const char *found = byte ? strchr(digits, byte) : NULL;
  if (!found) return JSON_STRING_BAD;
  const unsigned at = (unsigned)(found - digits);
  s->unicode = s->unicode << 4 | (at < 16 ? at : at - 6);
  if (--s->hex > 0) return JSON_STRING_WITHIN;
  return s->unicode < 0x80 ? (int)s->unicode : JSON_STRING_OTHER;
}

static int escaped(struct json_string *s, char byte) {
  static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
  s->escaped = false;
  if (byte == 'u') {
    s->hex = 4;
    s->unicode = 0;
    return JSON_STRING_WITHIN;
  }
  const char *found = byte ? strchr(letters, byte) : NULL;
  return found ? meant[found - letters] : JSON_STRING_BAD;
}

int json_string_byte(struct json_string *s, char byte) {
  if (s->hex > 0) return hex_digit(s, byte);
  if (s->escaped) return escaped(s, byte);
  if ((unsigned char)byte < 0x20) return JSON_STRING_BAD;
  if (byte == '"') return JSON_STRING_END;
  s->escaped = byte == '\\';
  return s->escaped ? JSON_STRING_WITHIN : (unsigned char)byte;
}
