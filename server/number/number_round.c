/* number_round: some decimal digits and a power of ten -> the nearest float32.
 *
 * The digits times a 64-bit power of ten enclose the value in an interval of about 2^-62 of its
 * size. If both ends round to one float, that is the result. All arithmetic is in integers, so that
 * neither the floating-point mode of the thread nor the locale matters. A number about halfway
 * between two floats is decided by all its digits (number_tie). */
#include "server/number/number_round.h"

#include "server/number/number_bits.h"
#include "server/number/number_fast.h"
#include "server/number/number_tables.h"

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
  exponent += 127 - zeros; /* the leading bit's from here on */
  if (exponent > FLOAT_BIAS) return NUMBER_INFINITE;

  int keep = exponent >= FLOAT_LEAST ? FLOAT_DIGITS : FLOAT_DIGITS - (FLOAT_LEAST - exponent);
  if (keep < 0) return 0;
  /* 63 bits are enough if the last says whether anything was cut off. */
  uint64_t rest = (uint64_t)product | ((uint64_t)(product >> 64) & 1);
  uint64_t v = (uint64_t)(product >> 65) | (rest != 0);
  int cut = 63 - keep;
  uint64_t kept = v >> cut, below = v & ((UINT64_C(1) << cut) - 1), half = UINT64_C(1) << (cut - 1);
  kept += below + (kept & 1) > half; /* no branch: it would be unpredictable */
  /* The leading bit of a normal number adds the 1 that its exponent field lacks. */
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
  /* An inexact power was rounded up by less than one. */
  least -= number_power_exact(k) ? 0 : left;
  *bits = round_product(least, binary);
  return least == most || *bits == round_product(most, binary);
}

/* --- ties ---
 *
 * The number and the midpoint are scaled to integers, which are compared. No midpoint has more than
 * 150 decimal places or, as an integer, more than 25 + 349 bits: 6 limbs hold each of them. */

enum {
  LIMBS = 6,
  EXPONENT_MOST = 999 /* no float is near it, unless there are as many zeros */
};

struct number_round_integer {
  uint64_t limb[LIMBS]; /* lowest first; only `count` of them are set */
  int count;            /* 0 for zero; else the highest limb is not 0 */
};

/* digits / 10^places */
struct number_round_digits {
  struct number_round_integer digits;
  int places;
};

/* x = x * factor + term, with factor > 0; false if the result has too many bits. */
static bool multiply(struct number_round_integer *x, uint64_t factor, uint64_t term) {
  for (int i = 0; i < x->count; i++) {
    unsigned __int128 product = (unsigned __int128)x->limb[i] * factor + term;
    x->limb[i] = (uint64_t)product;
    term = (uint64_t)(product >> 64);
  }
  if (term == 0) return true;
  if (x->count == LIMBS) return false;
  x->limb[x->count++] = term;
  return true;
}

/* 5^count, up to NUMBER_POWER_EXACT. */
static uint64_t power_of_five(int count) {
  uint64_t power = number_power(count);
  return power >> __builtin_ctzll(power);
}

static bool multiply_by_fives(struct number_round_integer *x, int count) {
  for (; count > NUMBER_POWER_EXACT; count -= NUMBER_POWER_EXACT)
    if (!multiply(x, power_of_five(NUMBER_POWER_EXACT), 0)) return false;
  return count <= 0 || multiply(x, power_of_five(count), 0);
}

static const char *digits_end(const char *p, const char *end) {
  while (end - p >= 8) {
    unsigned digits = number_digits8(number_load8(p));
    p += digits;
    if (digits < 8) return p;
  }
  while (p < end && number_is_digit(*p)) p++;
  return p;
}

/* Appends the digits from p to `end`; false if there are too many. */
static bool append(struct number_round_integer *x, const char *p, const char *end) {
  const uint64_t eight = number_power8(8);
  const char *begin = p;
  for (; end - p >= 16; p += 16) {
    uint64_t first = number_sum8(number_align8(number_load8(p), 8));
    uint64_t second = number_sum8(number_align8(number_load8(p + 8), 8));
    if (!multiply(x, eight * eight, first * eight + second)) return false;
  }
  uint64_t sum = 0, power = 1; /* value of the last 15 digits or fewer, 10 to their count */
  if (end - p >= 8) {
    sum = number_sum8(number_align8(number_load8(p), 8));
    power = eight;
    p += 8;
  }
  if (end - p > 0 &&
      end - begin >= 8) { /* the last eight, without the digits that are read already */
    unsigned left = (unsigned)(end - p), shift = 8 * (8 - left);
    uint64_t digits = number_align8(number_load8(end - 8), 8) >> shift << shift;
    sum = sum * number_power8(left) + number_sum8(digits);
    power *= number_power8(left);
    p = end;
  }
  for (; p < end; p++, power *= 10) sum = sum * 10 + (unsigned char)(*p - '0');
  return multiply(x, power, sum);
}

static bool collect_digits(struct number_round_digits *x, const char *p, const char *end) {
  p += *p == '-';
  const char *point = digits_end(p, end), *fraction = point, *after = point;
  if (point < end && *point == '.') after = digits_end(++fraction, end);
  const char *last = after;
  while (last > fraction && last[-1] == '0') last--;
  if (!append(&x->digits, p, point) || !append(&x->digits, fraction, last)) return false;
  int exponent = 0;
  bool negative = false;
  if (after < end) { /* an `e` */
    negative = *++after == '-';
    after += *after == '-' || *after == '+';
    for (; after < end && exponent <= EXPONENT_MOST; after++)
      exponent = exponent * 10 + (*after - '0');
  }
  if (exponent > EXPONENT_MOST || last - fraction > EXPONENT_MOST) return false;
  x->places = (int)(last - fraction) + (negative ? exponent : -exponent);
  return true;
}

static int bit_length(const struct number_round_integer *x) {
  return 64 * x->count - __builtin_clzll(x->limb[x->count - 1]);
}

/* Shifts x up; bits beyond the highest limb are lost. */
static void shift_up(struct number_round_integer *x, int bits, int count) {
  int limbs = bits / 64, rest = bits % 64;
  for (int i = count; i-- > 0;) {
    uint64_t high = i >= limbs && i - limbs < x->count ? x->limb[i - limbs] : 0;
    uint64_t low = i > limbs && i - limbs <= x->count ? x->limb[i - limbs - 1] : 0;
    x->limb[i] = high << rest | (low >> 1) >> (63 - rest);
  }
  x->count = count;
}

/* The sign of a * 2^shift - b; neither is 0. Both are overwritten. */
static int compare_shifted(struct number_round_integer *a, int shift,
                           struct number_round_integer *b) {
  int longer = bit_length(a) + shift - bit_length(b);
  if (longer != 0) return longer > 0 ? 1 : -1;
  /* The shorter one is shifted up to the length of the other, so that no bit is lost. */
  if (shift >= 0)
    shift_up(a, shift, b->count);
  else
    shift_up(b, -shift, a->count);
  for (int i = a->count; i-- > 0;)
    if (a->limb[i] != b->limb[i]) return a->limb[i] > b->limb[i] ? 1 : -1;
  return 0;
}

bool number_tie(const char *text, const char *end, uint32_t below, uint32_t *bits) {
  struct number_round_digits x;
  x.digits.count = 0;
  if (!collect_digits(&x, text, end) || x.digits.count == 0) return false;
  /* The midpoint is half / 2^down. */
  uint32_t field = below >> 23, mantissa = below & 0x7fffff;
  if (field > 0) mantissa |= 0x800000;
  int down = 151 - (field > 0 ? (int)field : 1);
  struct number_round_integer half;
  half.limb[0] = 2 * mantissa + 1;
  half.count = 1;
  /* digits / (2 * 5)^places is compared with it. */
  if (!multiply_by_fives(&half, x.places) || !multiply_by_fives(&x.digits, -x.places)) return false;
  int order = compare_shifted(&x.digits, down - x.places, &half);
  *bits = below + (order > 0 || (order == 0 && (below & 1)));
  return true;
}
