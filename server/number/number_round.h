/* number_round: some decimal digits and a power of ten -> the nearest float32; internal to the text
 * modules. */
#ifndef SERVER_TEXT_NUMBER_ROUND_H
#define SERVER_TEXT_NUMBER_ROUND_H

#include <stdbool.h>
#include <stdint.h>

/* Rounds m * 10^exponent or, if `more` (then m > 0), any number up to (m + 1) * 10^exponent to the
 * bits of the nearest float (NUMBER_INFINITE on overflow). False if these numbers are too close to
 * a midpoint to decide; *bits is then the float below it. */
bool number_round(uint64_t m, int64_t exponent, bool more, uint32_t *bits);

/* Rounds the number from `text` to `end` (by JSON's grammar), which is about halfway between the
 * float `below`, bits without a sign, and the next. False if it has too many digits for 384 bits:
 * about 115. */
bool number_tie(const char *text, const char *end, uint32_t below, uint32_t *bits);

#endif
