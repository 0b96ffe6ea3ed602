/* pattern_syntax: rewrites expressions in Oniguruma's syntax, that of tokenizers, in PCRE2's.
 *
 * In Oniguruma's, ^ and $ are the ends of lines, (?m) makes the dot match every character, (?i)
 * reaches over |, \h is a hexadecimal digit, {n}+ repeats the repetition; \s and \w are other sets
 * than PCRE2's. What cannot be rewritten is rejected by name. One difference is silent: without
 * regard to case, no two letters match one (ss does not match ß). */
#ifndef CONFIG_PATTERN_SYNTAX_H
#define CONFIG_PATTERN_SYNTAX_H

#include "config/tokenizer/pattern/pattern_parts.h"

/* Writes the expression for PCRE2 (UTF and UCP; ^ and $ of lines; only \n ends one). With `newer`
 * its sets have the characters of pattern_newer.h. Returns the status of `e`: STATUS_CONFIG that
 * says what is rejected, and where; or STATUS_OUT_OF_MEMORY. */
enum status pattern_syntax_rewrite(const char *expression, size_t length, bool newer,
                                   pattern_set_knows *knows, struct pattern_text *out,
                                   struct error *e);

#endif
