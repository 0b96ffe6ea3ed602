/* filter_text: the filters whose result is a text, a number or a flag. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config/template/call/filter_table.h"
#include "config/template/call/method_text.h"
#include "config/template/value/arithmetic.h"
#include "config/template/value/iterate.h"
#include "config/template/value/letters.h"
#include "config/template/value/print.h"
#include "config/tokenizer/pattern/unicode.h"

/* --- case and blanks --- */

static struct value in_case(struct bounds *b, struct value x, enum letters_case to) {
  const struct value text = print_text(b, x);
  return text.kind ? letters_case(b, text, to) : text;
}

static struct value apply_upper(struct bounds *b, struct value x, const struct value *a) {
  (void)a;
  return in_case(b, x, LETTERS_UPPER);
}
static struct value apply_lower(struct bounds *b, struct value x, const struct value *a) {
  (void)a;
  return in_case(b, x, LETTERS_LOWER);
}
static struct value apply_title(struct bounds *b, struct value x, const struct value *a) {
  (void)a;
  return in_case(b, x, LETTERS_FILTER_TITLE);
}
static struct value apply_capitalize(struct bounds *b, struct value x, const struct value *a) {
  (void)a;
  return in_case(b, x, LETTERS_CAPITALIZED);
}

static struct value apply_trim(struct bounds *b, struct value x, const struct value *a) {
  const struct value text = print_text(b, x), set = a[0].kind == VALUE_NONE ? VALUE_FAILED : a[0];
  if (set.kind && set.kind != VALUE_TEXT)
    return bounds_fail(b, "strip arg must be None or str"), VALUE_FAILED;
  return text.kind ? letters_strip(b, text, set, true, true) : text;
}

static struct value apply_center(struct bounds *b, struct value x, const struct value *a) {
  int64_t width;
  const struct value text = print_text(b, x);
  return text.kind && arguments_integer(b, a[0], 80, &width)
             ? method_text_center(b, text, width, VALUE_FAILED)
             : VALUE_FAILED;
}

/* The text must be one: nothing else has lines. */
static struct value apply_indent(struct bounds *b, struct value x, const struct value *a) {
  struct buffer indention = {0}, out = {0};
  int64_t width = 4;
  const bool blank = arguments_truth(a[2], false);
  if (x.kind == VALUE_UNDEFINED) return value_fail_undefined(b, x);
  if (x.kind != VALUE_TEXT)
    return bounds_fail(b, "indent needs a string, got '%s'", value_type(x)), VALUE_FAILED;
  /* Python adds an end of a line, which is one with a carriage return before it. */
  if (x.length > 0 && x.text[x.length - 1] == '\r') x.length--;
  bool done = a[0].kind == VALUE_TEXT ? buffer_add(b, &indention, a[0].text, a[0].length)
                                      : arguments_integer(b, a[0], 4, &width) &&
                                            buffer_repeat(b, &indention, " ", 1, width);
  if (done && arguments_truth(a[1], false))
    done = buffer_add(b, &out, indention.text, indention.length);
  /* A line that is not ended is a line; so is nothing after the last end of one. */
  for (size_t at = 0, end = 1; done && end > 0;) {
    const size_t length = letters_line(x, at, &end);
    if (at > 0) done = buffer_word(b, &out, "\n");
    if (done && at > 0 && (blank || length > 0))
      done = buffer_add(b, &out, indention.text, indention.length);
    done = done && buffer_add(b, &out, x.text + at, length);
    at += length + end;
  }
  return done ? buffer_value(b, &out) : VALUE_FAILED;
}

/* --- texts --- */

static struct value apply_string(struct bounds *b, struct value x, const struct value *a) {
  (void)a;
  return print_text(b, x);
}

static struct value apply_replace(struct bounds *b, struct value x, const struct value *a) {
  int64_t most;
  const struct value text = print_text(b, x), old = print_text(b, a[0]), new = print_text(b, a[1]),
                     count = a[2].kind == VALUE_NONE ? VALUE_FAILED : a[2];
  return text.kind && old.kind && new.kind &&arguments_integer(b, count, -1, &most)
             ? method_text_replace(b, text, old, new, most)
             : VALUE_FAILED;
}

static struct value apply_escape(struct bounds *b, struct value x, const struct value *a) {
  static const char signs[] = "&<>'\"";
  static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
  const struct value text = print_text(b, x);
  struct buffer out = {0};
  (void)a;
  bool done = text.kind;
  for (size_t at = 0; done && at < text.length;) {
    const size_t plain = strcspn(text.text + at, signs);
    done = buffer_add(b, &out, text.text + at, plain);
    at += plain;
    if (!done || at >= text.length) break;
    const char *sign = text.text[at] ? strchr(signs, text.text[at]) : NULL;
    done = sign ? buffer_word(b, &out, names[sign - signs]) : buffer_add(b, &out, "", 1);
    at++;
  }
  return done ? buffer_value(b, &out) : VALUE_FAILED;
}

static struct value apply_wordcount(struct bounds *b, struct value x, const struct value *a) {
  const struct value text = print_text(b, x);
  int64_t words = 0;
  bool within = false;
  (void)a;
  if (!text.kind || !bounds_text(b, text.length)) return VALUE_FAILED;
  for (size_t i = 0, length; i < text.length; i += length) {
    const uint32_t c = unicode_read(text.text + i, &length);
    const bool is = c == '_' || unicode_is_letter(c) || unicode_is_numeric(c);
    words += is && !within;
    within = is;
  }
  return value_integer(words);
}

static struct value apply_truncate(struct bounds *b, struct value x, const struct value *a) {
  int64_t length, leeway;
  struct value end;
  struct buffer out = {0};
  if (!arguments_integer(b, a[0], 255, &length) ||
      !arguments_text(b, a[2], value_word("..."), &end) ||
      !arguments_integer(b, a[3].kind == VALUE_NONE ? VALUE_FAILED : a[3], 5, &leeway))
    return VALUE_FAILED;
  size_t has, ending_has;
  if (!value_length(b, end, &ending_has)) return VALUE_FAILED;
  const int64_t ending = (int64_t)ending_has;
  if (length < ending || leeway < 0 || !value_length(b, x, &has))
    return bounds_fail(b, "truncate needs a string, and a length of at least %d", (int)ending),
           VALUE_FAILED;
  if ((int64_t)has <= length || (int64_t)has - length <= leeway) return x;
  if (x.kind != VALUE_TEXT)
    return bounds_fail(b, "truncate needs a string, got '%s'", value_type(x)), VALUE_FAILED;
  size_t kept = value_skip(x.text, x.length, (size_t)(length - ending));
  const char *space = arguments_truth(a[1], false) ? NULL : memrchr(x.text, ' ', kept);
  if (space) kept = (size_t)(space - x.text);
  return buffer_add(b, &out, x.text, kept) && buffer_add(b, &out, end.text, end.length)
             ? buffer_value(b, &out)
             : VALUE_FAILED;
}

static struct value apply_tojson(struct bounds *b, struct value x, const struct value *a) {
  struct buffer indent = {0}, out = {0};
  struct print_json how = {.ascii = arguments_truth(a[0], false),
                           .sorted = arguments_truth(a[3], false)};
  int64_t width;
  if (a[1].kind && a[1].kind != VALUE_NONE) {
    const bool done = a[1].kind == VALUE_TEXT ? buffer_add(b, &indent, a[1].text, a[1].length)
                                              : arguments_integer(b, a[1], 0, &width) &&
                                                    buffer_repeat(b, &indent, " ", 1, width);
    how.indent = done ? buffer_value(b, &indent).text : NULL;
    if (!how.indent) return VALUE_FAILED;
  }
  if (a[2].kind && a[2].kind != VALUE_NONE) {
    size_t count;
    const bool pair = (a[2].kind == VALUE_TUPLE || a[2].kind == VALUE_LIST) &&
                      value_items(a[2], &count) && count == 2 &&
                      value_at(a[2], 0).kind == VALUE_TEXT && value_at(a[2], 1).kind == VALUE_TEXT;
    if (!pair) return bounds_fail(b, "separators must be two strings"), VALUE_FAILED;
    how.item_separator = value_at(a[2], 0);
    how.key_separator = value_at(a[2], 1);
  }
  return print_json(b, &out, x, &how) ? buffer_value(b, &out) : VALUE_FAILED;
}

/* --- numbers --- */

/* Reads a whole text as a number: digits, between which there may be underscores, and a sign.
 * False: it is none. Infinite and not a number are numbers, too, unless it is to be an integer. */
static bool read_integer(struct bounds *b, struct value text, int64_t base, struct value *out) {
  enum { DIGITS = 80 };
  char digits[DIGITS];
  size_t n = 0;
  const struct value stripped = letters_strip(b, text, VALUE_FAILED, true, true);
  if (!stripped.kind) return false;
  for (size_t i = 0; i < stripped.length; i++) {
    const char c = stripped.text[i];
    const bool inner = i > 0 && i + 1 < stripped.length && stripped.text[i - 1] != '_';
    if (c == '_' && inner && stripped.text[i - 1] != '+' && stripped.text[i - 1] != '-') continue;
    if (n + 1 == DIGITS || !(c == '+' || c == '-' || (c >= '0' && c <= '9') ||
                             (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')))
      return false;
    digits[n++] = c;
  }
  digits[n] = '\0';
  char *end;
  const char *at = digits + (n && (*digits == '-' || *digits == '+'));
  const bool prefixed = at[0] == '0' && strchr("bBoOxX", at[1]) && at[1];
  if (*at == '\0' || *at == '-' || *at == '+') return false;
  if (prefixed && (base == 0 || base == 2 || base == 8) && strchr("bBoO", at[1])) {
    const int64_t is = strchr("bB", at[1]) ? 2 : 8;
    if (base != 0 && base != is) return false;
    memmove((char *)at, at + 2, strlen(at + 2) + 1);
    base = is;
    if (*at == '\0' || *at == '-' || *at == '+') return false;
  } else if (base == 0 && at[0] == '0' && !prefixed) {
    if (strspn(at, "0") != strlen(at)) return false;
    base = 10;
  }
  const long long value = strtoll(digits, &end, (int)base);
  if (*end) return false;
  const int64_t most = INT64_MAX;
  if (value == most || value == -most - 1)
    bounds_fail(b, "an integer of more than 64 bits is not supported");
  *out = value_integer(value);
  return !b->e->status;
}

static bool read_real(struct bounds *b, struct value text, double *out) {
  enum { DIGITS = 400 };
  char digits[DIGITS], *end;
  size_t n = 0;
  const struct value stripped = letters_strip(b, text, VALUE_FAILED, true, true);
  if (!stripped.kind || stripped.length == 0) return false;
  for (size_t i = 0; i < stripped.length; i++) {
    const char c = stripped.text[i];
    const bool between = i > 0 && i + 1 < stripped.length && stripped.text[i - 1] >= '0' &&
                         stripped.text[i - 1] <= '9' && stripped.text[i + 1] >= '0' &&
                         stripped.text[i + 1] <= '9';
    if (c == '_' && between) continue;
    if (n + 1 == DIGITS || !strchr("0123456789.eE+-infatyINFATY", c) || !c) return false;
    digits[n++] = c;
  }
  digits[n] = '\0';
  if (strpbrk(digits, "(xX")) return false;
  *out = strtod(digits, &end);
  return end != digits && *end == '\0';
}

static struct value apply_int(struct bounds *b, struct value x, const struct value *a) {
  int64_t base;
  struct value number = VALUE_FAILED;
  double real;
  const struct value otherwise = a[0].kind ? a[0] : value_integer(0);
  if (!arguments_integer(b, a[1], 10, &base)) return VALUE_FAILED;
  if (base != 0 && (base < 2 || base > 36)) return otherwise;
  if (x.kind == VALUE_UNDEFINED) return value_fail_undefined(b, x);
  if (value_is_integer(x)) return value_integer(value_as_integer(x));
  if (x.kind == VALUE_TEXT && read_integer(b, x, base, &number)) return number;
  if (b->e->status) return VALUE_FAILED;
  if (x.kind == VALUE_TEXT && read_real(b, x, &real) && isfinite(real))
    return arithmetic_integer(b, real);
  return x.kind == VALUE_REAL && isfinite(x.real) ? arithmetic_integer(b, x.real) : otherwise;
}

static struct value apply_float(struct bounds *b, struct value x, const struct value *a) {
  double real;
  if (x.kind == VALUE_UNDEFINED) return value_fail_undefined(b, x);
  if (value_is_number(x)) return value_real(value_as_real(x));
  if (x.kind == VALUE_TEXT && read_real(b, x, &real)) return value_real(real);
  return a[0].kind ? a[0] : value_real(0);
}

static struct value apply_abs(struct bounds *b, struct value x, const struct value *a) {
  (void)a;
  if (x.kind == VALUE_REAL) return value_real(fabs(x.real));
  if (value_is_integer(x) && value_as_integer(x) >= 0) return value_integer(value_as_integer(x));
  return arithmetic_negate(b, x);
}

static struct value apply_round(struct bounds *b, struct value x, const struct value *a) {
  int64_t decimals;
  struct value method;
  if (!arguments_integer(b, a[0], 0, &decimals) ||
      !arguments_text(b, a[1], value_word("common"), &method))
    return VALUE_FAILED;
  const bool up = strcmp(method.text, "ceil") == 0;
  if (strcmp(method.text, "common") == 0) return arithmetic_round(b, x, decimals);
  if (!up && strcmp(method.text, "floor") != 0)
    return bounds_fail(b, "method must be common, ceil or floor"), VALUE_FAILED;
  const struct value unit = arithmetic_values(b, ARITHMETIC_POWER, value_integer(10),
                                              value_integer(decimals)),
                     scaled = unit.kind ? arithmetic_values(b, ARITHMETIC_MULTIPLY, x, unit) : unit;
  if (!scaled.kind) return scaled;
  if (!value_is_number(scaled))
    return bounds_fail(b, "must be real number, not %s", value_type(scaled)), VALUE_FAILED;
  const double size = value_as_real(scaled);
  const struct value whole =
      scaled.kind == VALUE_REAL ? arithmetic_integer(b, up ? ceil(size) : floor(size)) : scaled;
  return whole.kind ? arithmetic_values(b, ARITHMETIC_DIVIDE, whole, unit) : whole;
}

/* --- all --- */

#define FILTER(name, ...)                \
  {                                      \
#name, apply_##name, { __VA_ARGS__ } \
  }

static const struct filter filters[] = {
    FILTER(upper, {0}, 0),
    FILTER(lower, {0}, 0),
    FILTER(title, {0}, 0),
    FILTER(capitalize, {0}, 0),
    FILTER(trim, {"chars"}, 0),
    FILTER(center, {"width"}, 0),
    FILTER(indent, {"width", "first", "blank"}, 0),
    FILTER(string, {0}, 0),
    {"safe", apply_string, {{0}, 0}},
    FILTER(replace, {"old", "new", "count"}, 2),
    FILTER(escape, {0}, 0),
    {"e", apply_escape, {{0}, 0}},
    {"forceescape", apply_escape, {{0}, 0}},
    FILTER(wordcount, {0}, 0),
    FILTER(truncate, {"length", "killwords", "end", "leeway"}, 0),
    FILTER(tojson, {"ensure_ascii", "indent", "separators", "sort_keys"}, 0),
    FILTER(int, {"default", "base"}, 0),
    FILTER(float, {"default"}, 0),
    FILTER(abs, {0}, 0),
    FILTER(round, {"precision", "method"}, 0),
};

const struct filter *filter_text_find(const char *name) {
  for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
    if (strcmp(filters[i].name, name) == 0) return &filters[i];
  return NULL;
}
