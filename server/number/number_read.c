/* number_read: JSON number text -> float32, any number.
 *
 * number_round rounds the first 19 digits. If these do not decide, the value is, or might be, a
 * tie: number_tie then compares all digits with the midpoint, or number_scan reads each of them if
 * there are very many. */
#include "server/number/number.h"

#include "server/number/number_bits.h"
#include "server/number/number_fast.h"
#include "server/number/number_round.h"
#include "server/number/number_scan.h"

enum { DIGITS = 19 }; /* 10^19 < 2^64 */

/* A number as it is read: the digits before and after the dot are one integer. */
struct number_read_decimal {
  const char *readable; /* bytes up to here may be read, even after the number */
  uint64_t m;
  int64_t exponent;
  unsigned count; /* digits in m, leading zeros not counted */
  bool more;      /* a digit other than 0 did not fit into m */
};

/* Reads the next eight characters. False, and none is read, if one is no digit or m has room for
 * some of them only. */
static bool read_eight(struct number_read_decimal *d, const char *p, int place) {
  bool fit = d->count + 8 <= DIGITS;
  if (d->readable - p < 8 || !(fit || d->count == DIGITS)) return false;
  uint64_t word = number_load8(p), digits = number_align8(word, 8);
  if (!number_all_digits8(digits)) return false;
  if (fit) {
    const unsigned zeros = digits ? (unsigned)__builtin_ctzll(digits) / 8 : 8; /* leading ones */
    d->count += 8 - (d->m == 0 ? zeros : 0);
    d->m = d->m * number_power8(8) + number_sum8(digits);
    d->exponent -= 8 * place;
  } else {
    d->more |= digits != 0;
    d->exponent += 8 * (1 - place);
  }
  return true;
}

/* Reads the digits at p; `place` is 1 after the dot, else 0. Returns their end. */
static const char *read_digits(struct number_read_decimal *d, const char *p, int place) {
  for (; number_is_digit(*p); p++) {
    while (read_eight(d, p, place)) p += 8;
    if (!number_is_digit(*p)) break;
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

/* Reads `e`, a sign and digits. NULL if they are malformed; *end is then the offending byte. */
static const char *read_exponent(struct number_read_decimal *d, const char *p, const char **end) {
  p++;
  bool negative = *p == '-';
  p += *p == '-' || *p == '+';
  *end = p;
  if (!number_is_digit(*p)) return NULL;
  int64_t exponent = *p++ - '0', sign = -(int64_t)negative;
  for (; number_is_digit(*p); p++)
    if (exponent < INT64_MAX / 100) exponent = exponent * 10 + (*p - '0');
  d->exponent += (exponent ^ sign) - sign; /* no branch: signs are unpredictable */
  return p;
}

/* Rounds the digits of `d`; if these do not decide, all digits of the text are read. */
static enum number_verdict round_decimal(const char *text, const char *end,
                                         const struct number_read_decimal *d, float *value) {
  uint32_t bits;
  if (!number_round(d->m, d->exponent, d->more, &bits) && !number_tie(text, end, bits, &bits)) {
    struct number_scan s;
    number_scan_begin(&s);
    while (number_scan_byte(&s, *text) == NUMBER_SCAN_TAKEN) text++;
    return number_scan_float(&s, value);
  }
  if (bits == NUMBER_INFINITE) return NUMBER_TOO_LARGE;
  bits |= (uint32_t)(*text == '-') << 31;
  memcpy(value, &bits, sizeof bits);
  return NUMBER_OK;
}

/* Reads a number with more digits than number_fast reads, or a malformed one. Its end is unknown:
 * the bytes after its first NUMBER_READ_MARGIN are read one by one, not eight at a time. */
static enum number_verdict read_any(const char *text, const char **end, float *value) {
  struct number_read_decimal d = {.readable = text + NUMBER_READ_MARGIN};
  const char *p = text + (*text == '-');
  *end = p;
  if (!number_is_digit(*p)) return NUMBER_MALFORMED;
  if (*p == '0') {
    *end = ++p;
    if (number_is_digit(*p)) return NUMBER_MALFORMED;
  } else {
    p = read_digits(&d, p, 0);
  }
  if (*p == '.') {
    *end = ++p;
    if (!number_is_digit(*p)) return NUMBER_MALFORMED;
    p = read_digits(&d, p, 1);
  }
  if ((*p | 32) == 'e') {
    p = read_exponent(&d, p, end);
    if (!p) return NUMBER_MALFORMED;
  }
  *end = p;
  return round_decimal(text, p, &d, value);
}

enum number_verdict number_read(const char *text, const char **end, float *value) {
  struct number_plain n;
  if (!number_read_plain(text, &n)) return read_any(text, end, value);
  const char *p = n.end;
  struct number_read_decimal d = {.m = n.m, .exponent = -(int64_t)n.places};
  if ((*p | 32) == 'e') {
    p = read_exponent(&d, p, end);
    if (!p) return NUMBER_MALFORMED;
    *end = p;
    return round_decimal(text, p, &d, value);
  }
  *end = p;
  if (n.m >> 63 == 0 && number_plain_float((int64_t)n.m, n.places, n.negative, value))
    return NUMBER_OK;
  return round_decimal(text, p, &d, value);
}
