/* rfc8259: the grammar of JSON, by recursive descent: a function for a rule. */
#include "tests/fuzz/rfc8259.h"

#include <string.h>

struct text {
  const char *at, *end; /* a rule that fails leaves `at` where it does */
  size_t depth, deepest;
};

static bool value(struct text *t);

static int next(const struct text *t) { return t->at < t->end ? (unsigned char)*t->at : -1; }

static bool take(struct text *t, int c) {
  if (next(t) != c) return false;
  t->at++;
  return true;
}

/* A byte from `low` to `high`. */
static bool take_range(struct text *t, int low, int high) {
  if (next(t) < low || next(t) > high) return false;
  t->at++;
  return true;
}

static bool take_any(struct text *t, const char *set) {
  if (next(t) <= 0 || !strchr(set, next(t))) return false;
  t->at++;
  return true;
}

/* ws = *( %x20 / %x09 / %x0A / %x0D ) */
static void blanks(struct text *t) {
  while (take_any(t, " \t\n\r")) {
  }
}

static bool word(struct text *t, const char *letters) {
  while (*letters)
    if (!take(t, *letters++)) return false;
  return true;
}

/* --- numbers --- */

static bool digits(struct text *t) {
  if (!take_range(t, '0', '9')) return false;
  while (take_range(t, '0', '9')) {
  }
  return true;
}

/* number = [ minus ] int [ frac ] [ exp ] */
static bool number(struct text *t) {
  take(t, '-');
  if (!take(t, '0') && !digits(t)) return false;
  if (take(t, '.') && !digits(t)) return false;
  if (take_any(t, "eE")) {
    take_any(t, "+-");
    return digits(t);
  }
  return true;
}

/* --- strings --- */

/* Four digits behind `\u`: what they make, or -1. */
static int hex(struct text *t) {
  int code = 0;
  for (int i = 0; i < 4; i++) {
    const int c = next(t);
    if (take_range(t, '0', '9'))
      code = code * 16 + c - '0';
    else if (take_range(t, 'a', 'f') || take_range(t, 'A', 'F'))
      code = code * 16 + (c | 0x20) - 'a' + 10;
    else
      return -1;
  }
  return code;
}

static bool is_low(int code) { return code >= 0xdc00 && code <= 0xdfff; }
static bool is_high(int code) { return code >= 0xd800 && code <= 0xdbff; }

/* Behind a backslash. */
static bool escape(struct text *t) {
  if (take_any(t, "\"\\/bfnrt")) return true;
  if (!take(t, 'u')) return false;
  const int first = hex(t);
  if (first < 0) return false;
  bool good = !is_low(first);
  if (is_high(first)) {
    if (!take(t, '\\') || !take(t, 'u')) return false;
    const int second = hex(t);
    if (second < 0) return false;
    good = is_low(second);
  }
  if (!good) t->at--; /* at the fourth digit */
  return good;
}

/* A character beyond ASCII, by the table of RFC 3629, section 4. */
static bool character(struct text *t) {
  static const unsigned char row[][3] = {
      {0xe0, 0xa0, 0xbf}, {0xed, 0x80, 0x9f}, {0xf0, 0x90, 0xbf}, {0xf4, 0x80, 0x8f}};
  const int lead = next(t);
  if (!take_range(t, 0xc2, 0xf4)) return false;
  int low = 0x80, high = 0xbf;
  for (size_t i = 0; i < sizeof row / sizeof *row; i++)
    if (lead == row[i][0]) {
      low = row[i][1];
      high = row[i][2];
    }
  if (!take_range(t, low, high)) return false;
  if (lead >= 0xe0 && !take_range(t, 0x80, 0xbf)) return false;
  return lead < 0xf0 || take_range(t, 0x80, 0xbf);
}

static bool string(struct text *t) {
  if (!take(t, '"')) return false;
  while (!take(t, '"')) {
    if (take(t, '\\') ? !escape(t) : next(t) > 0x7f ? !character(t) : !take_range(t, 0x20, 0x7f))
      return false;
  }
  return true;
}

/* --- arrays and objects --- */

static bool member(struct text *t) {
  if (!string(t)) return false;
  blanks(t);
  return take(t, ':') && value(t);
}

/* Elements between a bracket, which has been taken, and the one that closes it. */
static bool list(struct text *t, bool element(struct text *t), char close) {
  if (++t->depth > t->deepest) t->deepest = t->depth;
  blanks(t);
  if (!take(t, close)) {
    do {
      blanks(t);
      if (!element(t)) return false;
      blanks(t);
    } while (take(t, ','));
    if (!take(t, close)) return false;
  }
  t->depth--;
  return true;
}

static bool value(struct text *t) {
  blanks(t);
  switch (next(t)) {
  case '{':
    return take(t, '{') && list(t, member, '}');
  case '[':
    return take(t, '[') && list(t, value, ']');
  case '"':
    return string(t);
  case 't':
    return word(t, "true");
  case 'f':
    return word(t, "false");
  case 'n':
    return word(t, "null");
  default:
    return number(t);
  }
}

struct rfc8259 rfc8259_check(const char *text, size_t size) {
  struct text t = {.at = text, .end = text + size};
  bool good = value(&t);
  if (good) blanks(&t);
  return (struct rfc8259){.json = good && t.at == t.end,
                          .offset = (size_t)(t.at - text),
                          .depth = t.deepest};
}
