/* number_scan: a JSON number read byte by byte, for numbers that arrive in pieces or need every
 * digit; internal to the text modules. The memory is bounded whatever the length of the number. */
#ifndef SERVER_TEXT_NUMBER_SCAN_H
#define SERVER_TEXT_NUMBER_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/number/number.h"

/* A midpoint of two neighbouring floats has at most 113 significant digits. The
 * digits after these 128 matter only by whether all are zero. */
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
  bool integer;     /* whether there is no fraction and no exponent so far */
  bool more;        /* whether a digit other than 0 was left out after the kept ones */
  size_t count;     /* significant digits kept */
  int64_t point;    /* the value is 0.ddd... * 10^(point + exponent) */
  int64_t exponent; /* as written, without its sign */
  char digit[NUMBER_SCAN_DIGITS];
};

enum number_scanned {
  NUMBER_SCAN_TAKEN,    /* the byte is part of the number */
  NUMBER_SCAN_END,      /* the byte follows the number, which is whole */
  NUMBER_SCAN_MALFORMED /* no number has this byte here */
};

void number_scan_begin(struct number_scan *s);

/* Reads the next byte. */
enum number_scanned number_scan_byte(struct number_scan *s, char c);

/* The value of a whole number as float32; never NUMBER_MALFORMED. */
enum number_verdict number_scan_float(const struct number_scan *s, float *value);

/* The value as int32_t; NUMBER_MALFORMED if it is written with a fraction or an exponent. */
enum number_verdict number_scan_integer(const struct number_scan *s, int32_t *value);

#endif
