/* pattern_class: brackets in brackets, and their intersections. */
#include "config/tokenizer/pattern/pattern_class.h"

#include <ctype.h>
#include <string.h>

#define ANY "[\\x00-\\x{10ffff}]"

enum { NESTED = 32 }; /* brackets within one another */

/* Both together; if it is negated, all other characters. */
struct pattern_class {
  struct pattern_text body;   /* what brackets of PCRE2's can have */
  struct pattern_text others; /* alternatives of one character each, with | between */
  bool negated;
};

static void free_class(struct pattern_class *c) {
  pattern_text_free(&c->body);
  pattern_text_free(&c->others);
  c->negated = false;
}

static bool is_empty(const struct pattern_class *c) {
  return c->body.length == 0 && c->others.length == 0 && !c->body.lost && !c->others.lost;
}

/* --- writing --- */

static void write_brackets(const struct pattern_text *body, bool negated,
                           struct pattern_text *out) {
  pattern_text_say(out, negated ? "[^" : "[");
  pattern_text_join(out, body);
  pattern_text_say(out, "]");
}

static void write_class(const struct pattern_class *c, struct pattern_text *out) {
  if (c->others.length == 0) {
    write_brackets(&c->body, c->negated, out);
    return;
  }
  pattern_text_say(out, c->negated ? "(?:(?!" : "(?:");
  if (c->body.length) {
    write_brackets(&c->body, false, out);
    pattern_text_say(out, "|");
  }
  pattern_text_join(out, &c->others);
  pattern_text_say(out, c->negated ? ")" ANY ")" : ")");
}

static void write_set(const struct pattern_set *set, bool negated, struct pattern_text *out) {
  pattern_text_say(out, negated ? "[^" : "[");
  pattern_text_say(out, set->body);
  pattern_text_say(out, "]");
}

/* --- putting together --- */

/* Where case does not count, a set of letters of one case has others in Oniguruma's brackets, but
 * not outside of them, and not in PCRE2. */
static void check_cased(struct pattern_reader *r, const char *from, const struct pattern_set *s) {
  if (s->cased && r->caseless)
    pattern_reader_refuse(r, from, "is not supported where case does not count");
}

static struct pattern_text *next_other(struct pattern_class *c) {
  if (c->others.length) pattern_text_say(&c->others, "|");
  return &c->others;
}

void pattern_class_of(struct pattern_reader *r, const char *from, const struct pattern_set *set,
                      bool negated, struct pattern_text *out) {
  check_cased(r, from, set);
  write_set(set, negated, out);
}

static void add_set(struct pattern_class *c, const struct pattern_set *set, bool negated) {
  if (!negated)
    pattern_text_say(&c->body, set->body);
  else if (set->inverse[0])
    pattern_text_say(&c->body, set->inverse);
  else
    write_set(set, true, next_other(c));
}

static void add_class(struct pattern_class *c, const struct pattern_class *inner) {
  if (inner->negated) {
    write_class(inner, next_other(c));
    return;
  }
  pattern_text_join(&c->body, &inner->body);
  if (inner->others.length) pattern_text_join(next_other(c), &inner->others);
}

/* --- reading --- */

/* [:name:] or [:^name:]; false: it is something else, and nothing is read. */
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
  check_cased(r, from, &set);
  add_set(c, &set, negated);
  return true;
}

/* One character. What stands for several is refused: it may not be the end of a range. */
static uint32_t read_end(struct pattern_reader *r) {
  const char *from = r->at;
  struct pattern_set set;
  bool negated;
  if (pattern_reader_take(r, "[") ||
      (pattern_reader_take(r, "\\") && pattern_reader_set(r, true, &set, &negated)))
    pattern_reader_refuse(r, from, "cannot be the end of a range");
  else
    return r->at > from ? pattern_reader_escaped(r) : pattern_reader_character(r);
  return 0;
}

static bool is_range(const struct pattern_reader *r) {
  return pattern_reader_sees(r, "-") && r->end - r->at > 1 && !pattern_reader_sees(r, "-]") &&
         !pattern_reader_sees(r, "-&&");
}

/* A character, or a range that begins with it. */
static void read_range(struct pattern_reader *r, const char *from, uint32_t first,
                       struct pattern_class *c) {
  pattern_text_character(&c->body, first);
  if (!is_range(r)) return;
  r->at++;
  const uint32_t last = read_end(r);
  if (last < first) pattern_reader_refuse(r, from, "is a range from a later character");
  pattern_text_say(&c->body, "-");
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

static void read_brackets(struct pattern_reader *r, size_t depth, struct pattern_class *c);

static void read_item(struct pattern_reader *r, size_t depth, struct pattern_class *c) {
  const char *from = r->at;
  struct pattern_class inner = {0};
  if (*r->at == '\\') {
    read_escape(r, c);
  } else if (read_posix(r, c)) {
    return;
  } else if (pattern_reader_take(r, "[")) {
    read_brackets(r, depth + 1, &inner);
    add_class(c, &inner);
    free_class(&inner);
  } else {
    read_range(r, from, pattern_reader_character(r), c);
  }
}

/* Of the sets before an &&, all but the last become conditions, which `ahead` gathers. */
static void read_and(struct pattern_reader *r, struct pattern_class *c,
                     struct pattern_text *ahead) {
  const char *from = r->at - 2;
  if (is_empty(c) || pattern_reader_sees(r, "]") || pattern_reader_sees(r, "&&"))
    pattern_reader_refuse(r, from, "has no set on one side");
  const bool negated = c->negated;
  c->negated = false;
  pattern_text_say(ahead, "(?=");
  write_class(c, ahead);
  pattern_text_say(ahead, ")");
  free_class(c);
  c->negated = negated;
}

/* The last set, behind the conditions. */
static void end_and(struct pattern_class *c, struct pattern_text *ahead) {
  const bool negated = c->negated;
  c->negated = false;
  write_class(c, ahead);
  free_class(c);
  c->negated = negated;
  pattern_text_say(&c->others, "(?:");
  pattern_text_join(&c->others, ahead);
  pattern_text_say(&c->others, ")");
}

static void read_brackets(struct pattern_reader *r, size_t depth, struct pattern_class *c) {
  const char *from = r->at - 1;
  struct pattern_text ahead = {0};
  c->negated = pattern_reader_take(r, "^");
  if (depth == NESTED) pattern_reader_refuse(r, from, "is nested too deep");
  for (bool first = true; r->at < r->end; first = false) {
    if (!first && *r->at == ']') break;
    if (pattern_reader_take(r, "&&"))
      read_and(r, c, &ahead);
    else
      read_item(r, depth, c);
  }
  if (!pattern_reader_take(r, "]")) pattern_reader_refuse(r, from, "has no end");
  if (ahead.length) end_and(c, &ahead);
  pattern_text_free(&ahead);
}

void pattern_class_rewrite(struct pattern_reader *r, struct pattern_text *out) {
  struct pattern_class c = {0};
  read_brackets(r, 0, &c);
  write_class(&c, out);
  free_class(&c);
}
