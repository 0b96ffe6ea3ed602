/* number_bits: float32 as bits; internal to the text modules. Non-negative floats have the
 * order of their bits. */
#ifndef SERVER_TEXT_NUMBER_BITS_H
#define SERVER_TEXT_NUMBER_BITS_H

#include <stdint.h>

enum {
  NUMBER_MAGNITUDE = INT32_MAX,  /* all but the sign */
  NUMBER_STORED = (1 << 23) - 1, /* bits of the significand that a float stores */
  NUMBER_HIDDEN = 1 << 23,       /* its leading bit, which a normal float does not store */
  NUMBER_A_THOUSANDTH = 0x3a83126f,
  NUMBER_HUNDRED_THOUSAND = 0x47c35000,
  NUMBER_TWO_TO_24 = 0x4b800000,
  NUMBER_INFINITE = 0x7f800000 /* greater than all finite ones */
};

#endif
