/* number_read: JSON number text -> float32, for every number that the inlined part declines.
 *
 * The first 19 digits are rounded by number_round. Where these cannot tell, the value is, or might
 * be, a tie: number_scan then looks at every digit. */
#include "server/text/number.h"

#include "server/text/number_fast.h"
#include "server/text/number_round.h"
#include "server/text/number_scan.h"

enum { DIGITS = 19 }; /* 10^19 < 2^64 */

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
  if (bits == NUMBER_INFINITE) return NUMBER_TOO_LARGE;
  *value = float_of(bits, negative);
  return NUMBER_OK;
}
