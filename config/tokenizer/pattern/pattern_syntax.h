/* pattern_syntax: expressions in Oniguruma's syntax, rewritten in that of PCRE2.
 *
 * That is the syntax of tokenizers. Its ^ and $ are the ends of lines, (?m) is a dot that is every
 * character, (?i) reaches over |, \h is a hexadecimal digit, {n}+ repeats what is repeated; \s and
 * \w are other sets than PCRE2's. What cannot be rewritten is refused by name. One thing differs
 * without a word: where case does not count, no two letters are one (ss is not ß). */
#ifndef CONFIG_PATTERN_SYNTAX_H
#define CONFIG_PATTERN_SYNTAX_H

#include "config/tokenizer/pattern/pattern_reader.h"
#include "config/tokenizer/pattern/pattern_text.h"

/* Writes the expression for PCRE2 (UTF and UCP; ^ and $ of lines; only \n ends one). STATUS_CONFIG
 * says what is refused, and where; or STATUS_OUT_OF_MEMORY. */
enum status pattern_syntax_rewrite(const char *expression, size_t length, pattern_set_knows *knows,
                                   struct pattern_text *out, struct error *e);

#endif
