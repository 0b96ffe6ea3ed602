/* number_scan: a JSON number read byte by byte. */
#include "server/number/number_scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/number/number_bits.h"
#include "server/number/number_fast.h"
#include "server/number/number_round.h"

enum {
  DIGITS = 19,         /* 10^19 < 2^64 */
  LARGEST_POINT = 39,  /* 0.1 * 10^40 exceeds the float32 range */
  LEAST_POINT = -50,   /* 0.9... * 10^-50 rounds to zero */
  INTEGER_DIGITS = 10, /* digits of the largest int32_t */
};

void number_scan_begin(struct number_scan *s) {
  s->part = NUMBER_PART_START;
  s->negative = s->exponent_negative = false;
  s->integer = true;
  s->more = false;
  s->count = 0;
  s->point = s->exponent = 0;
}

/* Adds a digit of the integer part or of the fraction. */
static void add_digit(struct number_scan *s, char c) {
  bool before_dot = s->integer;
  if (s->count == 0 && c == '0') { /* leading zeros count only after the dot */
    s->point -= !before_dot;
    return;
  }
  s->point += before_dot;
  if (s->count < NUMBER_SCAN_DIGITS)
    s->digit[s->count++] = c;
  else
    s->more |= c != '0';
}

static enum number_scanned enter_part(struct number_scan *s, enum number_part part) {
  s->part = part;
  return NUMBER_SCAN_TAKEN;
}

/* A whole integer part may be followed by a fraction, an exponent, or the end of the number. */
static enum number_scanned after_integer(struct number_scan *s, char c) {
  if (c == '.') {
    s->integer = false;
    return enter_part(s, NUMBER_PART_DOT);
  }
  if (c == 'e' || c == 'E') {
    s->integer = false;
    return enter_part(s, NUMBER_PART_E);
  }
  return NUMBER_SCAN_END;
}

static enum number_scanned add_exponent_digit(struct number_scan *s, char c) {
  /* The exponent stops growing where it exceeds the digits that any body can have. */
  if (s->exponent < INT64_MAX / 100) s->exponent = s->exponent * 10 + (c - '0');
  return enter_part(s, NUMBER_PART_EXPONENT);
}

static enum number_scanned add_integer_digit(struct number_scan *s, char c) {
  bool leading_zero = c == '0' && s->part != NUMBER_PART_INTEGER;
  add_digit(s, c);
  return enter_part(s, leading_zero ? NUMBER_PART_ZERO : NUMBER_PART_INTEGER);
}

enum number_scanned number_scan_byte(struct number_scan *s, char c) {
  bool digit = number_is_digit(c);
  switch (s->part) {
  case NUMBER_PART_START:
    if (c == '-') {
      s->negative = true;
      return enter_part(s, NUMBER_PART_SIGN);
    }
    return digit ? add_integer_digit(s, c) : NUMBER_SCAN_MALFORMED;
  case NUMBER_PART_SIGN:
    return digit ? add_integer_digit(s, c) : NUMBER_SCAN_MALFORMED;
  case NUMBER_PART_ZERO:
    return digit ? NUMBER_SCAN_MALFORMED : after_integer(s, c);
  case NUMBER_PART_INTEGER:
    return digit ? add_integer_digit(s, c) : after_integer(s, c);
  case NUMBER_PART_DOT:
    if (!digit) return NUMBER_SCAN_MALFORMED;
    add_digit(s, c);
    return enter_part(s, NUMBER_PART_FRACTION);
  case NUMBER_PART_FRACTION:
    if (digit) {
      add_digit(s, c);
      return NUMBER_SCAN_TAKEN;
    }
    return c == 'e' || c == 'E' ? enter_part(s, NUMBER_PART_E) : NUMBER_SCAN_END;
  case NUMBER_PART_E:
    if (c == '-' || c == '+') {
      s->exponent_negative = c == '-';
      return enter_part(s, NUMBER_PART_E_SIGN);
    }
    return digit ? add_exponent_digit(s, c) : NUMBER_SCAN_MALFORMED;
  case NUMBER_PART_E_SIGN:
    return digit ? add_exponent_digit(s, c) : NUMBER_SCAN_MALFORMED;
  case NUMBER_PART_EXPONENT:
    return digit ? add_exponent_digit(s, c) : NUMBER_SCAN_END;
  }
  return NUMBER_SCAN_MALFORMED;
}

/* Converts all digits kept, as an integer with an exponent: without a dot no locale can misread it.
 * A last 1 stands for all digits left out: no midpoint lies between it and the true value. */
static float convert_all_digits(const struct number_scan *s, int point) {
  char text[NUMBER_SCAN_DIGITS + 32];
  memcpy(text, s->digit, s->count);
  size_t count = s->count;
  if (s->more) text[count++] = '1';
  snprintf(text + count, sizeof text - count, "e%d", point - (int)count);
  return strtof(text, NULL);
}

enum number_verdict number_scan_float(const struct number_scan *s, float *value) {
  int64_t point = s->point + (s->exponent_negative ? -s->exponent : s->exponent);
  uint32_t bits = 0;
  if (s->count > 0 && point > LARGEST_POINT) return NUMBER_TOO_LARGE;
  if (s->count > 0 && point >= LEAST_POINT) {
    size_t taken = s->count < DIGITS ? s->count : DIGITS;
    uint64_t m = 0;
    for (size_t i = 0; i < taken; i++) m = m * 10 + (unsigned char)(s->digit[i] - '0');
    bool more = s->more || s->count > taken;
    if (!number_round(m, point - (int64_t)taken, more, &bits)) {
      float rounded = convert_all_digits(s, (int)point);
      memcpy(&bits, &rounded, sizeof bits);
    }
  }
  if (bits == NUMBER_INFINITE) return NUMBER_TOO_LARGE;
  bits |= (uint32_t)s->negative << 31;
  memcpy(value, &bits, sizeof bits);
  return NUMBER_OK;
}

enum number_verdict number_scan_integer(const struct number_scan *s, int32_t *value) {
  if (!s->integer) return NUMBER_MALFORMED;
  if (s->point > INTEGER_DIGITS) return NUMBER_TOO_LARGE;
  int64_t v = 0;
  for (size_t i = 0; i < s->count; i++) v = v * 10 + (s->digit[i] - '0');
  if (s->negative) v = -v;
  if (v < INT32_MIN || v > INT32_MAX) return NUMBER_TOO_LARGE;
  *value = (int32_t)v;
  return NUMBER_OK;
}
