/* byte_level: bytes as visible characters, and back. */
#include "config/tokenizer/model/byte_level.h"

#include <stdbool.h>

/* Whether a byte is written as the character of the same number. */
static bool is_visible(unsigned c) {
  return (c >= '!' && c <= '~') || (c >= 0xa1 && c <= 0xac) || (c >= 0xae && c <= 0xff);
}

/* The other bytes are characters from U+0100 on, in their order: 0x00-0x20, 0x7f-0xa0, 0xad. */
enum { OTHERS = 0x100, LOW = 0x21, MIDDLE = 0x7f, MIDDLE_END = 0xa1, LAST = 0xad };

uint32_t byte_level_character(unsigned char byte) {
  if (is_visible(byte)) return byte;
  if (byte < LOW) return OTHERS + byte;
  return byte < MIDDLE_END ? OTHERS + LOW + byte - MIDDLE : BYTE_LEVEL_LAST;
}

int byte_level_byte(uint32_t c) {
  if (c < OTHERS) return is_visible(c) ? (int)c : -1;
  if (c < OTHERS + LOW) return (int)(c - OTHERS);
  if (c < BYTE_LEVEL_LAST) return (int)(c - OTHERS - LOW + MIDDLE);
  return c == BYTE_LEVEL_LAST ? LAST : -1;
}

/* All these characters have one or two bytes of UTF-8. */
enum { LEAD = 0xc0, CONTINUED = 0x80, BITS = 6, SIX = 0x3f, TWO = 0x80, THREE = 0xe0 };

size_t byte_level_decode(const char *text, size_t length, char *out) {
  size_t n = 0;
  for (size_t i = 0; i < length; i++) {
    uint32_t c = (unsigned char)text[i];
    if (c >= THREE || (c >= TWO && i + 1 == length)) return SIZE_MAX;
    if (c >= TWO) c = (c & ~(uint32_t)LEAD) << BITS | ((unsigned char)text[++i] & SIX);
    const int byte = byte_level_byte(c);
    if (byte < 0) return SIZE_MAX;
    out[n++] = (char)byte;
  }
  return n;
}

size_t byte_level_encode(const char *bytes, size_t length, char *out) {
  size_t n = 0;
  for (size_t i = 0; i < length; i++) {
    const uint32_t c = byte_level_character((unsigned char)bytes[i]);
    if (c >= TWO) out[n++] = (char)(LEAD | c >> BITS);
    out[n++] = (char)(c >= TWO ? CONTINUED | (c & SIX) : c);
  }
  return n;
}
