/* number_round: some decimal digits and a power of ten -> the nearest float32.
 *
 * The digits times a 64-bit power of ten enclose the value in an interval of about 2^-62 of its
 * size. If both ends round to one float, that is it. All of it is done in integers, so that neither
 * the floating-point mode of the thread nor the locale matters. */
#include "server/number/number_round.h"

#include "server/number/number_bits.h"
#include "server/number/number_powers.h"

enum {
  FLOAT_BIAS = 127,
  FLOAT_DIGITS = 24,
  FLOAT_LEAST = -126 /* exponent of the least normal number */
};

/* product * 2^exponent as the bits of a float, to nearest, ties to even. */
static uint32_t round_product(unsigned __int128 product, int exponent) {
  uint64_t high = (uint64_t)(product >> 64);
  int zeros = __builtin_clzll(high); /* 0 or 1: both factors were normalised */
  product <<= zeros;
  exponent += 127 - zeros; /* now of the leading bit */
  if (exponent > FLOAT_BIAS) return NUMBER_INFINITE;

  int keep = exponent >= FLOAT_LEAST ? FLOAT_DIGITS : FLOAT_DIGITS - (FLOAT_LEAST - exponent);
  if (keep < 0) return 0;
  /* 63 bits are enough, if the last says whether anything was cut off. */
  uint64_t rest = (uint64_t)product | ((uint64_t)(product >> 64) & 1);
  uint64_t v = (uint64_t)(product >> 65) | (rest != 0);
  int cut = 63 - keep;
  uint64_t kept = v >> cut, below = v & ((UINT64_C(1) << cut) - 1), half = UINT64_C(1) << (cut - 1);
  kept += below + (kept & 1) > half; /* no branch: it would be guessed wrong half the time */
  /* The leading bit of a normal number adds the one that its exponent still lacks. */
  uint32_t field = exponent >= FLOAT_LEAST ? (uint32_t)(exponent - FLOAT_LEAST) << 23 : 0;
  return field + (uint32_t)kept;
}

bool number_round(uint64_t m, int64_t exponent, bool more, uint32_t *bits) {
  *bits = 0;
  if (m == 0) return true;
  if (exponent > 38) *bits = NUMBER_INFINITE;
  if (exponent > 38 || exponent < NUMBER_POWER_MIN) return true;
  int k = (int)exponent, zeros = __builtin_clzll(m);
  uint64_t power = number_power(k), left = m << zeros;
  int binary = number_log2_pow10(k) - 63 - zeros;
  unsigned __int128 least = (unsigned __int128)left * power, most = least;
  if (more) most += (unsigned __int128)power << zeros;
  /* Else the power was rounded up, by less than one. */
  least -= number_power_exact(k) ? 0 : left;
  *bits = round_product(least, binary);
  return least == most || *bits == round_product(most, binary);
}
