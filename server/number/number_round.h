/* number_round: some decimal digits and a power of ten -> the nearest float32; internal to the text
 * modules. */
#ifndef SERVER_TEXT_NUMBER_ROUND_H
#define SERVER_TEXT_NUMBER_ROUND_H

#include <stdbool.h>
#include <stdint.h>

/* m * 10^exponent, or if `more` (then m > 0) anything up to (m + 1) * 10^exponent, as the bits of
 * the nearest float (NUMBER_INFINITE if beyond). False if these numbers lie too close around a
 * midpoint to tell. */
bool number_round(uint64_t m, int64_t exponent, bool more, uint32_t *bits);

/* The number from `text` to `end` (by JSON's grammar) rounds to the float `below`, bits without a
 * sign, or to the next: tells which. False if it has too many digits for 384 bits: about 115. */
bool number_tie(const char *text, const char *end, uint32_t below, uint32_t *bits);

#endif
