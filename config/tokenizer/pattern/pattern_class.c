/* pattern_class: characters in brackets. Oniguruma's brackets may be nested and intersect (&&);
 * PCRE2's may not: what they cannot express becomes alternatives of one character each, and
 * lookaheads. */
#include "config/tokenizer/pattern/pattern_parts.h"

#include <ctype.h>
#include <string.h>

#include "config/tokenizer/pattern/pattern_newer.h"

#define ANY "[\\x00-\\x{10ffff}]"

enum { NESTED = 32 }; /* brackets within one another */

/* The union of both; if it is negated, all other characters. */
struct pattern_class {
  struct pattern_text body;   /* within brackets of PCRE2 */
  struct pattern_text others; /* alternatives of one character each, separated by | */
  bool negated;
};

static void free_class(struct pattern_class *c) {
  pattern_text_free(&c->body);
  pattern_text_free(&c->others);
  c->negated = false;
}

/* --- writing --- */

static void write_class(const struct pattern_class *c, struct pattern_text *out) {
  const bool alone = c->others.length == 0;
  if (!alone) pattern_text_append(out, c->negated ? "(?:(?!" : "(?:");
  if (alone || c->body.length) {
    pattern_text_append(out, alone && c->negated ? "[^" : "[");
    pattern_text_join(out, &c->body);
    pattern_text_append(out, alone ? "]" : "]|");
  }
  if (alone) return;
  pattern_text_join(out, &c->others);
  pattern_text_append(out, c->negated ? ")" ANY ")" : ")");
}

static void write_set(const struct pattern_set *set, bool negated, struct pattern_text *out) {
  const bool has_body = set->body[0];
  pattern_text_append(out, negated == has_body ? "[^" : "[");
  pattern_text_append(out, has_body ? set->body : set->inverse);
  pattern_text_append(out, "]");
}

/* --- adding --- */

/* A set of letters of one case is rejected where case is ignored: it has other letters in
 * Oniguruma's brackets, but not outside of them, and not in PCRE2. */
static void check_cased(struct pattern_reader *r, const char *from, const struct pattern_set *s) {
  if (s->cased && r->caseless)
    pattern_reader_refuse(r, from, "is not supported where case does not count");
}

/* The text to which another alternative is appended. */
static struct pattern_text *next_other(struct pattern_class *c) {
  if (c->others.length) pattern_text_append(&c->others, "|");
  return &c->others;
}

void pattern_class_of(struct pattern_reader *r, const char *from, const struct pattern_set *set,
                      bool negated, struct pattern_text *out) {
  check_cased(r, from, set);
  write_set(set, negated, out);
}

static void add_set(struct pattern_class *c, const struct pattern_set *set, bool negated) {
  const char *body = negated ? set->inverse : set->body;
  if (*body)
    pattern_text_append(&c->body, body);
  else
    write_set(set, negated, next_other(c));
}

/* --- reading --- */

/* Reads [:name:] or [:^name:]; false: it is something else, and nothing is read. */
static bool read_posix(struct pattern_reader *r, struct pattern_class *c) {
  const char *from = r->at;
  struct pattern_set set;
  if (!pattern_reader_sees(r, "[:")) return false;
  const bool negated = r->end - from > 2 && from[2] == '^';
  const char *name = from + 2 + negated;
  size_t length = 0;
  while (name + length < r->end && isalpha((unsigned char)name[length])) length++;
  if (r->end - name < (ptrdiff_t)length + 2 || memcmp(name + length, ":]", 2) != 0) return false;
  r->at = name + length + 2;
  if (!pattern_set_posix(name, length, &set)) {
    pattern_reader_refuse(r, from, "is not a known set");
    return true;
  }
  if (r->newer) pattern_newer_add(&set);
  check_cased(r, from, &set);
  add_set(c, &set, negated);
  return true;
}

static bool is_range(const struct pattern_reader *r) {
  return pattern_reader_sees(r, "-") && r->end - r->at > 1 && !pattern_reader_sees(r, "-]") &&
         !pattern_reader_sees(r, "-&&");
}

/* Adds a character, or the range that begins with it. A set cannot be the end of a range. */
static void read_range(struct pattern_reader *r, const char *from, uint32_t first,
                       struct pattern_class *c) {
  struct pattern_set set;
  bool negated;
  pattern_text_character(&c->body, first);
  if (!is_range(r)) return;
  const char *end = ++r->at;
  uint32_t last = 0;
  if (pattern_reader_skip(r, "[") ||
      (pattern_reader_skip(r, "\\") && pattern_reader_set(r, true, &set, &negated)))
    pattern_reader_refuse(r, end, "cannot be the end of a range");
  else
    last = r->at > end ? pattern_reader_escaped(r) : pattern_reader_character(r);
  if (last < first) pattern_reader_refuse(r, from, "is a range from a later character");
  pattern_text_append(&c->body, "-");
  pattern_text_character(&c->body, last);
}

static void read_escape(struct pattern_reader *r, struct pattern_class *c) {
  const char *from = r->at++;
  struct pattern_set set;
  bool negated;
  if (!pattern_reader_set(r, true, &set, &negated)) {
    read_range(r, from, pattern_reader_escaped(r), c);
    return;
  }
  check_cased(r, from, &set);
  if (is_range(r)) pattern_reader_refuse(r, from, "cannot be the beginning of a range");
  add_set(c, &set, negated);
}

/* Moves the sets of a class, not negated, to a text. */
static void move_class(struct pattern_class *c, struct pattern_text *out) {
  const bool negated = c->negated;
  c->negated = false;
  write_class(c, out);
  free_class(c);
  c->negated = negated;
}

static void read_brackets(struct pattern_reader *r, size_t depth, struct pattern_class *c) {
  const char *begin = r->at - 1;
  struct pattern_text ahead = {0}; /* sets before an &&, as conditions */
  c->negated = pattern_reader_skip(r, "^");
  if (depth == NESTED) pattern_reader_refuse(r, begin, "is nested too deep");
  for (bool first = true; r->at < r->end; first = false) {
    const char *from = r->at;
    if (!first && *from == ']') break;
    if (pattern_reader_skip(r, "&&")) {
      const bool empty =
          c->body.length == 0 && c->others.length == 0 && !c->body.lost && !c->others.lost;
      if (empty || pattern_reader_sees(r, "]") || pattern_reader_sees(r, "&&"))
        pattern_reader_refuse(r, from, "has no set on one side");
      pattern_text_append(&ahead, "(?=");
      move_class(c, &ahead);
      pattern_text_append(&ahead, ")");
    } else if (*from == '\\') {
      read_escape(r, c);
    } else if (read_posix(r, c)) {
      continue;
    } else if (pattern_reader_skip(r, "[")) {
      struct pattern_class inner = {0};
      read_brackets(r, depth + 1, &inner);
      if (inner.negated) {
        write_class(&inner, next_other(c));
      } else {
        pattern_text_join(&c->body, &inner.body);
        if (inner.others.length) pattern_text_join(next_other(c), &inner.others);
      }
      free_class(&inner);
    } else {
      read_range(r, from, pattern_reader_character(r), c);
    }
  }
  if (!pattern_reader_skip(r, "]")) pattern_reader_refuse(r, begin, "has no end");
  if (ahead.length) { /* the last set follows the conditions */
    move_class(c, &ahead);
    pattern_text_append(&c->others, "(?:");
    pattern_text_join(&c->others, &ahead);
    pattern_text_append(&c->others, ")");
  }
  pattern_text_free(&ahead);
}

void pattern_class_rewrite(struct pattern_reader *r, struct pattern_text *out) {
  struct pattern_class c = {0};
  read_brackets(r, 0, &c);
  write_class(&c, out);
  free_class(&c);
}
