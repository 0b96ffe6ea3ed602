/* base64_portable: base64 in the compiler's own vectors, which exist for every processor.
 *
 * Characters become numbers below 64, and numbers characters, by comparing: each range of the
 * alphabet lies at a fixed distance from its numbers. Eight numbers are then joined, or
 * separated, in a word. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "server/text/base64.h"

enum {
  BLOCK = 16,            /* characters */
  BYTES = BLOCK / 4 * 3, /* bytes for these characters */
  HALF = BYTES / 2,      /* bytes for eight characters */
  LOAD = HALF + 8        /* bytes that a block reads or overwrites */
};

/* Blocks. A comparison of blocks gives 0 or -1. */
typedef uint8_t bytes_block __attribute__((vector_size(BLOCK)));
typedef int8_t signed_block __attribute__((vector_size(BLOCK)));
typedef uint64_t words_block __attribute__((vector_size(BLOCK)));

static inline bytes_block either(signed_block here, uint8_t value) {
  return (bytes_block)here & value;
}

/* The distance from each character to its number; 0 if it is not of the alphabet. */
static inline bytes_block distance_to_numbers(bytes_block text) {
  const signed_block c = (signed_block)text;
  return either((c >= 'A') & (c <= 'Z'), (uint8_t) - 'A') |
         either((c >= 'a') & (c <= 'z'), (uint8_t)(26 - 'a')) |
         either((c >= '0') & (c <= '9'), 52 - '0') | either(c == '+', 62 - '+') |
         either(c == '/', 63 - '/');
}

static inline bytes_block to_characters(bytes_block number) {
  const signed_block n = (signed_block)number;
  return number + 'A' + either(n > 25, 'a' - 26 - 'A') +
         either(n > 51, (uint8_t)('0' - 52 - ('a' - 26))) +
         either(n > 61, (uint8_t)('+' - 62 - ('0' - 52))) +
         either(n > 62, (uint8_t)('/' - 63 - ('+' - 62)));
}

/* Reads 16 characters to 12 bytes, and overwrites two more. False if one character is not of the
 * alphabet. */
static inline bool read_block(const char *text, unsigned char *out) {
  bytes_block c;
  memcpy(&c, text, sizeof c);
  const bytes_block distance = distance_to_numbers(c);
  const words_block strange = (words_block)(distance == 0);
  if ((strange[0] | strange[1]) != 0) return false;
  /* Words, with the first byte lowest, hold 8 times 6 bits, then 4 times 12, then 2 times 24. */
  words_block w = (words_block)(c + distance);
  w = (w & 0x003f003f003f003f) << 6 | (w >> 8 & 0x003f003f003f003f);
  w = (w & 0x00000fff00000fff) << 12 | (w >> 16 & 0x00000fff00000fff);
  w = w << 40 | (w >> 32) << 16; /* the first bit is the highest now */
  const uint64_t first = __builtin_bswap64(w[0]), second = __builtin_bswap64(w[1]);
  memcpy(out, &first, sizeof first);
  memcpy(out + HALF, &second, sizeof second);
  return true;
}

/* Writes 12 bytes as 16 characters. Reads two bytes more. */
static inline void write_block(char *out, const unsigned char *bytes) {
  uint64_t first, second;
  memcpy(&first, bytes, sizeof first);
  memcpy(&second, bytes + HALF, sizeof second);
  words_block w = {__builtin_bswap64(first), __builtin_bswap64(second)};
  w = w >> 40 | (w >> 16 & 0xffffff) << 32;
  w = (w >> 12 & 0x00000fff00000fff) | (w & 0x00000fff00000fff) << 16;
  w = (w >> 6 & 0x003f003f003f003f) | (w & 0x003f003f003f003f) << 8;
  const bytes_block c = to_characters((bytes_block)w);
  memcpy(out, &c, sizeof c);
}

size_t base64_read_portable(const char *text, size_t length, unsigned char *out) {
  size_t at = 0;
  for (; length - at >= BLOCK; at += BLOCK, out += BYTES)
    if (!read_block(text + at, out)) break;
  /* The remaining groups are read one by one, each padded to a block with 'A'. */
  for (; length - at >= 4; at += 4, out += 3) {
    char group[BLOCK];
    memset(group, 'A', sizeof group);
    memcpy(group, text + at, 4);
    if (!read_block(group, out)) break;
  }
  return at;
}

char *base64_write_portable(char *out, const unsigned char *bytes, size_t size) {
  for (; size >= LOAD; size -= BYTES, bytes += BYTES, out += BLOCK) write_block(out, bytes);
  while (size > 0) {
    unsigned char rest[LOAD] = {0};
    const size_t count = size < BYTES ? size : BYTES;
    memcpy(rest, bytes, count);
    write_block(out, rest);
    out += (count + 2) / 3 * 4;
    if (count % 3 != 0) out[-1] = '=';
    if (count % 3 == 1) out[-2] = '=';
    size -= count;
    bytes += count;
  }
  return out;
}
