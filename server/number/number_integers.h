/* number_integers: number_read_integers of each level of instructions; internal to the text
 * modules.
 *
 * Both have number_read_integers' contract (number.h) and differ in where they stop and in speed.
 * The one with AVX2 must not be called where cpu_text_level is below; elsewhere than on x86-64 it
 * does not exist. */
#ifndef SERVER_TEXT_NUMBER_INTEGERS_H
#define SERVER_TEXT_NUMBER_INTEGERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/number/number_fast.h"

enum { NUMBER_INTEGER_DIGITS = 10 /* of the largest int32_t */ };

size_t number_integers_portable(const char *text, const char *end, int32_t *out, size_t room,
                                const char **stop);
size_t number_integers_avx2(const char *text, const char *end, int32_t *out, size_t room,
                            const char **stop);

/* The integer of these digits, of which there are from 1 to NUMBER_INTEGER_DIGITS; they may be more
 * than 32 bits. 16 bytes are readable. */
static inline int64_t number_integer_of(const char *digit, unsigned count) {
  const uint64_t first = number_load8(digit);
  if (__builtin_expect(count <= 8, 1)) return (int64_t)number_sum8(number_align8(first, count));
  const unsigned rest = count - 8;
  const uint64_t high = number_sum8(number_align8(first, 8));
  const uint64_t low = number_sum8(number_align8(number_load8(digit + 8), rest));
  return (int64_t)(high * number_power8(rest) + low);
}

/* Gives the magnitude its sign. False: that is no int32_t. */
static inline bool number_integer_sign(int64_t magnitude, bool negative, int32_t *value) {
  const int64_t signed_value = negative ? -magnitude : magnitude;
  *value = (int32_t)signed_value;
  return *value == signed_value;
}

#endif
