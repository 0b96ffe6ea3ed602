/* charsmap_make: the precompiled_charsmap of a few replacements, as SentencePiece writes it. */
#ifndef TESTS_CHARSMAP_MAKE_H
#define TESTS_CHARSMAP_MAKE_H

#include <stddef.h>
#include <stdint.h>

struct charsmap_rule {
  const char *from, *to;
};

/* A new text, in base64. No two rules are `from` the same. */
char *charsmap_make(const struct charsmap_rule *rule, size_t count);

/* Any bytes in base64, a new text. */
char *charsmap_base64(const void *bytes, size_t size);

#endif
