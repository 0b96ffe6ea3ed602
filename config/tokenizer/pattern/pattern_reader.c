/* pattern_reader: characters, and what a backslash makes of them. */
#include "config/tokenizer/pattern/pattern_reader.h"

#include <ctype.h>
#include <string.h>

#include "config/tokenizer/pattern/unicode.h"
#include "core/base/size.h"

enum { BACKSPACE = 8, BELL = 7, ESCAPE = 27, LAST = 0x10ffff };

void pattern_reader_refuse(struct pattern_reader *r, const char *from, const char *why) {
  enum { SHOWN = 40 };
  const size_t length = (size_t)(r->at - from), at = (size_t)(from - r->begin);
  const int shown = (int)size_min(length, SHOWN);
  error_set(r->e, STATUS_CONFIG, "\"%.*s\" at byte %zu of the expression %s", shown, from, at, why);
  r->at = r->end;
}

bool pattern_reader_sees(const struct pattern_reader *r, const char *string) {
  const size_t length = strlen(string);
  return (size_t)(r->end - r->at) >= length && memcmp(r->at, string, length) == 0;
}

bool pattern_reader_take(struct pattern_reader *r, const char *string) {
  if (!pattern_reader_sees(r, string)) return false;
  r->at += strlen(string);
  return true;
}

uint32_t pattern_reader_character(struct pattern_reader *r) {
  size_t length;
  const uint32_t c = unicode_read(r->at, &length);
  r->at += length;
  return c;
}

/* --- escapes --- */

static int digit_of(char c, int base) {
  const int value = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : base;
  return value < base ? value : -1;
}

/* A number of so many digits at most; returns how many there are. */
static size_t read_number(struct pattern_reader *r, int base, size_t most, uint32_t *out) {
  size_t digits = 0;
  for (*out = 0; digits < most && r->at < r->end && digit_of(*r->at, base) >= 0; digits++)
    *out = *out * (uint32_t)base + (uint32_t)digit_of(*r->at++, base);
  return digits;
}

/* What is behind \x, \u, \o and \0. Without braces they are bytes above 0x7f, which may be part of
 * a character. */
static uint32_t read_code(struct pattern_reader *r, const char *from, char kind) {
  enum { DIGITS = 8 };
  uint32_t code = 0;
  const bool braced = kind != 'u' && kind != '0' && pattern_reader_take(r, "{");
  const int base = kind == 'o' || kind == '0' ? 8 : 16;
  const size_t most = braced ? DIGITS : kind == 'u' ? 4 : 2;
  const size_t digits = kind == 'o' && !braced ? 0 : read_number(r, base, most, &code);
  const bool whole = kind == '0' || (kind == 'u' ? digits == 4 : digits > 0);
  if (!whole || (braced && !pattern_reader_take(r, "}")) || code > LAST ||
      (code >= 0xd800 && code < 0xe000) || (!braced && kind != 'u' && code > 0x7f))
    pattern_reader_refuse(r, from, "names no supported character");
  return code;
}

uint32_t pattern_reader_escaped(struct pattern_reader *r) {
  static const char letters[] = "abefnrtv";
  static const char codes[] = {BELL, BACKSPACE, ESCAPE, '\f', '\n', '\r', '\t', '\v'};
  const char *from = r->at - 1;
  if (r->at == r->end) {
    pattern_reader_refuse(r, from, "ends too early");
    return 0;
  }
  const uint32_t c = pattern_reader_character(r);
  if (c > 0x7f || !isalnum((int)c)) return c;
  const char *known = strchr(letters, (int)c);
  if (known) return (uint32_t)codes[known - letters];
  if (c == 'x' || c == 'u' || c == 'o' || c == '0') return read_code(r, from, (char)c);
  pattern_reader_refuse(r, from, "is not supported");
  return 0;
}

/* --- sets --- */

static void read_property(struct pattern_reader *r, const char *from, struct pattern_set *out,
                          bool *negated) {
  if (!pattern_reader_take(r, "{")) {
    pattern_reader_refuse(r, from, "is not supported: a property's name is in braces");
    return;
  }
  if (pattern_reader_take(r, "^")) *negated = !*negated;
  const char *name = r->at, *end = memchr(name, '}', (size_t)(r->end - name));
  r->at = end ? end + 1 : r->end;
  if (!end)
    pattern_reader_refuse(r, from, "ends too early");
  else if (!pattern_set_property(name, (size_t)(end - name), r->knows, out))
    pattern_reader_refuse(r, from, "is not a known property");
}

bool pattern_reader_set(struct pattern_reader *r, bool bracketed, struct pattern_set *out,
                        bool *negated) {
  const char *from = r->at - 1;
  if (r->at == r->end || !strchr("dhpsw", tolower((unsigned char)*r->at))) return false;
  const char letter = *r->at++;
  *out = (struct pattern_set){0};
  *negated = isupper((unsigned char)letter);
  if (letter == 'p' || letter == 'P')
    read_property(r, from, out, negated);
  else
    must(pattern_set_letter((char)tolower((unsigned char)letter), bracketed, out));
  return true;
}
