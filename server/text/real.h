/* real: reals in the fewest digits that read back the same; Jansson writes 17. */
#ifndef SERVER_TEXT_REAL_H
#define SERVER_TEXT_REAL_H

#include <stddef.h>

/* The double whose shortest text is that of the finite float32 `value`: 0.7 for 0.7f. */
double real_of_float(float value);

/* Shortens the reals of a JSON text in place, except in strings: 0.69999999999999996 becomes 0.7,
 * which is the same double. The text ends with a NUL before and after. Returns the new length,
 * which is at most the old one. */
size_t real_shorten(char *text);

#endif
