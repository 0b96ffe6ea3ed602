/* number_tie: a number about halfway between two floats, decided by all its digits; internal to the
 * text modules. */
#ifndef SERVER_TEXT_NUMBER_TIE_H
#define SERVER_TEXT_NUMBER_TIE_H

#include <stdbool.h>
#include <stdint.h>

/* The number from `text` to `end` (by JSON's grammar) rounds to the float `below`, bits without a
 * sign, or to the next: tells which. False if it has too many digits for 384 bits: about 115. */
bool number_tie(const char *text, const char *end, uint32_t below, uint32_t *bits);

#endif
