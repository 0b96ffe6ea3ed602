/* pattern_newer: characters that PCRE2's tables may lack. Debian 12 has those of Unicode 14,
 * published tokenizers were made with Unicode 15 to 16. One that the tables have does no harm. */
#ifndef CONFIG_PATTERN_NEWER_H
#define CONFIG_PATTERN_NEWER_H

#include "config/tokenizer/pattern/pattern_set.h"

/* Adds to a set the newer characters of its properties, \p{...}. They also leave its inverse, and
 * they leave \p{C} and \p{Cn}: then one of body and inverse becomes empty. */
void pattern_newer_add(struct pattern_set *set);

/* Has a text such a character? If not, an expression without them finds the same, and is faster. */
bool pattern_newer_within(const char *text, size_t length);

#endif
