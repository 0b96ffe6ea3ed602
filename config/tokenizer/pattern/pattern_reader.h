/* pattern_reader: an expression that is being read, in the syntax of Oniguruma. */
#ifndef CONFIG_PATTERN_READER_H
#define CONFIG_PATTERN_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/tokenizer/pattern/pattern_set.h"
#include "core/base/status.h"

struct pattern_reader {
  const char *begin, *at, *end; /* well-formed UTF-8 */
  bool caseless;                /* where it is by now */
  pattern_set_knows *knows;
  struct error *e; /* once it holds a failure, nothing is left to be read */
};

/* Refuses what there is from `from` to where the reader is: "... at byte 3 of the expression is not
 * served"; `why` is what is said behind "expression". */
void pattern_reader_refuse(struct pattern_reader *r, const char *from, const char *why);

/* Does it go on like this? pattern_reader_take: then that is behind it. */
bool pattern_reader_sees(const struct pattern_reader *r, const char *string);
bool pattern_reader_take(struct pattern_reader *r, const char *string);

/* The next character, which is there. */
uint32_t pattern_reader_character(struct pattern_reader *r);

/* What a backslash, which is behind it, and what follows stand for: one character. */
uint32_t pattern_reader_escaped(struct pattern_reader *r);

/* The same: a set of characters, *negated: all others. False: it is no set; nothing is read. */
bool pattern_reader_set(struct pattern_reader *r, bool bracketed, struct pattern_set *out,
                        bool *negated);

#endif
