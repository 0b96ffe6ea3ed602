/* letters: the characters of a text: upper and lower case, spaces, classes, as Python has them. */
#ifndef CONFIG_LETTERS_H
#define CONFIG_LETTERS_H

#include "config/template/value/value.h"

/* A space for str.isspace(), and for a text that is split or stripped without arguments. */
bool letters_is_space(uint32_t c);

/* The text without the characters in `set` at its sides; set.kind MISSING: without spaces. */
struct value letters_strip(struct bounds *b, struct value text, struct value set, bool left,
                           bool right);

enum letters_case {
  LETTERS_LOWER,
  LETTERS_UPPER,
  LETTERS_CAPITALIZED,  /* str.capitalize() */
  LETTERS_TITLE,        /* str.title(): a word is a run of letters with a case */
  LETTERS_FILTER_TITLE, /* the filter: a word ends at a space, a hyphen or an opening bracket */
  LETTERS_SWAPPED
};
struct value letters_case(struct bounds *b, struct value text, enum letters_case to);

enum letters_class {
  LETTERS_ALPHA,
  LETTERS_ALNUM,
  LETTERS_DECIMAL,
  LETTERS_DIGIT,
  LETTERS_NUMERIC,
  LETTERS_SPACE,
  LETTERS_ARE_LOWER,
  LETTERS_ARE_UPPER,
  LETTERS_ASCII
};
/* str.isalpha() and its kind. Returns false after a failure. */
bool letters_are(struct bounds *b, struct value text, enum letters_class is, bool *are);

/* The bytes of the line that begins at byte `at`, and, after them, those of its end: 0 at the end
 * of the text. Lines end as for str.splitlines(). */
size_t letters_line(struct value text, size_t at, size_t *end);

#endif
