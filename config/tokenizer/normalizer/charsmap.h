/* charsmap: SentencePiece's compiled rules: a trie of texts, and the text that replaces each.
 *
 * Immutable once it is begun. */
#ifndef CONFIG_CHARSMAP_H
#define CONFIG_CHARSMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

struct charsmap {
  unsigned char *bytes; /* [size] owned: the size of the trie in bytes, the trie, the texts */
  size_t size;
  const uint32_t *unit; /* [units] the trie */
  size_t units;
  const char *text; /* [length] replacements, each ends before a NUL */
  size_t length;
};

/* Finds the trie and the texts in the bytes, which malloc has given, and checks them. Returns the
 * status of `e`: STATUS_CONFIG with a detail that begins with "precompiled_charsmap". */
enum status charsmap_begin(struct charsmap *m, struct error *e);
void charsmap_done(struct charsmap *m);

struct charsmap_found {
  const char *bytes; /* the replacement; NULL: no beginning of the text is in the trie */
  size_t length;
  size_t used;  /* bytes of the text that it replaces */
  size_t steps; /* how much of the trie was read */
};

/* The replacement of the longest beginning of a text, well-formed UTF-8, that is in the trie and
 * ends with a character; or else of the shortest beginning, which may end within one. */
struct charsmap_found charsmap_find(const struct charsmap *m, const char *text, size_t length,
                                    bool longest);

/* Whether no text of the trie but the byte itself begins with this ASCII character, unless it
 * continues with a character that is not ASCII; and the byte stays as it is. */
bool charsmap_leaves(const struct charsmap *m, unsigned char byte);

#endif
