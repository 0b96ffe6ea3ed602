/* number_fast: the inlined part of number_read, for loops over many numbers; internal to the text
 * modules.
 *
 * It reads plain decimals without exponent and of up to 18 or 19 digits, which nearly every body
 * consists of, and declines all others: number_read then reads them and reports errors. Eight
 * characters at a time are handled in one 64-bit word, first character in the lowest byte. */
#ifndef SERVER_TEXT_NUMBER_FAST_H
#define SERVER_TEXT_NUMBER_FAST_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "server/number/number.h"

static inline uint64_t number_load8(const char *text) {
  uint64_t word;
  memcpy(&word, text, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  word = __builtin_bswap64(word);
#endif
  return word;
}

/* How many of the eight characters, from the first on, are digits. */
static inline unsigned number_digits8(uint64_t word) {
  uint64_t digit = word ^ 0x3030303030303030;
  /* A byte of 10 or more gets its top bit; its carry reaches later characters only. */
  uint64_t other = ((digit + 0x7676767676767676) | digit) & 0x8080808080808080;
  unsigned all = other == 0; /* a number instead of a branch: lengths are unpredictable */
  return ((unsigned)__builtin_ctzll(other | (uint64_t)all << 63) >> 3) + all;
}

/* The first `count` characters as digits, right-aligned after leading zeros. There are two shifts
 * because one by 64 would be none. */
static inline uint64_t number_align8(uint64_t word, unsigned count) {
  unsigned shift = 4 * (8 - count);
  return ((word ^ 0x3030303030303030) << shift) << shift;
}

/* Whether all eight bytes are from 0 to 9. */
static inline bool number_all_digits8(uint64_t digits) {
  return (((digits + 0x7676767676767676) | digits) & 0x8080808080808080) == 0;
}

/* The value of eight digits. */
static inline uint64_t number_sum8(uint64_t digits) {
  digits = digits * 10 + (digits >> 8); /* bytes 0, 2, 4, 6 hold pairs */
  uint64_t low = (digits & 0x000000ff000000ff) * (100 + ((uint64_t)1000000 << 32));
  uint64_t high = ((digits >> 16) & 0x000000ff000000ff) * (1 + ((uint64_t)10000 << 32));
  return (low + high) >> 32;
}

/* 10^count, up to 8. */
static inline uint64_t number_power8(unsigned count) {
  static const uint32_t power[9] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
  return power[count];
}

static inline bool number_is_digit(char c) { return (unsigned char)(c - '0') < 10; }

/* Whether this character may follow a number in an array or an object. */
static inline bool number_is_end(char c) { return c == ',' || c == ']' || c == '}' || is_blank(c); }

/* The top bit of each byte equal to `c`; above the lowest such bit, other bits may be set. */
static inline uint64_t number_equal8(uint64_t word, char c) {
  uint64_t zero = word ^ 0x0101010101010101 * (unsigned char)c;
  return (zero - 0x0101010101010101) & ~zero & 0x8080808080808080;
}

/* Whether an array ends within the next 16 characters: a block of 64 does not pay for so few. */
static inline bool number_ends_soon(const char *text) {
  return (number_equal8(number_load8(text), ']') | number_equal8(number_load8(text + 8), ']')) != 0;
}

/* How many characters precede the first comma; 16 if there is none before. The next number's place
 * is thus known before this number is read, so that the processor can work on several at a time. */
static inline unsigned number_comma_distance(const char *text) {
  uint64_t low = number_equal8(number_load8(text), ','),
           high = number_equal8(number_load8(text + 8), ',');
  unsigned far = high ? 8 + ((unsigned)__builtin_ctzll(high) >> 3) : 16;
  return low ? (unsigned)__builtin_ctzll(low) >> 3 : far;
}

/* The double nearest to m / 10^places, within 4 units of its last place. */
static inline double number_scale_down(int64_t m, unsigned places) {
  static const double inverse[20] = {1e-0,  1e-1,  1e-2,  1e-3,  1e-4,  1e-5,  1e-6,
                                     1e-7,  1e-8,  1e-9,  1e-10, 1e-11, 1e-12, 1e-13,
                                     1e-14, 1e-15, 1e-16, 1e-17, 1e-18, 1e-19};
  return (double)m * inverse[places];
}

/* The float nearest to m / 10^places; false if the double does not decide it. */
static inline bool number_plain_float(int64_t m, unsigned places, bool negative, float *value) {
  double x = number_scale_down(m, places);
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  /* Rounding twice is wrong only if x is about halfway between two floats. An integer below 2^53 is
   * exact, and its ties round to even, as the second rounding does. */
  bool halfway = ((bits - (0x10000000 - 8)) & 0x1fffffff) <= 16;
  if (halfway && (places != 0 || m >> 53)) return false;
  float magnitude = (float)x;
  uint32_t result;
  memcpy(&result, &magnitude, sizeof result);
  result |= (uint32_t)negative << 31; /* no branch: signs are unpredictable */
  memcpy(value, &result, sizeof result);
  return true;
}

/* A number up to where an exponent may follow: m / 10^places. */
struct number_plain {
  const char *end;
  uint64_t m;
  unsigned places;
  bool negative;
};

/* Reads all digits of the number at `text`. False if they are too many or malformed.
 * NUMBER_READ_MARGIN bytes must be readable. */
static inline bool number_read_plain(const char *text, struct number_plain *n) {
  n->negative = *text == '-';
  const char *start = text + n->negative, *p = start;
  uint64_t m = (unsigned char)(*p - '0');
  if (m > 9) return false;
  p++;
  if (number_is_digit(*p)) {
    if (m == 0) return false;
    do m = m * 10 + (unsigned char)(*p++ - '0');
    while (number_is_digit(*p) && p - start < 19);
  }
  n->places = 0;
  if (*p == '.') {
    const char *fraction = ++p;
    uint64_t first = number_load8(p), second = number_load8(p + 8);
    unsigned n1 = number_digits8(first);
    unsigned n2 = number_digits8(second) & -(n1 >> 3); /* 0 unless n1 is 8 */
    if (n1 == 0) return false;
    m = m * number_power8(n1) + number_sum8(number_align8(first, n1));
    m = m * number_power8(n2) + number_sum8(number_align8(second, n2));
    p += n1 + n2;
    if (n2 == 8)
      while (number_is_digit(*p) && p - start < 20) m = m * 10 + (unsigned char)(*p++ - '0');
    n->places = (unsigned)(p - fraction);
  }
  n->m = m;
  n->end = p;
  /* Up to 20 characters with a dot are 19 digits: m did not overflow unless there are more. */
  return p - start <= 20 && !number_is_digit(*p);
}

/* Reads the number at `text` if it is plain. False: nothing was read, use number_read.
 * NUMBER_READ_MARGIN bytes must be readable. */
static inline bool number_read_fast(const char *text, const char **end, float *value) {
  struct number_plain n;
  if (!number_read_plain(text, &n) || (*n.end | 32) == 'e' || n.m >> 63) return false;
  if (!number_plain_float((int64_t)n.m, n.places, n.negative, value)) return false;
  *end = n.end;
  return true;
}

enum { NUMBER_INTEGER_DIGITS = 10 /* digits of the largest int32_t */ };

/* The integer of `count` digits, from 1 to NUMBER_INTEGER_DIGITS; it may exceed 32 bits. 16 bytes
 * are readable. */
static inline int64_t number_integer_of(const char *digit, unsigned count) {
  const uint64_t first = number_load8(digit);
  if (__builtin_expect(count <= 8, 1)) return (int64_t)number_sum8(number_align8(first, count));
  const unsigned rest = count - 8;
  const uint64_t high = number_sum8(number_align8(first, 8));
  const uint64_t low = number_sum8(number_align8(number_load8(digit + 8), rest));
  return (int64_t)(high * number_power8(rest) + low);
}

/* Applies the sign to the magnitude. False if the result is no int32_t. */
static inline bool number_integer_sign(int64_t magnitude, bool negative, int32_t *value) {
  const int64_t signed_value = negative ? -magnitude : magnitude;
  *value = (int32_t)signed_value;
  return *value == signed_value;
}

#endif
