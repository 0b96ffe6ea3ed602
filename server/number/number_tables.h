/* number_tables: powers of ten to 64 bits with their logarithms, and the places of digits as
 * shuffles.
 *
 * 10^k lies in (T - 1, T] * 2^(number_log2_pow10(k) - 63), where T = number_power(k) has its top
 * bit set. It equals T for 0 <= k <= NUMBER_POWER_EXACT, where 5^k has no more than 64 bits. */
#ifndef SERVER_TEXT_NUMBER_TABLES_H
#define SERVER_TEXT_NUMBER_TABLES_H

#include <stdbool.h>
#include <stdint.h>

enum {
  NUMBER_POWER_MIN =
      -65,               /* reading: 19 digits times this power are below half the least denormal */
  NUMBER_POWER_MAX = 45, /* writing: the least denormal needs it */
  NUMBER_POWER_EXACT = 27,
  NUMBER_DOUBLE_MIN = -31, /* the table of doubles: normal floats need no more */
  NUMBER_DOUBLE_MAX = 45
};

extern const uint64_t number_powers[NUMBER_POWER_MAX - NUMBER_POWER_MIN + 1];

/* 10^k as the nearest double, at k - NUMBER_DOUBLE_MIN. It exists only on x86-64. */
extern const double number_power_doubles[NUMBER_DOUBLE_MAX - NUMBER_DOUBLE_MIN + 1];

static inline uint64_t number_power(int k) { return number_powers[k - NUMBER_POWER_MIN]; }

static inline bool number_power_exact(int k) { return k >= 0 && k <= NUMBER_POWER_EXACT; }

/* Logarithms, rounded down; correct for every k of the table and every exponent of a float32. */
static inline int number_log2_pow10(int k) { return (k * 1741647) >> 19; }
static inline int number_log10_pow2(int q) { return (q * 1262611) >> 22; }
static inline int number_log10_three_quarters_pow2(int q) { return (q * 1262611 - 524031) >> 22; }

enum {
  NUMBER_LAYOUTS = 14,    /* one for each number of digits after the dot */
  NUMBER_LAYOUT_LAST = 14 /* place of the last digit */
};

/* Shuffles from a dot and 15 digits, right-aligned, to 14 digits with the dot among them. The
 * shuffle from byte 14 - n on makes the text begin n places before the last digit. It exists only
 * on x86-64, for AVX2. */
extern const uint8_t number_layouts[NUMBER_LAYOUTS][32];

#endif
