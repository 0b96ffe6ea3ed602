/* number_tie: a number about halfway between two floats, decided by all its digits.
 *
 * Number and midpoint are brought to integers of up to 128 bits, which are compared. */
#include "server/text/number_tie.h"

#include "server/text/number_fast.h"
#include "server/text/number_powers.h"

enum {
  FIVES_MOST = 44,    /* 5^44 * 2^25 < 2^128 */
  EXPONENT_MOST = 999 /* no float is near that, unless there are as many zeros */
};

/* digits / 10^places */
struct exact {
  unsigned __int128 digits;
  int places;
};

static const char *digits_end(const char *p) {
  while (number_is_digit(*p)) p++;
  return p;
}

/* Appends the digits from p to `end`; false if they are too many. */
static bool append(struct exact *x, const char *p, const char *end) {
  for (; end - p >= 8; p += 8) {
    if (x->digits >> 101 != 0) return false; /* times 10^8 < 2^27 */
    x->digits = x->digits * number_power8(8) + number_sum8(number_align8(number_load8(p), 8));
  }
  for (; p < end; p++) {
    if (x->digits >> 124 != 0) return false;
    x->digits = x->digits * 10 + (unsigned char)(*p - '0');
  }
  return true;
}

static bool take_number(struct exact *x, const char *p) {
  p += *p == '-';
  const char *point = digits_end(p), *fraction = point + (*point == '.');
  const char *behind = fraction == point ? point : digits_end(fraction), *last = behind;
  while (last > fraction && last[-1] == '0') last--;
  if (!append(x, p, point) || !append(x, fraction, last)) return false;
  int exponent = 0;
  bool negative = false;
  if ((*behind | 32) == 'e') {
    negative = *++behind == '-';
    behind += *behind == '-' || *behind == '+';
    for (; number_is_digit(*behind) && exponent <= EXPONENT_MOST; behind++)
      exponent = exponent * 10 + (*behind - '0');
  }
  if (last - fraction > EXPONENT_MOST) return false;
  x->places = (int)(last - fraction) + (negative ? exponent : -exponent);
  for (; x->places < 0 && x->digits >> 124 == 0; x->places++) x->digits *= 10;
  return exponent <= EXPONENT_MOST && x->places >= 0;
}

/* 5^count, up to NUMBER_POWER_EXACT. */
static uint64_t power_of_five(int count) {
  uint64_t power = number_power(count);
  return power >> __builtin_ctzll(power);
}

static int zeros_above(unsigned __int128 x) {
  uint64_t high = (uint64_t)(x >> 64);
  return high ? __builtin_clzll(high) : 64 + __builtin_clzll((uint64_t)x);
}

/* The sign of a * 2^shift - b; neither is 0. */
static int compare(unsigned __int128 a, int shift, unsigned __int128 b) {
  if (shift >= 0) {
    if (zeros_above(a) < shift) return 1;
    a <<= shift;
  } else {
    if (zeros_above(b) < -shift) return -1;
    b <<= -shift;
  }
  return (a > b) - (a < b);
}

bool number_tie(const char *text, uint32_t below, uint32_t *bits) {
  struct exact x = {0};
  if (!take_number(&x, text) || x.digits == 0 || x.places > FIVES_MOST) return false;
  /* The midpoint is half / 2^down. */
  uint32_t field = below >> 23, mantissa = below & 0x7fffff;
  if (field > 0) mantissa |= 0x800000;
  unsigned __int128 half = 2 * mantissa + 1;
  int down = 151 - (field > 0 ? (int)field : 1);
  /* digits / (2 * 5)^places against that. */
  int fives = x.places < NUMBER_POWER_EXACT ? x.places : NUMBER_POWER_EXACT;
  half = half * power_of_five(fives) * power_of_five(x.places - fives);
  int order = compare(x.digits, down - x.places, half);
  *bits = below + (order > 0 || (order == 0 && (below & 1)));
  return true;
}
