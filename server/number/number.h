/* number: JSON number text <-> float32, one number or a stretch of them, and integers in stretches.
 * Pure functions, no memory, any thread. The readers of stretches are chosen by the processor's
 * instructions (cpu_text_level); integers are read by the portable one if the text ends soon.
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
  NUMBER_READ_MARGIN = 64, /* bytes that must be readable after the given text */
  NUMBER_WRITE_MARGIN = 64 /* bytes that must be writable after the written text */
};

enum number_verdict { NUMBER_OK, NUMBER_MALFORMED, NUMBER_TOO_LARGE /* beyond float32 */ };

/* Whether JSON allows this character between its tokens. */
static inline bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/* Reads the number that starts at `text` (a digit or '-') by JSON's grammar. A byte that is
 * no part of the number follows it; NUMBER_READ_MARGIN bytes from `text` on are readable. *end is
 * the byte after the number on NUMBER_OK, and the offending byte on NUMBER_MALFORMED. */
enum number_verdict number_read(const char *text, const char **end, float *value);

/* Reads a stretch: up to `room` floats separated by one comma, with or without blanks after it, the
 * first of them at `text`. Numbers for which vector instructions are too slow, and malformed ones,
 * are left to number_read: a stretch may end anywhere, also before its first number. Each number
 * read has the value that number_read gives, and is followed, before `end`, by a comma, a blank,
 * ']' or '}'. Returns how many were read; *stop is the byte after the last one, or `text`. No byte
 * before `text` is read, and at most NUMBER_READ_MARGIN bytes after `end`; nothing after
 * out[room - 1] is written. */
size_t number_read_stretch(const char *text, const char *end, float *out, size_t room,
                           const char **stop);

/* Reads a stretch of integers as number_read_stretch reads floats. Numbers with a fraction or an
 * exponent, or outside int32_t, are left to number_scan. */
size_t number_read_integers(const char *text, const char *end, int32_t *out, size_t room,
                            const char **stop);

/* Writes the finite `value` at `out`; returns the end. This function and those below may overwrite
 * up to NUMBER_WRITE_MARGIN bytes after the end. */
char *number_write(char *out, float value);

/* Writes a number without a fraction. */
char *number_write_integer(char *out, int64_t value);

/* Writes `rows` rows of `width` numbers, which follow each other in memory, as `[1,2],[3,4]`;
 * returns the end. The rows are `[]` if `width` is 0. Writing many numbers at a time costs a
 * fraction of writing each alone. */
char *number_write_rows(char *out, const float *value, size_t rows, size_t width);

#endif
