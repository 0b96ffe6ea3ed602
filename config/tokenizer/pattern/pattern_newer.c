/* pattern_newer: the table, and its ranges as text. */
#include "config/tokenizer/pattern/pattern_newer.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "config/tokenizer/pattern/unicode.h"
#include "core/base/status.h"

static const struct newer {
  uint32_t first, last;
  char category[3];
  const char *scripts; /* names in lower case, each followed by a blank */
  bool alphabetic, lower, upper;
} newer[] = {
#define NEWER(first, last, category, scripts, alphabetic, lower, upper) \
  {first, last, category, scripts, alphabetic, lower, upper},
#include "config/tokenizer/pattern/pattern_newer.def"
};

enum { NEWER_COUNT = sizeof newer / sizeof *newer };

/* Is the name of a script, with any case and separators, among these? */
static bool is_script(const char *name, size_t length, const char *scripts) {
  for (const char *at = scripts; *at; at += strcspn(at, " ") + 1) {
    size_t i = 0;
    const char *one = at;
    for (; i < length; i++) {
      if (name[i] == ' ' || name[i] == '-' || name[i] == '_') continue;
      if (*one != tolower((unsigned char)name[i])) break;
      one++;
    }
    if (i == length && *one == ' ') return true;
  }
  return false;
}

/* Have the characters a property, by the name that is within \p{}? */
static bool has(const struct newer *n, const char *name, size_t length) {
  static const char script[] = "sc:";
  const size_t before = sizeof script - 1;
  const char *c = n->category;
  if (length == 1) return *name == *c;
  if (length == 2 && strncmp(name, "L&", 2) == 0)
    return *c == 'L' && (c[1] == 'l' || c[1] == 't' || c[1] == 'u');
  if (length == 2) return strncmp(name, c, 2) == 0;
  if (length > before && strncmp(name, script, before) == 0)
    return is_script(name + before, length - before, n->scripts);
  return (n->alphabetic && strncmp(name, "Alphabetic", length) == 0) ||
         (n->lower && strncmp(name, "Lowercase", length) == 0) ||
         (n->upper && strncmp(name, "Uppercase", length) == 0);
}

/* Have they one of the properties \p{...} of a text? */
static bool has_any(const struct newer *n, const char *text) {
  static const char begin[] = "\\p{";
  for (const char *at = text; (at = strstr(at, begin));) {
    at += sizeof begin - 1;
    if (has(n, at, strcspn(at, "}"))) return true;
  }
  return false;
}

/* Appends the ranges of the properties that a text has; false: there is none. */
static bool append_ranges(char text[PATTERN_SET_BODY]) {
  size_t used = strlen(text);
  bool any = false;
  char properties[PATTERN_SET_BODY];
  memcpy(properties, text, used + 1);
  for (size_t i = 0; i < NEWER_COUNT; i++) {
    if (!has_any(&newer[i], properties)) continue;
    const uint32_t first = newer[i].first;
    while (i + 1 < NEWER_COUNT && newer[i + 1].first == newer[i].last + 1 &&
           has_any(&newer[i + 1], properties))
      i++;
    used += (size_t)snprintf(text + used, PATTERN_SET_BODY - used, "\\x{%x}-\\x{%x}",
                             (unsigned)first, (unsigned)newer[i].last);
    must(used < PATTERN_SET_BODY);
    any = true;
  }
  return any;
}

void pattern_newer_add(struct pattern_set *set) {
  static const char assigned[] = "\\x20-~\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}\\p{Z}";
  const bool other = strstr(set->body, "\\p{C}"), unassigned = strstr(set->body, "\\p{Cn}");
  if (other || unassigned) {
    set->body[0] = '\0';
    snprintf(set->inverse, sizeof set->inverse, "%s%s", assigned,
             unassigned ? "\\x00-\\x1f\\x7f\\p{Cc}\\p{Cf}\\p{Co}\\p{Cs}" : "");
    append_ranges(set->inverse);
  } else if (append_ranges(set->body)) {
    set->inverse[0] = '\0';
  }
}

bool pattern_newer_within(const char *text, size_t length) {
  /* No character from `low` to `high - 1` is newer: the gaps of the last two kinds of characters,
   * such as letters and punctuation. */
  struct {
    uint32_t low, high;
  } gap[2] = {{0, newer[0].first}, {0, newer[0].first}};
  size_t at = unicode_ascii(text, length), last = 0;
  for (size_t size; at < length; at += size) {
    const uint32_t c = unicode_read(text + at, &size);
    if (c < newer[0].first || (c >= gap[0].low && c < gap[0].high) ||
        (c >= gap[1].low && c < gap[1].high))
      continue;
    size_t row = 0, end = NEWER_COUNT; /* the first row that ends at c or later */
    while (row < end) {
      const size_t middle = row + (end - row) / 2;
      if (newer[middle].last < c)
        row = middle + 1;
      else
        end = middle;
    }
    if (row < NEWER_COUNT && newer[row].first <= c) return true;
    last = 1 - last;
    gap[last].low = newer[row - 1].last + 1;
    gap[last].high = row < NEWER_COUNT ? newer[row].first : UINT32_MAX;
  }
  return false;
}
