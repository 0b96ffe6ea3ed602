/* pattern_set: named sets of characters: \s, \w, \p{Letter}, [:alpha:].
 *
 * They are Oniguruma's, in PCRE2's syntax. A body names the set's ASCII characters before its
 * property: the library finds those in a table, and need not look them up. */
#ifndef CONFIG_PATTERN_SET_H
#define CONFIG_PATTERN_SET_H

#include <stdbool.h>
#include <stddef.h>

enum { PATTERN_SET_NAME = 40, PATTERN_SET_BODY = 2048 };

struct pattern_set {
  char body[PATTERN_SET_BODY];    /* within brackets; "": needs [^...] with the inverse */
  char inverse[PATTERN_SET_BODY]; /* the same for all other characters; "": needs [^...] */
  bool cased;                     /* whether it has only uppercase or only lowercase letters */
};

/* The set of a letter after a backslash, in lower case; false: it is none of d, h, s and w. Outside
 * of brackets the last one has a few more characters. */
bool pattern_set_letter(char letter, bool bracketed, struct pattern_set *out);

/* The set of a property's name; false: unknown. `knows`: whether the library compiles it. */
typedef bool pattern_set_knows(const char *expression);
bool pattern_set_property(const char *name, size_t length, pattern_set_knows *knows,
                          struct pattern_set *out);

/* The set of a name between [: and :]; false: unknown. */
bool pattern_set_posix(const char *name, size_t length, struct pattern_set *out);

#endif
