/* pattern_reader: reads characters and escapes of an expression; writes the texts of another. */
#include "config/tokenizer/pattern/pattern_parts.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/tokenizer/pattern/pattern_newer.h"
#include "config/tokenizer/pattern/unicode.h"
#include "core/base/size.h"

/* --- writing --- */

void pattern_text_free(struct pattern_text *t) {
  free(t->bytes);
  *t = (struct pattern_text){0};
}

static void insert(struct pattern_text *t, size_t at, const char *bytes, size_t length) {
  if (t->lost) return;
  if (t->room - t->length <= length) { /* with a zero */
    const size_t room = size_max(2 * t->room, t->length + length + 1);
    char *moved = realloc(t->bytes, room);
    t->lost = !moved;
    if (!moved) return;
    t->bytes = moved;
    t->room = room;
  }
  memmove(t->bytes + at + length, t->bytes + at, t->length - at);
  if (length) memcpy(t->bytes + at, bytes, length);
  t->length += length;
  t->bytes[t->length] = '\0';
}

void pattern_text_append(struct pattern_text *t, const char *string) {
  insert(t, t->length, string, strlen(string));
}

void pattern_text_insert(struct pattern_text *t, size_t at, const char *string) {
  insert(t, at, string, strlen(string));
}

void pattern_text_join(struct pattern_text *t, const struct pattern_text *other) {
  if (other->lost) t->lost = true;
  if (other->bytes) insert(t, t->length, other->bytes, other->length);
}

void pattern_text_character(struct pattern_text *t, uint32_t c) {
  char text[16];
  const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  snprintf(text, sizeof text, plain ? "%c" : "\\x{%x}", (unsigned)c);
  pattern_text_append(t, text);
}

/* --- reading --- */

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

bool pattern_reader_skip(struct pattern_reader *r, const char *string) {
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

/* Reads the number after \x, \u, \o or \0. Without braces, numbers above 0x7f are bytes, which may
 * be part of a character. */
static uint32_t read_code(struct pattern_reader *r, const char *from, char kind) {
  enum { DIGITS = 8, LAST = 0x10ffff };
  uint32_t code = 0;
  const bool braced = kind != 'u' && kind != '0' && pattern_reader_skip(r, "{");
  const int base = kind == 'o' || kind == '0' ? 8 : 16;
  const size_t most = braced ? DIGITS : kind == 'u' ? 4 : 2;
  size_t digits = 0;
  if (kind != 'o' || braced)
    for (; digits < most && r->at < r->end && digit_of(*r->at, base) >= 0; digits++)
      code = code * (uint32_t)base + (uint32_t)digit_of(*r->at++, base);
  const bool whole = kind == '0' || (kind == 'u' ? digits == 4 : digits > 0);
  if (!whole || (braced && !pattern_reader_skip(r, "}")) || code > LAST ||
      (code >= 0xd800 && code < 0xe000) || (!braced && kind != 'u' && code > 0x7f))
    pattern_reader_refuse(r, from, "names no supported character");
  return code;
}

uint32_t pattern_reader_escaped(struct pattern_reader *r) {
  static const char letters[] = "abefnrtv";
  static const char codes[] = {'\a', '\b', 27, '\f', '\n', '\r', '\t', '\v'};
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

/* Reads the name of a property, after \p or \P. */
static void read_property(struct pattern_reader *r, const char *from, struct pattern_set *out,
                          bool *negated) {
  if (!pattern_reader_skip(r, "{")) {
    pattern_reader_refuse(r, from, "is not supported: a property's name is in braces");
    return;
  }
  if (pattern_reader_skip(r, "^")) *negated = !*negated;
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
  if (r->newer) pattern_newer_add(out);
  return true;
}
