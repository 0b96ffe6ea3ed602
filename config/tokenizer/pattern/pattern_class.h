/* pattern_class: characters in brackets.
 *
 * Oniguruma's may have brackets within, and what is in several sets at once (&&); PCRE2's may not.
 * What PCRE2's brackets cannot say becomes alternatives of one character each, and looks ahead. */
#ifndef CONFIG_PATTERN_CLASS_H
#define CONFIG_PATTERN_CLASS_H

#include "config/tokenizer/pattern/pattern_reader.h"
#include "config/tokenizer/pattern/pattern_text.h"

/* Reads what is behind a [, up to and with its ], and writes the same for PCRE2. */
void pattern_class_rewrite(struct pattern_reader *r, struct pattern_text *out);

/* Writes brackets that have a set which was read from `from` on, or all other characters. */
void pattern_class_of(struct pattern_reader *r, const char *from, const struct pattern_set *set,
                      bool negated, struct pattern_text *out);

#endif
