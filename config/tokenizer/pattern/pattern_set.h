/* pattern_set: named sets of characters: \s, \w, \p{Letter}, [:alpha:].
 *
 * Oniguruma's, in the words of PCRE2. Of what they have in ASCII, a body names each character
 * before the property: the library finds those in a table, and need not look the others up. */
#ifndef CONFIG_PATTERN_SET_H
#define CONFIG_PATTERN_SET_H

#include <stdbool.h>
#include <stddef.h>

enum { PATTERN_SET_NAME = 40, PATTERN_SET_BODY = 200 };

struct pattern_set {
  char body[PATTERN_SET_BODY];    /* what brackets have within */
  char inverse[PATTERN_SET_BODY]; /* the same of all other characters; "": only brackets can */
  bool cased;                     /* capitals or small letters alone */
};

/* Of the letter behind a backslash, in lower case; false: it is none of d, h, s and w. The last has
 * a few characters more where it stands outside of brackets. */
bool pattern_set_letter(char letter, bool bracketed, struct pattern_set *out);

/* Of a property's name; false: it is not known. `knows` says whether the library compiles it. */
typedef bool pattern_set_knows(const char *expression);
bool pattern_set_property(const char *name, size_t length, pattern_set_knows *knows,
                          struct pattern_set *out);

/* Of a name between [: and :]; false: it is not known. */
bool pattern_set_posix(const char *name, size_t length, struct pattern_set *out);

#endif
