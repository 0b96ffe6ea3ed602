/* pattern_set: the tables of names. */
#include "config/tokenizer/pattern/pattern_set.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define SPACE "\\x09-\\x0d\\x20\\x85\\p{Z}"
#define NO_SPACE                                                                         \
  "\\x00-\\x08\\x0e-\\x1f!-\\x84\\x86-\\x9f\\xa1-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-" \
  "\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{10ffff}"
#define HEX    "0-9A-Fa-f"
#define NO_HEX "\\x00-/:-@G-`g-\\x{10ffff}"

/* Alphabetic characters that are neither letters nor marks: letter numbers, and letters in circles
 * and squares. */
#define WORD                                                                            \
  "0-9A-Z_a-z\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}" \
  "\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}"

/* Oniguruma has a table of its own for characters of one byte in Latin-1, in which these numbers
 * are parts of words; it asks the table of Unicode within brackets. */
#define WORD_NUMBERS "\\xb2\\xb3\\xb9\\xbc-\\xbe"

static void set_fixed(struct pattern_set *out, const char *body, const char *inverse) {
  *out = (struct pattern_set){0};
  snprintf(out->body, sizeof out->body, "%s", body);
  snprintf(out->inverse, sizeof out->inverse, "%s", inverse);
}

bool pattern_set_letter(char letter, bool bracketed, struct pattern_set *out) {
  switch (letter) {
  case 'd':
    set_fixed(out, "0-9\\p{Nd}", "\\P{Nd}");
    return true;
  case 'h':
    set_fixed(out, HEX, NO_HEX);
    return true;
  case 's':
    set_fixed(out, SPACE, NO_SPACE);
    return true;
  case 'w':
    set_fixed(out, bracketed ? WORD : WORD WORD_NUMBERS, "");
    return true;
  default:
    return false;
  }
}

/* --- names --- */

#define PUNCTUATION "!-#%-*,-/:;?@[-\\]_{}"

/* Names are in lower case, without blanks, - and _, and each is followed by a blank. */
static const struct {
  const char *names;
  const char *ascii;    /* its ASCII characters */
  const char *property; /* as PCRE2 writes it */
  bool cased;
} properties[] = {
    {"c other ", "\\x00-\\x1f\\x7f", "C", false},
    {"cc control cntrl ", "\\x00-\\x1f\\x7f", "Cc", false},
    {"cf format ", "", "Cf", false},
    {"cn unassigned ", "", "Cn", false},
    {"co privateuse ", "", "Co", false},
    {"l letter ", "A-Za-z", "L", false},
    {"lc casedletter ", "A-Za-z", "L&", false},
    {"ll lowercaseletter ", "a-z", "Ll", true},
    {"lm modifierletter ", "", "Lm", false},
    {"lo otherletter ", "", "Lo", false},
    {"lt titlecaseletter ", "", "Lt", true},
    {"lu uppercaseletter ", "A-Z", "Lu", true},
    {"m mark combiningmark ", "", "M", false},
    {"mc spacingmark ", "", "Mc", false},
    {"me enclosingmark ", "", "Me", false},
    {"mn nonspacingmark ", "", "Mn", false},
    {"n number ", "0-9", "N", false},
    {"nd decimalnumber digit ", "0-9", "Nd", false},
    {"nl letternumber ", "", "Nl", false},
    {"no othernumber ", "", "No", false},
    {"p punctuation punct ", PUNCTUATION, "P", false},
    {"pc connectorpunctuation ", "_", "Pc", false},
    {"pd dashpunctuation ", "\\-", "Pd", false},
    {"pe closepunctuation ", ")\\]}", "Pe", false},
    {"pf finalpunctuation ", "", "Pf", false},
    {"pi initialpunctuation ", "", "Pi", false},
    {"po otherpunctuation ", "", "Po", false},
    {"ps openpunctuation ", "(\\[{", "Ps", false},
    {"s symbol ", "$+<->\\^`|~", "S", false},
    {"sc currencysymbol ", "$", "Sc", false},
    {"sk modifiersymbol ", "\\^`", "Sk", false},
    {"sm mathsymbol ", "+<->|~", "Sm", false},
    {"so othersymbol ", "", "So", false},
    {"z separator ", " ", "Z", false},
    {"zl lineseparator ", "", "Zl", false},
    {"zp paragraphseparator ", "", "Zp", false},
    {"zs spaceseparator ", " ", "Zs", false},
    {"any ", "", "Any", false},
    {"alpha alphabetic ", "A-Za-z", "Alphabetic", false},
    {"lower lowercase ", "a-z", "Lowercase", true},
    {"upper uppercase ", "A-Z", "Uppercase", true},
};

/* Sets that are not one property in PCRE2. */
static const struct {
  const char *names, *body, *inverse;
} others[] = {
    {"space whitespace ", SPACE, NO_SPACE},
    {"word ", WORD, ""},
    {"xdigit asciihexdigit ahex ", HEX, NO_HEX},
    {"ascii ", "\\x00-\\x7f", "\\x{80}-\\x{10ffff}"},
    {"alnum ", "0-9A-Za-z\\p{Alphabetic}\\p{Nd}", ""},
    {"blank ", "\\x09 \\p{Zs}", ""},
};

/* The name in lower case, without blanks, - and _; false: too long, or no name. */
static bool fold_name(const char *name, size_t length, char out[PATTERN_SET_NAME]) {
  size_t used = 0;
  for (size_t i = 0; i < length; i++) {
    const unsigned char c = (unsigned char)name[i];
    if (c == ' ' || c == '-' || c == '_') continue;
    if (used + 1 == PATTERN_SET_NAME || c > 0x7f || !isalnum(c)) return false;
    out[used++] = (char)tolower(c);
  }
  out[used] = '\0';
  return used > 0;
}

/* Whether the folded name is one of these. */
static bool is_one(const char *name, const char *names) {
  const size_t length = strlen(name);
  for (const char *at = names; *at; at += strcspn(at, " ") + 1)
    if (strncmp(at, name, length) == 0 && at[length] == ' ') return true;
  return false;
}

static bool find_named(const char *folded, struct pattern_set *out) {
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    if (!is_one(folded, others[i].names)) continue;
    set_fixed(out, others[i].body, others[i].inverse);
    return true;
  }
  for (size_t i = 0; i < sizeof properties / sizeof *properties; i++) {
    const char *property = properties[i].property;
    if (!is_one(folded, properties[i].names)) continue;
    out->cased = properties[i].cased;
    snprintf(out->body, sizeof out->body, "%s\\p{%s}", properties[i].ascii, property);
    snprintf(out->inverse, sizeof out->inverse, "\\P{%s}", property);
    return true;
  }
  return false;
}

bool pattern_set_property(const char *name, size_t length, pattern_set_knows *knows,
                          struct pattern_set *out) {
  static const char *const kinds[] = {"sc:", ""};
  char folded[PATTERN_SET_NAME];
  *out = (struct pattern_set){0};
  if (!fold_name(name, length, folded)) return false;
  if (find_named(folded, out)) return true;
  /* Scripts, and what else the library knows. In newer versions, a script's name alone also means
   * characters that are used with it. */
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    snprintf(out->body, sizeof out->body, "\\p{%s%.*s}", kinds[i], (int)length, name);
    snprintf(out->inverse, sizeof out->inverse, "\\P{%s%.*s}", kinds[i], (int)length, name);
    if (knows(out->body)) return true;
  }
  return false;
}

bool pattern_set_posix(const char *name, size_t length, struct pattern_set *out) {
  static const char known[] = "alnum alpha ascii blank cntrl digit lower space upper word xdigit ";
  char folded[PATTERN_SET_NAME];
  *out = (struct pattern_set){0};
  if (length == 5 && memcmp(name, "punct", length) == 0) { /* has symbols, unlike \p{Punct} */
    set_fixed(out, "!-/:-@\\[-`{-~\\p{P}\\p{S}", "");
    return true;
  }
  return fold_name(name, length, folded) && strlen(folded) == length && is_one(folded, known) &&
         find_named(folded, out);
}
