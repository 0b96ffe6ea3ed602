/* pattern_syntax: reads an expression, and writes it anew. */
#include "config/tokenizer/pattern/pattern_syntax.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "config/tokenizer/pattern/pattern_newer.h"

enum { NESTED = 100 }; /* groups within one another */

#define NOTHING SIZE_MAX

struct pattern_syntax {
  struct pattern_reader r;
  struct pattern_text *out;
  size_t atom;     /* where the last repeatable item begins in `out`; or NOTHING */
  bool repeated;   /* whether it is repeated already */
  bool dot_is_all; /* whether a dot matches newlines */
  bool captures;   /* whether something refers back to a group */
  size_t depth;    /* of nested groups */
};

static void begin_atom(struct pattern_syntax *s) {
  s->atom = s->out->length;
  s->repeated = false;
}

static void append_atom(struct pattern_syntax *s, const char *string) {
  begin_atom(s);
  pattern_text_append(s->out, string);
}

/* Appends what matches a place, not a character. */
static void append_place(struct pattern_syntax *s, const char *string) {
  pattern_text_append(s->out, string);
  s->atom = NOTHING;
}

/* --- repeating --- */

/* An item that is repeated already is grouped first: PCRE2 would read the two signs as one. */
static void append_repeat(struct pattern_syntax *s, const char *from, const char *how) {
  if (s->atom == NOTHING) {
    pattern_reader_refuse(&s->r, from, "has nothing to repeat");
    return;
  }
  if (s->repeated) {
    pattern_text_insert(s->out, s->atom, "(?:");
    pattern_text_append(s->out, ")");
  }
  pattern_text_append(s->out, how);
  s->repeated = true;
}

static size_t count_digits(const char *at, const char *end) {
  size_t count = 0;
  while (at + count < end && isdigit((unsigned char)at[count])) count++;
  return count;
}

/* Reads {n}, {n,}, {n,m} or {,m}; false: it is a plain brace, and nothing is read. A ? after it
 * means as few as possible, but after {n} it repeats once more, as a + always does. */
static bool read_interval(struct pattern_syntax *s) {
  enum { MOST = 6 }; /* digits */
  const char *from = s->r.at, *end = s->r.end, *low = from + 1;
  const size_t lows = count_digits(low, end);
  const bool comma = low + lows < end && low[lows] == ',';
  const char *high = low + lows + comma;
  const size_t highs = comma ? count_digits(high, end) : 0;
  if (lows + highs == 0 || high + highs >= end || high[highs] != '}') return false;
  s->r.at = high + highs + 1;
  if (lows > MOST || highs > MOST) {
    pattern_reader_refuse(&s->r, from, "repeats too often");
    return true;
  }
  char how[32];
  snprintf(how, sizeof how, "{%.*s%s%.*s}%s", lows ? (int)lows : 1, lows ? low : "0",
           comma ? "," : "", (int)highs, high, comma && pattern_reader_skip(&s->r, "?") ? "?" : "");
  append_repeat(s, from, how);
  return true;
}

/* --- backslashes --- */

#define LINE_END "(?>\\x0d\\x0a|[\\x0a-\\x0d\\x85\\x{2028}\\x{2029}])"

/* Appends the boundary of a word (\b), or if not `is` all other places (\B). */
static void append_boundary(struct pattern_syntax *s, bool is) {
  struct pattern_set word;
  char text[5 * PATTERN_SET_BODY];
  must(pattern_set_letter('w', false, &word));
  if (s->r.newer) pattern_newer_add(&word);
  snprintf(text, sizeof text, "(?:(?<=[%s])(?%s[%s])|(?<![%s])(?%s[%s]))", word.body,
           is ? "!" : "=", word.body, word.body, is ? "=" : "!", word.body);
  append_place(s, text);
}

/* Reads an escape that is neither a set nor a character; false: it is one, and nothing is read. */
static bool read_place(struct pattern_syntax *s, const char *from) {
  struct pattern_reader *r = &s->r;
  if (pattern_reader_skip(r, "b") || pattern_reader_skip(r, "B"))
    append_boundary(s, r->at[-1] == 'b');
  else if (pattern_reader_skip(r, "A"))
    append_place(s, "\\A");
  else if (pattern_reader_skip(r, "z"))
    append_place(s, "\\z");
  else if (pattern_reader_skip(r, "Z"))
    append_place(s, "\\Z");
  else if (pattern_reader_skip(r, "K"))
    append_place(s, "\\K");
  else if (pattern_reader_skip(r, "N"))
    append_atom(s, "\\N");
  else if (pattern_reader_skip(r, "O"))
    append_atom(s, "(?s:.)");
  else if (pattern_reader_skip(r, "R"))
    append_atom(s, LINE_END);
  else {
    /* The number of a group has one digit: more may be the number of a character. */
    const char digit = *r->at;
    const size_t digits = digit == '0' ? 0 : count_digits(r->at, r->end);
    r->at += digits;
    if (digits == 1) append_atom(s, (char[]){'\\', digit, '\0'});
    if (digits > 1) pattern_reader_refuse(r, from, "refers to too high a group");
    return digits > 0;
  }
  return true;
}

static void read_escape(struct pattern_syntax *s) {
  const char *from = s->r.at++;
  struct pattern_set set;
  bool negated;
  if (read_place(s, from)) return;
  begin_atom(s);
  if (pattern_reader_set(&s->r, false, &set, &negated))
    pattern_class_of(&s->r, from, &set, negated, s->out);
  else
    pattern_text_character(s->out, pattern_reader_escaped(&s->r));
}

/* --- groups --- */

static void read_alternatives(struct pattern_syntax *s);

/* Reads a group after its beginning, which is written as `begin`, up to before its end. */
static void read_inside(struct pattern_syntax *s, const char *from, const char *begin) {
  const size_t at = s->out->length;
  const bool caseless = s->r.caseless, dot_is_all = s->dot_is_all;
  pattern_text_append(s->out, begin);
  s->atom = NOTHING;
  if (++s->depth > NESTED)
    pattern_reader_refuse(&s->r, from, "is nested too deep");
  else
    read_alternatives(s);
  s->depth--;
  pattern_text_append(s->out, ")");
  s->r.caseless = caseless;
  s->dot_is_all = dot_is_all;
  s->atom = at;
  s->repeated = false;
}

static void read_end(struct pattern_syntax *s, const char *from) {
  if (!pattern_reader_skip(&s->r, ")")) pattern_reader_refuse(&s->r, from, "has no end");
}

/* Reads the letters between "(?" and ":" or ")". With ")" they are for the rest of the group around
 * them, also after |. */
static void read_options(struct pattern_syntax *s, const char *from) {
  const bool caseless = s->r.caseless, dot_is_all = s->dot_is_all;
  bool on = true;
  for (; s->r.at < s->r.end && strchr("im-", *s->r.at); s->r.at++) {
    if (*s->r.at == '-') on = false;
    if (*s->r.at == 'i') s->r.caseless = on;
    if (*s->r.at == 'm') s->dot_is_all = on;
  }
  const char *begin = s->r.caseless ? "(?i:" : "(?-i:";
  if (pattern_reader_skip(&s->r, ":")) {
    read_inside(s, from, begin);
    read_end(s, from);
  } else if (pattern_reader_skip(&s->r, ")")) {
    read_inside(s, from, begin);
  } else {
    if (s->r.at < s->r.end) pattern_reader_character(&s->r);
    pattern_reader_refuse(&s->r, from, "is not supported");
  }
  s->r.caseless = caseless;
  s->dot_is_all = dot_is_all;
}

/* Reads (?<name>...). References by name are not supported, so the name is dropped. */
static void read_named(struct pattern_syntax *s, const char *from) {
  const char *end = memchr(s->r.at, '>', (size_t)(s->r.end - s->r.at));
  const bool is = end && end > s->r.at && (isalpha((unsigned char)*s->r.at) || *s->r.at == '_');
  s->r.at = is ? end + 1 : s->r.at;
  if (!is || s->captures) {
    pattern_reader_refuse(&s->r, from,
                          is ? "is not supported beside numbers that refer to groups"
                             : "is not supported");
    return;
  }
  read_inside(s, from, "(?:");
  read_end(s, from);
}

static void read_group(struct pattern_syntax *s) {
  static const char *const places[] = {"(?=", "(?!", "(?<=", "(?<!"};
  const char *from = s->r.at;
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    if (!pattern_reader_skip(&s->r, places[i])) continue;
    read_inside(s, from, places[i]);
    read_end(s, from);
    s->atom = NOTHING;
    return;
  }
  if (pattern_reader_skip(&s->r, "(?#")) {
    while (s->r.at < s->r.end && *s->r.at != ')') { /* a comment */
      if (*s->r.at == '\\' && s->r.end - s->r.at > 1) s->r.at++;
      s->r.at++;
    }
    read_end(s, from);
  } else if (pattern_reader_skip(&s->r, "(?<")) {
    read_named(s, from);
  } else if (pattern_reader_skip(&s->r, "(?:") || pattern_reader_skip(&s->r, "(?>")) {
    read_inside(s, from, s->r.at[-1] == '>' ? "(?>" : "(?:");
    read_end(s, from);
  } else if (pattern_reader_skip(&s->r, "(?")) {
    read_options(s, from);
  } else if (pattern_reader_skip(&s->r, "(*")) {
    pattern_reader_refuse(&s->r, from, "is not supported");
  } else {
    s->r.at++;
    read_inside(s, from, s->captures ? "(" : "(?:");
    read_end(s, from);
  }
}

/* --- the whole --- */

static void read_one(struct pattern_syntax *s) {
  struct pattern_reader *r = &s->r;
  const char *from = r->at;
  switch (*r->at) {
  case '|':
    r->at++;
    append_place(s, "|");
    return;
  case '^':
  case '$':
    append_place(s, *r->at++ == '^' ? "^" : "$");
    return;
  case '.':
    r->at++;
    append_atom(s, s->dot_is_all ? "(?s:.)" : "\\N");
    return;
  case '*':
  case '+':
  case '?': {
    char how[3] = {*r->at++, '\0', '\0'};
    if (pattern_reader_sees(r, "?") || pattern_reader_sees(r, "+")) how[1] = *r->at++;
    append_repeat(s, from, how);
    return;
  }
  case '(':
    read_group(s);
    return;
  case '\\':
    read_escape(s);
    return;
  case '[':
    r->at++;
    begin_atom(s);
    pattern_class_rewrite(r, s->out);
    return;
  case '{':
    if (read_interval(s)) return;
    break;
  default:
    break;
  }
  begin_atom(s);
  pattern_text_character(s->out, pattern_reader_character(r));
}

static void read_alternatives(struct pattern_syntax *s) {
  while (s->r.at < s->r.end && *s->r.at != ')') read_one(s);
}

/* Whether any backslash is followed by the number of a group. */
static bool refers_back(const char *at, const char *end) {
  for (; at + 1 < end; at++) {
    if (*at != '\\') continue;
    if (at[1] > '0' && at[1] <= '9') return true;
    at++;
  }
  return false;
}

enum status pattern_syntax_rewrite(const char *expression, size_t length, bool newer,
                                   pattern_set_knows *knows, struct pattern_text *out,
                                   struct error *e) {
  const char *end = expression + length;
  struct pattern_syntax s = {.r = {expression, expression, end, false, newer, knows, e},
                             .out = out,
                             .atom = NOTHING,
                             .captures = refers_back(expression, end)};
  read_alternatives(&s);
  if (s.r.at < end) {
    const char *from = s.r.at++;
    pattern_reader_refuse(&s.r, from, "ends no group");
  }
  if (out->lost) error_no_memory(e);
  return e->status;
}
