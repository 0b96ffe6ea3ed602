/* number: JSON number text <-> float32, one number or a stretch of them, and integers in stretches.
 * Pure functions, no memory. The readers of stretches are chosen by the processor's
 * instructions (cpu_text_level); where a text ends soon, integers are read by the portable one.
 *
 * Reading rounds as strtof does (to nearest, ties to even). Writing gives the shortest decimal that
 * reads back as the same float32, character for character what C++'s std::to_chars(float) gives. */
#ifndef SERVER_TEXT_NUMBER_H
#define SERVER_TEXT_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  NUMBER_TEXT_MAX = 15,    /* "-1.17549435e-38" */
  NUMBER_READ_MARGIN = 64, /* bytes that must be readable behind the text that is given */
  NUMBER_WRITE_MARGIN = 64 /* bytes that must be writable behind the text written */
};

enum number_verdict { NUMBER_OK, NUMBER_MALFORMED, NUMBER_TOO_LARGE /* beyond float32 */ };

/* Does JSON allow this character between its tokens? */
static inline bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/* Reads the number that starts at `text` (a digit or '-') by JSON's grammar. The byte behind the
 * number is there and is no part of it; NUMBER_READ_MARGIN bytes from `text` on are readable. On
 * NUMBER_OK *end is behind the number; on NUMBER_MALFORMED it is the offending byte. */
enum number_verdict number_read(const char *text, const char **end, float *value);

/* Reads a stretch: floats parted by one comma, with or without blanks behind it, the first of them
 * at `text`, no more than `room`. Numbers for which vector instructions are too slow, and all that
 * is malformed, are left to number_read: a stretch may end anywhere, also before its first number.
 * Each number that is read has the value that number_read gives, and is followed, before `end`, by
 * a comma, a blank, ']' or '}'. Returns how many were read; *stop is behind the last one, or
 * `text`. No byte before `text` is read, up to NUMBER_READ_MARGIN bytes behind `end` may be; no
 * number behind out[room - 1] is written. */
size_t number_read_stretch(const char *text, const char *end, float *out, size_t room,
                           const char **stop);

/* Reads a stretch of integers as number_read_stretch reads floats: those with neither a fraction
 * nor an exponent, and of int32_t's range. All others are left to number_scan. */
size_t number_read_integers(const char *text, const char *end, int32_t *out, size_t room,
                            const char **stop);

/* Writes `value`, finite, at `out`; returns the end. Up to NUMBER_WRITE_MARGIN bytes behind the end
 * are touched, as by those below. */
char *number_write(char *out, float value);

/* Writes a number without a fraction. */
char *number_write_integer(char *out, int64_t value);

/* Writes `rows` rows of `width` numbers, which follow each other in memory, as `[1,2],[3,4]`;
 * returns the end. With no width the rows are `[]`. Many numbers at a time: what each costs alone
 * is several times as much. */
char *number_write_rows(char *out, const float *value, size_t rows, size_t width);

#endif
