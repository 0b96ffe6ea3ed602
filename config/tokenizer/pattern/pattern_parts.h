/* pattern_parts: reads an expression in Oniguruma's syntax, and writes it in PCRE2's. Private to
 * pattern_syntax, which describes the differences.
 *
 * Once the reader's error holds a failure, nothing is left to read. */
#ifndef CONFIG_PATTERN_PARTS_H
#define CONFIG_PATTERN_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/tokenizer/pattern/pattern_set.h"
#include "core/base/status.h"

/* --- pattern_text: an expression that is being written --- */

/* All zeros at first. If memory failed it is `lost`, and what is appended is dropped. */
struct pattern_text {
  char *bytes; /* NULL, or [length] and a zero */
  size_t length, room;
  bool lost;
};

void pattern_text_free(struct pattern_text *t);
void pattern_text_append(struct pattern_text *t, const char *string);
void pattern_text_insert(struct pattern_text *t, size_t at, const char *string);

/* Appends another text; if that is lost, so is this. */
void pattern_text_join(struct pattern_text *t, const struct pattern_text *other);

/* Appends a character that stands for itself, also within brackets. */
void pattern_text_character(struct pattern_text *t, uint32_t c);

/* --- pattern_reader: an expression that is being read --- */

struct pattern_reader {
  const char *begin, *at, *end; /* well-formed UTF-8 */
  bool caseless;                /* whether case is ignored here: (?i) */
  bool newer;                   /* whether sets have characters that the library may lack */
  pattern_set_knows *knows;
  struct error *e;
};

/* Rejects what is between `from` and the reader's place: "\"...\" at byte 3 of the expression is
 * not supported"; `why` is what follows "expression". */
void pattern_reader_refuse(struct pattern_reader *r, const char *from, const char *why);

/* Whether the expression continues like this; pattern_reader_skip also moves past it. */
bool pattern_reader_sees(const struct pattern_reader *r, const char *string);
bool pattern_reader_skip(struct pattern_reader *r, const char *string);

/* Reads the next character, which must exist. */
uint32_t pattern_reader_character(struct pattern_reader *r);

/* Reads what follows a backslash, as one character. */
uint32_t pattern_reader_escaped(struct pattern_reader *r);

/* The same as a set of characters, or if *negated as all others. False: it is no set, and nothing
 * is read. */
bool pattern_reader_set(struct pattern_reader *r, bool bracketed, struct pattern_set *out,
                        bool *negated);

/* --- pattern_class: characters in brackets --- */

/* Reads what follows a [, with its ], and writes the same for PCRE2. */
void pattern_class_rewrite(struct pattern_reader *r, struct pattern_text *out);

/* Writes brackets with a set, which was read from `from` on, or if `negated` with all others. */
void pattern_class_of(struct pattern_reader *r, const char *from, const struct pattern_set *set,
                      bool negated, struct pattern_text *out);

#endif
