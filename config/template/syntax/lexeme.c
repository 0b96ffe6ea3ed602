/* lexeme: a template cut into data, tags, names, literals and operators. */
#include "config/template/syntax/lexeme.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/template/syntax/literal.h"
#include "config/template/value/letters.h"
#include "config/tokenizer/pattern/unicode.h"

enum { NESTED_MAX = 200, NAMES = 1024 };

struct lexeme_name {
  struct lexeme_name *next;
  struct value name;
};

struct lexer {
  struct bounds *b;
  const char *source;
  size_t at, length;
  bool line_starts; /* did the tag before the data end with a line? */
  struct lexeme *lexeme;
  size_t count, room;
  struct lexeme_name *name[NAMES]; /* by a hash */
};

static const char *const operators[] = {"+",  "-",  "//", "/",  "**", "*", "%", "~", "==",
                                        "!=", "<=", "<",  ">=", ">",  "=", "(", ")", "[",
                                        "]",  "{",  "}",  ".",  ":",  "|", ",", ";"};
enum { OPERATORS = sizeof operators / sizeof *operators };

const char *lexeme_name(const struct lexeme *l) {
  static const char *const names[] = {
      [LEXEME_END] = "end of template", [LEXEME_DATA] = "data",      [LEXEME_VARIABLE_BEGIN] = "{{",
      [LEXEME_VARIABLE_END] = "}}",     [LEXEME_BLOCK_BEGIN] = "{%", [LEXEME_BLOCK_END] = "%}",
      [LEXEME_TEXT] = "string",         [LEXEME_NUMBER] = "number"};
  if (l->kind == LEXEME_NAME) return l->value.text;
  return l->kind < LEXEME_ADD ? names[l->kind] : operators[l->kind - LEXEME_ADD];
}

static const char *const words[] = {[LEXEME_LOOP] = "loop",
                                    [LEXEME_VARARGS] = "varargs",
                                    [LEXEME_KWARGS] = "kwargs",
                                    [LEXEME_CALLER] = "caller"};
enum { WORDS = sizeof words / sizeof *words };

struct value lexeme_word(enum lexeme_word word) {
  return value_word(words[word]);
}

static bool fail_at(struct lexer *l, size_t at, const char *message) {
  l->b->at = at;
  return bounds_fail(l->b, "%s", message);
}

static bool add(struct lexer *l, enum lexeme_kind kind, size_t at, struct value value) {
  if (!bounds_grow(l->b, &l->lexeme, &l->room, l->count + 1, sizeof *l->lexeme)) return false;
  l->lexeme[l->count++] = (struct lexeme){kind, at, value};
  return true;
}

static bool looking_at(const struct lexer *l, const char *text) {
  const size_t length = strlen(text);
  return l->length - l->at >= length && memcmp(l->source + l->at, text, length) == 0;
}

static void skip_spaces(struct lexer *l) {
  size_t length;
  while (l->at < l->length && letters_is_space(unicode_read(l->source + l->at, &length)))
    l->at += length;
}

/* --- data --- */

/* The end of the data from `begin` to `end`, before a tag with this sign: '-' strips all blanks,
 * and a block or comment without '+' strips those of its own line. */
static size_t strip_before(const struct lexer *l, size_t begin, size_t end, char sign, bool block) {
  size_t blanks = end, length;
  while (blanks > begin) {
    const uint32_t c = unicode_read_before(l->source, blanks, &length);
    if (!letters_is_space(c) || (sign != '-' && c == '\n')) break;
    blanks -= length;
  }
  if (sign == '-') return blanks;
  if (sign == '+' || !block) return end;
  const bool whole = blanks > begin ? l->source[blanks - 1] == '\n' : l->line_starts;
  return whole ? blanks : end;
}

static bool add_data(struct lexer *l, size_t begin, size_t end) {
  if (end == begin) return true;
  const struct value text = value_copy(l->b, l->source + begin, end - begin);
  return text.kind && add(l, LEXEME_DATA, begin, text);
}

/* Takes the end of a block or comment, with the blanks that belong to it. */
static bool take_end(struct lexer *l, const char *end) {
  const char sign = l->at < l->length ? l->source[l->at] : '\0';
  const size_t before = l->at;
  if (sign == '-' || sign == '+') l->at++;
  if (!looking_at(l, end)) return l->at = before, false;
  l->at += strlen(end);
  if (sign == '-')
    skip_spaces(l);
  else if (sign != '+' && looking_at(l, "\n"))
    l->at++;
  l->line_starts = l->source[l->at - 1] == '\n';
  return true;
}

/* As in Jinja, one without any text at the end of a template need not end; nor need a raw block. */
static bool take_comment(struct lexer *l, size_t at) {
  if (l->at == l->length) return true;
  while (l->at < l->length) {
    if (take_end(l, "#}")) return true;
    l->at++;
  }
  return fail_at(l, at, "the comment does not end");
}

/* Takes "SPACES word SPACES"; else nothing. */
static bool take_word(struct lexer *l, const char *word) {
  const size_t before = l->at;
  skip_spaces(l);
  if (!looking_at(l, word)) return l->at = before, false;
  l->at += strlen(word);
  skip_spaces(l);
  return true;
}

/* Takes {% raw %} and what it frames, after "{%" and its sign. *is: it is one. */
static bool take_raw(struct lexer *l, size_t at, bool *is) {
  const size_t before = l->at;
  *is = take_word(l, "raw") && (looking_at(l, "%}") || looking_at(l, "-%}"));
  if (!*is) return l->at = before, true;
  const bool strips = looking_at(l, "-%}");
  l->at += strips ? 3 : 2;
  if (strips) skip_spaces(l);
  l->line_starts = l->source[l->at - 1] == '\n';
  if (l->at == l->length) return true;
  for (const size_t begin = l->at; l->at < l->length;) {
    const size_t end = l->at++;
    if (memcmp(l->source + end, "{%", 2) != 0) continue;
    l->at = end + 2;
    const char sign = looking_at(l, "-") || looking_at(l, "+") ? l->source[l->at++] : '\0';
    const bool starts = l->line_starts;
    if (!take_word(l, "endraw")) continue;
    const size_t data_end = strip_before(l, begin, end, sign, true);
    if (take_end(l, "%}")) return add_data(l, begin, data_end);
    l->line_starts = starts;
  }
  return fail_at(l, at, "the raw block does not end");
}

/* --- within tags --- */

static bool is_name_byte(char c, bool first) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         (!first && c >= '0' && c <= '9');
}

/* The place of a name among all: of the one that is known, or where a new one is put. */
static struct lexeme_name **find_name(struct lexer *l, const char *text, size_t length) {
  unsigned hash = 0;
  for (size_t i = 0; i < length; i++) hash = hash * 31 + (unsigned char)text[i];
  struct lexeme_name **at = &l->name[hash % NAMES];
  while (*at && ((*at)->name.length != length || memcmp((*at)->name.text, text, length) != 0))
    at = &(*at)->next;
  return at;
}

static bool put_name(struct lexer *l, struct lexeme_name **at, struct value name) {
  *at = name.kind ? bounds_alloc(l->b, sizeof **at) : NULL;
  if (*at) **at = (struct lexeme_name){NULL, name};
  return *at != NULL;
}

/* A name, of which one copy is kept for all its occurrences. */
static bool take_name(struct lexer *l) {
  const size_t at = l->at;
  for (; l->at < l->length; l->at++) {
    size_t length;
    const char c = l->source[l->at];
    if ((unsigned char)c >= 0x80) {
      if (!unicode_is_word(unicode_read(l->source + l->at, &length))) break;
      l->at += length - 1;
    } else if (!is_name_byte(c, false)) {
      break;
    }
  }
  struct lexeme_name **name = find_name(l, l->source + at, l->at - at);
  if (!*name && !put_name(l, name, value_copy(l->b, l->source + at, l->at - at))) return false;
  return add(l, LEXEME_NAME, at, (*name)->name);
}

static bool take_text(struct lexer *l) {
  const size_t at = l->at;
  const char quote = l->source[l->at++];
  while (l->at < l->length && l->source[l->at] != quote) l->at += l->source[l->at] == '\\' ? 2 : 1;
  if (l->at >= l->length) return fail_at(l, at, "the string does not end");
  l->at++;
  l->b->at = at;
  const struct value text = literal_text(l->b, l->source + at + 1, l->at - at - 2);
  return text.kind && add(l, LEXEME_TEXT, at, text);
}

static bool take_number(struct lexer *l) {
  const size_t at = l->at;
  const bool after_dot = at > 0 && l->source[at - 1] == '.';
  struct value number;
  l->b->at = at;
  l->at += literal_number(l->b, l->source + at, after_dot, &number);
  return number.kind && add(l, LEXEME_NUMBER, at, number);
}

/* Takes an operator. `open` has the closing brackets that are awaited. */
static bool take_operator(struct lexer *l, char *open, size_t *nested) {
  size_t i = 0;
  while (i < OPERATORS && !looking_at(l, operators[i])) i++;
  if (i == OPERATORS) return fail_at(l, l->at, "unexpected character");
  const char c = operators[i][0];
  if (c == '(' || c == '[' || c == '{') {
    if (*nested == NESTED_MAX) return fail_at(l, l->at, "too many brackets");
    open[(*nested)++] = c == '(' ? ')' : c == '[' ? ']' : '}';
  } else if (c == ')' || c == ']' || c == '}') {
    if (*nested == 0 || open[--*nested] != c) return fail_at(l, l->at, "unexpected bracket");
  }
  l->at += strlen(operators[i]);
  return add(l, LEXEME_ADD + (enum lexeme_kind)i, l->at - strlen(operators[i]), VALUE_FAILED);
}

/* Takes what a tag holds, and its end. */
static bool take_tag(struct lexer *l, bool block) {
  const size_t begin = l->at;
  char open[NESTED_MAX];
  size_t nested = 0;
  for (;;) {
    const size_t at = l->at;
    if (nested == 0 && block && take_end(l, "%}"))
      return add(l, LEXEME_BLOCK_END, at, VALUE_FAILED);
    if (nested == 0 && !block && (looking_at(l, "}}") || looking_at(l, "-}}"))) {
      const bool strips = looking_at(l, "-");
      l->at += strips ? 3 : 2;
      if (strips) skip_spaces(l);
      l->line_starts = l->source[l->at - 1] == '\n';
      return add(l, LEXEME_VARIABLE_END, at, VALUE_FAILED);
    }
    skip_spaces(l);
    if (l->at > at) continue;
    if (at == l->length) return fail_at(l, begin - 2, "the tag does not end");
    const char c = l->source[at];
    bool done;
    if (c >= '0' && c <= '9')
      done = take_number(l);
    else if (is_name_byte(c, true) || (unsigned char)c >= 0x80)
      done = take_name(l) && (l->at > at || fail_at(l, at, "unexpected character"));
    else if (c == '\'' || c == '"')
      done = take_text(l);
    else
      done = take_operator(l, open, &nested);
    if (!done) return false;
  }
}

/* Takes data up to the next tag, and the tag. */
static bool take_next(struct lexer *l) {
  const size_t begin = l->at;
  const char *tag = l->source + begin;
  while ((tag = memchr(tag, '{', l->length - (size_t)(tag - l->source))) != NULL && tag[1] != '{' &&
         tag[1] != '%' && tag[1] != '#')
    tag++;
  const size_t at = tag ? (size_t)(tag - l->source) : l->length;
  if (!tag) return l->at = at, add_data(l, begin, at);
  l->at = at + 2;
  const char sign = looking_at(l, "-") || looking_at(l, "+") ? l->source[l->at++] : '\0';
  const size_t end = strip_before(l, begin, at, sign, tag[1] != '{');
  if (!add_data(l, begin, end)) return false;
  if (tag[1] == '#') return take_comment(l, at);
  bool raw = false;
  if (tag[1] == '%' && (!take_raw(l, at, &raw) || raw)) return raw && !l->b->e->status;
  const enum lexeme_kind kind = tag[1] == '%' ? LEXEME_BLOCK_BEGIN : LEXEME_VARIABLE_BEGIN;
  return add(l, kind, at, VALUE_FAILED) && take_tag(l, tag[1] == '%');
}

struct lexeme *lexeme_all(struct bounds *b) {
  struct lexer *l = bounds_alloc(b, sizeof *l);
  if (!l) return NULL;
  *l =
      (struct lexer){.b = b, .source = b->source, .length = strlen(b->source), .line_starts = true};
  for (size_t i = 0; i < WORDS; i++)
    if (!put_name(l, find_name(l, words[i], strlen(words[i])), value_word(words[i]))) return NULL;
  while (l->at < l->length)
    if (!take_next(l)) return NULL;
  return add(l, LEXEME_END, l->at, VALUE_FAILED) ? l->lexeme : NULL;
}
