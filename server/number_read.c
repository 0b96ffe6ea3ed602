/* number_read: JSON number text -> float32, for every number that the inlined part declines.
 *
 * The first 19 digits times a 64-bit power of ten enclose the value in an interval of about 2^-62
 * of its size. If both ends round to one float, that is it. Else the value is, or might be, a tie:
 * number_scan then looks at every digit. All of it is done in integers, so that neither the
 * floating-point mode of the thread nor the locale matters. */
#include "server/number.h"

#include "server/number_fast.h"
#include "server/number_powers.h"
#include "server/number_scan.h"

enum {
  FLOAT_BIAS = 127,
  FLOAT_DIGITS = 24,
  FLOAT_LEAST = -126, /* exponent of the least normal number */
  DIGITS = 19         /* 10^19 < 2^64 */
};
static const uint32_t INFINITE = UINT32_C(0xff) << 23;

/* product * 2^exponent as the bits of a float, to nearest, ties to even. */
static uint32_t round_product(unsigned __int128 product, int exponent) {
  uint64_t high = (uint64_t)(product >> 64);
  int zeros = __builtin_clzll(high); /* 0 or 1: both factors were normalised */
  product <<= zeros;
  exponent += 127 - zeros; /* now of the leading bit */
  if (exponent > FLOAT_BIAS) return INFINITE;

  int keep = exponent >= FLOAT_LEAST ? FLOAT_DIGITS : FLOAT_DIGITS - (FLOAT_LEAST - exponent);
  if (keep < 0) return 0;
  /* 63 bits are enough, if the last says whether anything was cut off. */
  uint64_t rest = (uint64_t)product | ((uint64_t)(product >> 64) & 1);
  uint64_t v = (uint64_t)(product >> 65) | (rest != 0);
  int cut = 63 - keep;
  uint64_t kept = v >> cut, below = v & ((UINT64_C(1) << cut) - 1), half = UINT64_C(1) << (cut - 1);
  if (below > half || (below == half && (kept & 1))) kept++;
  /* The leading bit of a normal number adds the one that its exponent still lacks. */
  uint32_t field = exponent >= FLOAT_LEAST ? (uint32_t)(exponent - FLOAT_LEAST) << 23 : 0;
  return field + (uint32_t)kept;
}

bool number_round(uint64_t m, int64_t exponent, bool more, uint32_t *bits) {
  *bits = 0;
  if (m == 0) return true;
  if (exponent > 38) *bits = INFINITE;
  if (exponent > 38 || exponent < NUMBER_POWER_MIN) return true;
  int k = (int)exponent, zeros = __builtin_clzll(m);
  uint64_t power = number_power(k), left = m << zeros;
  int binary = number_log2_pow10(k) - 63 - zeros;
  unsigned __int128 least = (unsigned __int128)left * power, most = least;
  if (more) most += (unsigned __int128)power << zeros;
  if (!number_power_exact(k)) least -= left; /* the power was rounded up, by less than one */
  *bits = round_product(least, binary);
  return least == most || *bits == round_product(most, binary);
}

static float float_of(uint32_t bits, bool negative) {
  bits |= (uint32_t)negative << 31;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* A number as it is read: the digits before and behind the dot are one integer. */
struct decimal {
  uint64_t m;
  int64_t exponent;
  unsigned count; /* digits in m, leading zeros not counted */
  bool more;      /* a digit other than 0 did not fit into m */
};

/* Takes the digits at p, `place` times 10^-1 each; returns their end. */
static const char *take_digits(struct decimal *d, const char *p, int place) {
  for (; number_is_digit(*p); p++) {
    unsigned digit = (unsigned char)(*p - '0');
    if (d->count < DIGITS) {
      d->m = d->m * 10 + digit;
      d->count += d->m != 0;
      d->exponent -= place;
    } else {
      d->more |= digit != 0;
      d->exponent += 1 - place;
    }
  }
  return p;
}

/* Takes `e`, a sign and digits; NULL, and the offending byte in *end, if that is not what is there.
 */
static const char *take_exponent(struct decimal *d, const char *p, const char **end) {
  p++;
  bool negative = *p == '-';
  if (*p == '-' || *p == '+') p++;
  *end = p;
  if (!number_is_digit(*p)) return NULL;
  int64_t exponent = 0;
  for (; number_is_digit(*p); p++)
    if (exponent < INT64_MAX / 100) exponent = exponent * 10 + (*p - '0');
  d->exponent += negative ? -exponent : exponent;
  return p;
}

/* The number in text[0 .. ] again, every digit of it. */
static enum number_verdict read_exactly(const char *text, float *value) {
  struct number_scan s;
  number_scan_begin(&s);
  while (number_scan_byte(&s, *text) == NUMBER_STEP_TAKEN) text++;
  return number_scan_float(&s, value);
}

enum number_verdict number_read(const char *text, const char **end, float *value) {
  if (number_read_fast(text, end, value)) return NUMBER_OK;
  struct decimal d = {0};
  bool negative = *text == '-';
  const char *p = text + negative;
  *end = p;
  if (!number_is_digit(*p)) return NUMBER_MALFORMED;
  if (*p == '0') {
    *end = ++p;
    if (number_is_digit(*p)) return NUMBER_MALFORMED;
  } else {
    p = take_digits(&d, p, 0);
  }
  if (*p == '.') {
    *end = ++p;
    if (!number_is_digit(*p)) return NUMBER_MALFORMED;
    p = take_digits(&d, p, 1);
  }
  if ((*p | 32) == 'e') {
    p = take_exponent(&d, p, end);
    if (!p) return NUMBER_MALFORMED;
  }
  *end = p;
  uint32_t bits;
  if (!number_round(d.m, d.exponent, d.more, &bits)) return read_exactly(text, value);
  if (bits == INFINITE) return NUMBER_TOO_LARGE;
  *value = float_of(bits, negative);
  return NUMBER_OK;
}
