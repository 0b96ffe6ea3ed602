/* literal: the strings and numbers that a template writes out. */
#include "config/template/syntax/literal.h"

#include <stdlib.h>
#include <string.h>

#include "config/template/value/buffer.h"
#include "config/tokenizer/pattern/unicode.h"

/* --- strings --- */

static int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 16;
}

/* Reads exactly `digits` hexadecimal digits. */
static bool read_hex(const char *text, size_t length, size_t digits, uint32_t *c) {
  *c = 0;
  for (size_t i = 0; i < digits; i++) {
    if (i >= length || digit_of(text[i]) > 15) return false;
    *c = *c << 4 | (uint32_t)digit_of(text[i]);
  }
  return true;
}

static bool add_character(struct bounds *b, struct buffer *to, uint32_t c) {
  char bytes[UNICODE_BYTES_MAX];
  if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
    return bounds_fail(b, "the string has an escape of no character");
  return buffer_add(b, to, bytes, unicode_write(c, bytes));
}

/* Appends what an escape means, whose text follows the backslash; *used: its bytes. */
static bool add_escape(struct bounds *b, struct buffer *to, const char *text, size_t length,
                       size_t *used) {
  static const char letters[] = "abfnrtv\\'\"", bytes[] = "\a\b\f\n\r\t\v\\'\"";
  const char *found = length && *text ? strchr(letters, *text) : NULL;
  uint32_t c = 0;
  *used = 1;
  if (length == 0) return buffer_word(b, to, "\\");
  if (found) return buffer_add(b, to, &bytes[found - letters], 1);
  if (*text == '\n') return true; /* the line goes on */
  if (*text >= '0' && *text < '8') {
    for (*used = 0; *used < 3 && *used < length && text[*used] >= '0' && text[*used] < '8'; ++*used)
      c = c << 3 | (uint32_t)(text[*used] - '0');
    return add_character(b, to, c);
  }
  if (*text == 'x' || *text == 'u' || *text == 'U') {
    const size_t digits = *text == 'x' ? 2 : *text == 'u' ? 4 : 8;
    *used = 1 + digits;
    return read_hex(text + 1, length - 1, digits, &c)
               ? add_character(b, to, c)
               : bounds_fail(b, "the string has \\%c without %zu digits", *text, digits);
  }
  if (*text == 'N') return bounds_fail(b, "the escape \\N is not supported");
  if ((unsigned char)*text < 0x80) return buffer_word(b, to, "\\") && buffer_add(b, to, text, 1);
  /* Jinja writes such a character as an escape before it reads escapes: two backslashes are one. */
  c = unicode_read(text, used);
  return buffer_print(b, to, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
}

struct value literal_text(struct bounds *b, const char *text, size_t length) {
  struct buffer out = {0};
  const char *const end = text + length;
  while (text < end) {
    const char *escape = memchr(text, '\\', (size_t)(end - text));
    if (!buffer_add(b, &out, text, (size_t)((escape ? escape : end) - text))) return VALUE_FAILED;
    if (!escape) break;
    size_t used;
    if (!add_escape(b, &out, escape + 1, (size_t)(end - escape - 1), &used)) return VALUE_FAILED;
    text = escape + 1 + used;
  }
  return buffer_value(b, &out);
}

/* --- numbers --- */

/* Copies digits, between which there may be single underscores, to `out`; returns the bytes read.
 */
static size_t take_digits(const char *text, int base, char *out, size_t room) {
  size_t i = 0, n = strlen(out);
  for (;; i++) {
    const size_t at = i + (text[i] == '_' && i > 0 && text[i - 1] != '_');
    if (digit_of(text[at]) >= base) return i;
    i = at;
    if (n + 1 < room) out[n++] = text[i], out[n] = '\0';
  }
}

enum { DIGITS = 400 };

static size_t read_based(struct bounds *b, const char *text, int base, struct value *number) {
  char digits[DIGITS] = "";
  const size_t underscore = text[2] == '_';
  const size_t read = take_digits(text + 2 + underscore, base, digits, sizeof digits);
  if (read == 0) return 0;
  uint64_t value = 0;
  for (const char *at = digits; *at; at++) {
    if (value > (uint64_t)INT64_MAX / (unsigned)base) {
      bounds_fail(b, "an integer of more than 64 bits is not supported");
      return 1;
    }
    value = value * (unsigned)base + (unsigned)digit_of(*at);
  }
  if (value > INT64_MAX)
    bounds_fail(b, "an integer of more than 64 bits is not supported");
  else
    *number = value_integer((int64_t)value);
  return 2 + underscore + read;
}

size_t literal_number(struct bounds *b, const char *text, bool after_dot, struct value *number) {
  static const struct {
    char letter;
    int base;
  } bases[] = {{'b', 2}, {'o', 8}, {'x', 16}};
  *number = VALUE_FAILED;
  for (size_t i = 0; text[0] == '0' && i < sizeof bases / sizeof *bases; i++)
    if ((text[1] | 0x20) == bases[i].letter) {
      const size_t length = read_based(b, text, bases[i].base, number);
      if (length > 0) return length;
    }
  char digits[DIGITS] = "";
  size_t length = take_digits(text, 10, digits, sizeof digits), whole = length;
  bool real = false;
  if (!after_dot && text[length] == '.' && text[length + 1] >= '0' && text[length + 1] <= '9') {
    strncat(digits, ".", sizeof digits - strlen(digits) - 1);
    length += 1 + take_digits(text + length + 1, 10, digits, sizeof digits);
    real = true;
  }
  if (!after_dot && (text[length] | 0x20) == 'e') {
    const size_t sign = text[length + 1] == '+' || text[length + 1] == '-';
    if (text[length + 1 + sign] >= '0' && text[length + 1 + sign] <= '9') {
      strncat(digits, sign && text[length + 1] == '-' ? "e-" : "e",
              sizeof digits - strlen(digits) - 1);
      length += 1 + sign;
      length += take_digits(text + length, 10, digits, sizeof digits);
      real = true;
    }
  }
  if (strlen(digits) >= DIGITS - 2) {
    bounds_fail(b, "the number has too many digits");
  } else if (real) {
    *number = value_real(strtod(digits, NULL));
  } else if (text[0] == '0') {
    /* Digits after zeros are another number, as in Python before 3: a syntax error. */
    for (length = 1; length < whole && text[length] == '0';) length++;
    *number = value_integer(0);
  } else {
    const size_t most = strlen("9223372036854775807"), n = strlen(digits);
    if (n > most || (n == most && strcmp(digits, "9223372036854775807") > 0))
      bounds_fail(b, "an integer of more than 64 bits is not supported");
    else
      *number = value_integer(strtoll(digits, NULL, 10));
  }
  return length;
}
