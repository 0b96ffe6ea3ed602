/* number_scan: a JSON number read byte by byte, for what arrives in pieces or needs every digit;
 * internal to the text modules. Whatever the length of the number, the memory is bounded. */
#ifndef SERVER_TEXT_NUMBER_SCAN_H
#define SERVER_TEXT_NUMBER_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/number/number.h"

/* A midpoint of two neighbouring floats has at most 113 significant digits. Of what follows these
 * 128, it matters only whether it is zero. */
enum { NUMBER_SCAN_DIGITS = 128 };

enum number_part {
  NUMBER_PART_START,
  NUMBER_PART_SIGN,
  NUMBER_PART_ZERO, /* a leading zero: no digit may follow */
  NUMBER_PART_INTEGER,
  NUMBER_PART_DOT,
  NUMBER_PART_FRACTION,
  NUMBER_PART_E,
  NUMBER_PART_E_SIGN,
  NUMBER_PART_EXPONENT
};

struct number_scan {
  enum number_part part;
  bool negative, exponent_negative;
  bool integer;     /* no fraction, no exponent so far */
  bool more;        /* a digit other than 0 was left out behind those kept */
  size_t count;     /* significant digits kept */
  int64_t point;    /* the value is 0.ddd... * 10^(point + exponent) */
  int64_t exponent; /* as written, without its sign */
  char digit[NUMBER_SCAN_DIGITS];
};

enum number_scanned {
  NUMBER_SCAN_TAKEN,    /* the byte is part of the number */
  NUMBER_SCAN_END,      /* it is not: the number is whole without it */
  NUMBER_SCAN_MALFORMED /* no number has this byte here */
};

void number_scan_begin(struct number_scan *s);

/* Reads the next byte. */
enum number_scanned number_scan_byte(struct number_scan *s, char c);

/* The value of a whole number; never NUMBER_MALFORMED. */
enum number_verdict number_scan_float(const struct number_scan *s, float *value);

/* The same for an integer; NUMBER_MALFORMED: written with a fraction or an exponent. */
enum number_verdict number_scan_integer(const struct number_scan *s, int32_t *value);

#endif
