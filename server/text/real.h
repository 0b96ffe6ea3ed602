/* real: reals in as few digits as read back the same, where Jansson writes 17. */
#ifndef SERVER_TEXT_REAL_H
#define SERVER_TEXT_REAL_H

#include <stddef.h>

/* The double whose shortest text is that of the float32 `value`, which is finite: 0.7 of 0.7f. */
double real_of_float(float value);

/* Shortens the reals of a JSON text in place, those in strings aside: 0.69999999999999996 becomes
 * 0.7, which is the same double. Returns the length, at most the one before; behind it is a NUL,
 * as there was. */
size_t real_shorten(char *text);

#endif
