/* base64_portable: base64 without vector instructions of our own.
 *
 * A block is turned from characters to numbers below 64, or back, by loops that any compiler makes
 * into vectors: each range of the alphabet lies at a fixed distance from its numbers. Eight numbers
 * are then moved together, or apart, in a word. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "server/text/base64.h"
#include "server/text/base64_level.h"

enum {
  BLOCK = 64,            /* characters */
  BYTES = BLOCK / 4 * 3, /* that they stand for */
  WORD = 8               /* characters, which stand for six bytes */
};

static inline bool within(uint8_t c, uint8_t first, uint8_t count) {
  return (uint8_t)(c - first) < count;
}

/* From a character to its number; 0: it is none of the alphabet. */
static inline uint8_t distance_to_number(uint8_t c) {
  uint8_t distance = 0;
  distance = within(c, 'A', 26) ? (uint8_t) - 'A' : distance;
  distance = within(c, 'a', 26) ? 26 - 'a' : distance;
  distance = within(c, '0', 10) ? 52 - '0' : distance;
  distance = c == '+' ? 62 - '+' : distance;
  return c == '/' ? 63 - '/' : distance;
}

static inline uint8_t distance_to_character(uint8_t number) {
  uint8_t distance = 'A';
  distance = number >= 26 ? 'a' - 26 : distance;
  distance = number >= 52 ? (uint8_t)('0' - 52) : distance;
  distance = number == 62 ? (uint8_t)('+' - 62) : distance;
  return number == 63 ? (uint8_t)('/' - 63) : distance;
}

/* Eight numbers, the first in the lowest byte, as the six bytes that they stand for and two more.
 */
static inline void join_word(const uint8_t number[WORD], unsigned char *out) {
  uint64_t w;
  memcpy(&w, number, WORD);
  w = (w & 0x003f003f003f003f) << 6 | (w >> 8 & 0x003f003f003f003f);
  w = (w & 0x00000fff00000fff) << 12 | (w >> 16 & 0x00000fff00000fff);
  w = w << 40 | (w >> 32) << 16; /* 24 bits and 24 bits, at the top */
  w = __builtin_bswap64(w);
  memcpy(out, &w, WORD);
}

/* Looks at two bytes more than the six. */
static inline void part_word(const unsigned char *bytes, uint8_t number[WORD]) {
  uint64_t w;
  memcpy(&w, bytes, WORD);
  w = __builtin_bswap64(w);
  w = w >> 40 | (w >> 16 & 0xffffff) << 32;
  w = (w >> 12 & 0x00000fff00000fff) | (w & 0x00000fff00000fff) << 16;
  w = (w >> 6 & 0x003f003f003f003f) | (w & 0x003f003f003f003f) << 8;
  memcpy(number, &w, WORD);
}

/* --- reading --- */

static inline bool read_block(const char *text, unsigned char *out) {
  uint8_t number[BLOCK], strange = 0;
  for (size_t i = 0; i < BLOCK; i++) {
    const uint8_t c = (uint8_t)text[i], distance = distance_to_number(c);
    number[i] = (uint8_t)(c + distance);
    strange |= distance ? 0 : 1;
  }
  if (strange) return false;
  for (size_t i = 0; i < BLOCK / WORD; i++) join_word(number + i * WORD, out + i * 6);
  return true;
}

static bool read_group(const char text[4], unsigned char out[3]) {
  uint32_t w = 0;
  for (size_t i = 0; i < 4; i++) {
    const uint8_t c = (uint8_t)text[i], distance = distance_to_number(c);
    if (distance == 0) return false;
    w = w << 6 | (uint8_t)(c + distance);
  }
  out[0] = (unsigned char)(w >> 16);
  out[1] = (unsigned char)(w >> 8);
  out[2] = (unsigned char)w;
  return true;
}

size_t base64_read_portable(const char *text, size_t length, unsigned char *out) {
  size_t at = 0;
  for (; length - at >= BLOCK; at += BLOCK, out += BYTES)
    if (!read_block(text + at, out)) break;
  for (; length - at >= 4; at += 4, out += 3)
    if (!read_group(text + at, out)) break;
  return at;
}

/* --- writing --- */

static inline void write_block(char *out, const unsigned char *bytes) {
  uint8_t number[BLOCK];
  for (size_t i = 0; i < BLOCK / WORD; i++) part_word(bytes + i * 6, number + i * WORD);
  for (size_t i = 0; i < BLOCK; i++)
    out[i] = (char)(uint8_t)(number[i] + distance_to_character(number[i]));
}

char *base64_write_portable(char *out, const unsigned char *bytes, size_t size) {
  for (; size >= BYTES + 2; size -= BYTES, bytes += BYTES, out += BLOCK) write_block(out, bytes);
  while (size > 0) {
    unsigned char rest[BYTES + 2] = {0};
    const size_t count = size < BYTES ? size : BYTES;
    memcpy(rest, bytes, count);
    write_block(out, rest);
    out += base64_length(count);
    for (size_t i = count; i % 3 != 0; i++) out[(ptrdiff_t)(i % 3) - 3] = '=';
    size -= count;
    bytes += count;
  }
  return out;
}
