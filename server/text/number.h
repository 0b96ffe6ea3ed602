/* number: JSON number text <-> float32, one number or a run of them. Pure functions, no memory.
 *
 * Reading rounds as strtof does (to nearest, ties to even). Writing gives the shortest decimal that
 * reads back as the same float32, character for character what C++'s std::to_chars(float) gives. */
#ifndef SERVER_TEXT_NUMBER_H
#define SERVER_TEXT_NUMBER_H

#include <stddef.h>
#include <stdint.h>

enum {
  NUMBER_TEXT_MAX = 15,    /* "-1.17549435e-38" */
  NUMBER_READ_MARGIN = 64, /* bytes that must be readable behind the text given to number_read */
  NUMBER_WRITE_MARGIN = 32 /* bytes that must be writable behind the text written */
};

enum number_verdict { NUMBER_OK, NUMBER_MALFORMED, NUMBER_TOO_LARGE /* beyond float32 */ };

/* Reads the number that starts at `text` (a digit or '-') by JSON's grammar. The byte behind the
 * number is there and is no part of it. On NUMBER_OK *end is behind the number; on
 * NUMBER_MALFORMED it is the offending byte. */
enum number_verdict number_read(const char *text, const char **end, float *value);

/* Writes `value`, finite, at `out`; returns the end. Up to NUMBER_WRITE_MARGIN bytes are touched.
 */
char *number_write(char *out, float value);

/* Writes a number without a fraction. */
char *number_write_integer(char *out, int64_t value);

/* Writes `count` numbers separated by commas; returns the end. */
char *number_write_row(char *out, const float *value, size_t count);

#endif
