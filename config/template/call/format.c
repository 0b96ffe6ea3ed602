/* format: texts made by a format: Python's % of a text, and strftime(). */
#include "config/template/call/format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "config/template/call/arguments.h"
#include "config/template/value/arithmetic.h"
#include "config/template/value/compare.h"
#include "config/template/value/print.h"
#include "config/tokenizer/pattern/unicode.h"

enum { WIDTH_MAX = 100000, DECIMALS_MAX = 300, NUMBER = 700 };

struct format {
  struct bounds *b;
  struct value values;
  size_t taken; /* of a tuple */
  bool mapped;  /* a %(name)s was there */
  struct buffer out;
};

/* One conversion: %[(name)][flags][width][.precision]letter. */
struct conversion {
  bool left, plus, space, zero, alternate;
  int64_t width, precision; /* precision -1: none */
  char letter;
};

static struct value next_value(struct format *f) {
  if (f->values.kind == VALUE_TUPLE && f->taken < f->values.list->count)
    return f->values.list->item[f->taken++];
  if (f->values.kind != VALUE_TUPLE && f->taken++ == 0) return f->values;
  bounds_fail(f->b, "not enough arguments for format string");
  return VALUE_FAILED;
}

static bool put_padded(struct format *f, const struct conversion *c, const char *text,
                       size_t length, size_t zeros_at) {
  const int64_t has = (int64_t)value_characters(text, length),
                lacks = c->width > has ? c->width - has : 0;
  const bool zeros = c->zero && !c->left && zeros_at <= length;
  struct bounds *b = f->b;
  if (c->left)
    return buffer_add(b, &f->out, text, length) && buffer_repeat(b, &f->out, " ", 1, lacks);
  if (!zeros)
    return buffer_repeat(b, &f->out, " ", 1, lacks) && buffer_add(b, &f->out, text, length);
  return buffer_add(b, &f->out, text, zeros_at) && buffer_repeat(b, &f->out, "0", 1, lacks) &&
         buffer_add(b, &f->out, text + zeros_at, length - zeros_at);
}

static bool put_text(struct format *f, const struct conversion *c, struct value v) {
  struct buffer text = {0};
  const bool done =
      c->letter == 's' ? print_value(f->b, &text, v) : print_represented(f->b, &text, v);
  if (!done) return false;
  if (c->precision >= 0) text.length = value_skip(text.text, text.length, (size_t)c->precision);
  return put_padded(f, c, text.text, text.length, SIZE_MAX);
}

/* The sign that a number is written with, and then its digits. */
static bool put_number(struct format *f, const struct conversion *c, bool negative,
                       const char *prefix, const char *digits) {
  char text[NUMBER + DECIMALS_MAX];
  const char *sign = negative ? "-" : c->plus ? "+" : c->space ? " " : "";
  const int64_t count = (int64_t)strlen(digits);
  const bool decimals = strchr("diuxXo", c->letter) != NULL;
  const int zeros = decimals && c->precision > count ? (int)(c->precision - count) : 0;
  const int length = snprintf(text, sizeof text, "%s%s", sign, prefix);
  for (int i = 0; i < zeros; i++) text[length + i] = '0';
  snprintf(text + length + zeros, sizeof text - (size_t)(length + zeros), "%s", digits);
  return put_padded(f, c, text, strlen(text), (size_t)length);
}

static bool put_integer(struct format *f, const struct conversion *c, struct value v) {
  char digits[NUMBER];
  const bool decimal = strchr("diu", c->letter) != NULL;
  if (v.kind == VALUE_REAL && decimal) v = arithmetic_integer(f->b, v.real);
  if (!v.kind) return false;
  if (v.kind == VALUE_UNDEFINED) return value_fail_undefined(f->b, v).kind;
  if (!value_is_integer(v))
    return bounds_fail(f->b, "%%%c format: a number is required, not %s", c->letter, value_type(v));
  const int64_t n = value_as_integer(v);
  const uint64_t size = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
  const char *prefix = "";
  if (decimal)
    snprintf(digits, sizeof digits, "%" PRIu64, size);
  else if (c->letter == 'o')
    snprintf(digits, sizeof digits, "%" PRIo64, size), prefix = "0o";
  else if (c->letter == 'x')
    snprintf(digits, sizeof digits, "%" PRIx64, size), prefix = "0x";
  else
    snprintf(digits, sizeof digits, "%" PRIX64, size), prefix = "0X";
  return put_number(f, c, n < 0, c->alternate ? prefix : "", digits);
}

static bool put_real(struct format *f, const struct conversion *c, struct value v) {
  char digits[NUMBER];
  if (v.kind == VALUE_UNDEFINED) return value_fail_undefined(f->b, v).kind;
  if (!value_is_number(v)) return bounds_fail(f->b, "must be real number, not %s", value_type(v));
  const double real = value_as_real(v);
  char how[8];
  snprintf(how, sizeof how, "%%%s.*%c", c->alternate ? "#" : "", c->letter);
  const int decimals = c->precision < 0 ? 6 : (int)c->precision;
  const double size = fabs(real);
  snprintf(digits, sizeof digits, how, decimals, size);
  return put_number(f, c, signbit(real) && !isnan(real), "", digits);
}

static bool put_character(struct format *f, const struct conversion *c, struct value v) {
  char bytes[UNICODE_BYTES_MAX];
  size_t count = 0;
  if (v.kind == VALUE_TEXT && !value_length(f->b, v, &count)) return false;
  if (count == 1) return put_padded(f, c, v.text, v.length, SIZE_MAX);
  const int64_t code = value_is_integer(v) ? value_as_integer(v) : -1;
  if (code < 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
    return bounds_fail(f->b, "%%c requires int or char");
  return put_padded(f, c, bytes, unicode_write((uint32_t)code, bytes), SIZE_MAX);
}

#define TOO_WIDE "the format has a width or precision above %d"

/* Reads digits or "*", of at most `most`. */
static bool read_count(struct format *f, const char **at, int64_t most, int64_t *out) {
  *out = 0;
  if (**at == '*') {
    ++*at;
    const struct value count = next_value(f);
    if (!count.kind || !arguments_integer(f->b, count, 0, out)) return false;
    return (*out >= -most && *out <= most) || bounds_fail(f->b, TOO_WIDE, (int)most);
  }
  while (**at >= '0' && **at <= '9' && *out <= most) *out = *out * 10 + (*(*at)++ - '0');
  return *out <= most || bounds_fail(f->b, TOO_WIDE, (int)most);
}

static const char *read_flags(const char *at, struct conversion *c) {
  for (;; at++) {
    if (*at == '-')
      c->left = true;
    else if (*at == '+')
      c->plus = true;
    else if (*at == ' ')
      c->space = true;
    else if (*at == '0')
      c->zero = true;
    else if (*at == '#')
      c->alternate = true;
    else
      return at;
  }
}

/* Puts one conversion, whose text follows the percent sign. Returns its end, or NULL. */
static const char *convert(struct format *f, const char *at) {
  struct conversion c = {.precision = -1};
  struct value v = VALUE_FAILED;
  if (*at == '(') {
    const char *end = strchr(at, ')');
    if (!end) return bounds_fail(f->b, "incomplete format key"), NULL;
    if (f->values.kind != VALUE_DICT) return bounds_fail(f->b, "format requires a mapping"), NULL;
    const struct value key = value_copy(f->b, at + 1, (size_t)(end - at - 1));
    v = key.kind ? compare_find(f->b, f->values, key) : key;
    if (!v.kind) return bounds_fail(f->b, "the key '%.80s' is not there", key.text), NULL;
    f->mapped = true;
    at = end + 1;
  }
  at = read_flags(at, &c);
  if (!read_count(f, &at, WIDTH_MAX, &c.width)) return NULL;
  if (c.width < 0) c.left = true, c.width = -c.width;
  if (*at == '.' && (at++, !read_count(f, &at, DECIMALS_MAX, &c.precision))) return NULL;
  if (*at == 'h' || *at == 'l' || *at == 'L') at++;
  c.letter = *at;
  if (c.letter == '%') return buffer_word(f->b, &f->out, "%") ? at + 1 : NULL;
  if (!c.letter) return bounds_fail(f->b, "incomplete format"), NULL;
  if (!strchr("srdiuxXofFeEgGc", c.letter))
    return bounds_fail(f->b, "unsupported format character in \"%%%.1s\"", at), NULL;
  if (!v.kind) v = next_value(f);
  bool done = v.kind;
  if (done && strchr("sr", c.letter))
    done = put_text(f, &c, v);
  else if (done && strchr("diuxXo", c.letter))
    done = put_integer(f, &c, v);
  else if (done && c.letter == 'c')
    done = put_character(f, &c, v);
  else if (done)
    done = put_real(f, &c, v);
  return done ? at + 1 : NULL;
}

struct value format_values(struct bounds *b, struct value text, struct value values) {
  struct format f = {.b = b, .values = values};
  const char *at = text.text, *const end = text.text + text.length;
  while (at < end) {
    const char *sign = memchr(at, '%', (size_t)(end - at));
    if (!buffer_add(b, &f.out, at, (size_t)((sign ? sign : end) - at))) return VALUE_FAILED;
    if (!sign) break;
    at = convert(&f, sign + 1);
    if (!at) return VALUE_FAILED;
  }
  const bool all = values.kind == VALUE_TUPLE
                       ? f.taken == values.list->count
                       : f.taken > 0 || values.kind == VALUE_DICT || values.kind == VALUE_LIST ||
                             values.kind == VALUE_RANGE || values.kind == VALUE_UNDEFINED;
  if (!all && !f.mapped)
    return bounds_fail(b, "not all arguments converted during string formatting"), VALUE_FAILED;
  return buffer_value(b, &f.out);
}

/* --- strftime() --- */

/* The day of the week, from Sunday on, and of the year, both from 0. */
static void fill_days(struct tm *t) {
  static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
  static const int weekday[] = {0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4};
  const int year = t->tm_year + 1900, y = year - (t->tm_mon < 2);
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  t->tm_wday = (y + y / 4 - y / 100 + y / 400 + weekday[t->tm_mon] + t->tm_mday) % 7;
  t->tm_yday = before[t->tm_mon] + t->tm_mday - 1 + (leap && t->tm_mon > 1);
}

struct value format_time(struct bounds *b, struct value format, const struct format_time *time) {
  enum { PART = 256 };
  struct buffer out = {0};
  struct tm t = {.tm_year = time->year - 1900,
                 .tm_mon = time->month - 1,
                 .tm_mday = time->day,
                 .tm_hour = time->hour,
                 .tm_min = time->minute,
                 .tm_sec = time->second};
  fill_days(&t);
  for (const char *at = format.text; *at; at++) {
    char how[4] = "%", part[PART];
    size_t length = 1;
    if (*at != '%' || !at[1]) {
      if (!buffer_add(b, &out, at, 1)) return VALUE_FAILED;
      continue;
    }
    if (!bounds_step(b, 1)) return VALUE_FAILED;
    how[length++] = *++at;
    if (*at == '-' && at[1]) how[length++] = *++at;
    if (strcmp(how, "%f") == 0)
      snprintf(part, sizeof part, "%06d", time->microsecond);
    else if (strcmp(how, "%z") == 0 || strcmp(how, "%Z") == 0)
      part[0] = '\0';
    else if (strchr("aAbBcdHIjmMpSUwWxXyYGuVDeFhlkRTCgrs-%", *at) && *at != 's')
      part[strftime(part, sizeof part, how, &t)] = '\0';
    else
      return bounds_fail(b, "the directive %s of strftime is not supported", how), VALUE_FAILED;
    if (!buffer_word(b, &out, part)) return VALUE_FAILED;
  }
  return buffer_value(b, &out);
}
