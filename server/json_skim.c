/* json_skim: one JSON value of any kind, chunk by chunk: where it ends, and that it is JSON. */
#include "server/json_skim.h"

#include <ctype.h>
#include <string.h>

#include "server/text/blank.h"
#include "server/text/number.h"

void json_skim_begin(struct json_skim *s) {
  s->state = SKIM_VALUE;
  s->depth = 0;
  s->object = 0;
}

enum status json_unexpected(struct error *e, size_t offset, char c, const char *wanted) {
  if (c == '\0')
    return error_json(e, offset, "a NUL byte where %s belongs; is this UTF-16?", wanted);
  if (c > ' ' && c < 0x7f) return error_json(e, offset, "'%c' where %s belongs", c, wanted);
  return error_json(e, offset, "byte 0x%02x where %s belongs", (unsigned char)c, wanted);
}

static const char *wanted(const struct json_skim *s) {
  switch (s->state) {
  case SKIM_KEY:
    return "a name";
  case SKIM_KEY_OR_END:
    return "a name or '}'";
  case SKIM_COLON:
    return "':'";
  case SKIM_COMMA_OR_END:
    return s->object & 1 ? "',' or '}'" : "',' or ']'";
  case SKIM_ESCAPE:
  case SKIM_HEX:
    return "an escape of a string";
  default:
    return "a value";
  }
}

/* A value has ended. */
static void value_ended(struct json_skim *s) {
  s->state = s->depth ? SKIM_COMMA_OR_END : SKIM_COMPLETE;
}

/* --- what each state takes: false for a byte that it does not want --- */

static bool open_bracket(struct json_skim *s, bool object, size_t offset, struct error *e) {
  if (s->depth == JSON_SKIM_DEPTH) {
    error_json(e, offset, "brackets are nested too deep");
    return false;
  }
  s->depth++;
  s->object = s->object << 1 | object;
  s->state = object ? SKIM_KEY_OR_END : SKIM_VALUE_OR_END;
  return true;
}

static bool close_bracket(struct json_skim *s, char c) {
  if (c != (s->object & 1 ? '}' : ']')) return false;
  s->depth--;
  s->object >>= 1;
  value_ended(s);
  return true;
}

static bool begin_string(struct json_skim *s, bool key) {
  s->key = key;
  s->state = SKIM_STRING;
  return true;
}

static bool begin_word(struct json_skim *s, const char *rest) {
  s->word = rest;
  s->state = SKIM_WORD;
  return true;
}

static bool begin_value(struct json_skim *s, char c, size_t offset, struct error *e) {
  switch (c) {
  case '{':
  case '[':
    return open_bracket(s, c == '{', offset, e);
  case '"':
    return begin_string(s, false);
  case 't':
    return begin_word(s, "rue");
  case 'f':
    return begin_word(s, "alse");
  case 'n':
    return begin_word(s, "ull");
  default:
    number_scan_begin(&s->number);
    s->state = SKIM_NUMBER;
    return number_scan_byte(&s->number, c) == NUMBER_STEP_TAKEN;
  }
}

/* A byte between values and names that is no blank. */
static bool take_token(struct json_skim *s, char c, size_t offset, struct error *e) {
  switch (s->state) {
  case SKIM_VALUE_OR_END:
    if (c == ']') return close_bracket(s, c);
    return begin_value(s, c, offset, e);
  case SKIM_VALUE:
    return begin_value(s, c, offset, e);
  case SKIM_KEY_OR_END:
    if (c == '}') return close_bracket(s, c);
    return c == '"' && begin_string(s, true);
  case SKIM_KEY:
    return c == '"' && begin_string(s, true);
  case SKIM_COLON:
    s->state = SKIM_VALUE;
    return c == ':';
  default:
    if (c != ',') return close_bracket(s, c);
    s->state = s->object & 1 ? SKIM_KEY : SKIM_VALUE;
    return true;
  }
}

/* Behind a backslash: one letter, or u and four digits. */
static bool take_escaped(struct json_skim *s, char c) {
  if (s->state == SKIM_HEX) {
    if (--s->hex == 0) s->state = SKIM_STRING;
    return isxdigit((unsigned char)c);
  }
  s->hex = 4;
  s->state = c == 'u' ? SKIM_HEX : SKIM_STRING;
  return c && strchr("\"\\/bfnrtu", c);
}

static bool take_word(struct json_skim *s, char c) {
  bool good = c == *s->word++;
  if (good && !*s->word) value_ended(s);
  return good;
}

/* The bytes of a string up to its end, a backslash, or what may not be in it. */
static size_t skim_string(struct json_skim *s, const char *text, size_t length, size_t offset,
                          struct error *e) {
  size_t i = 0;
  while (i < length && text[i] != '"' && text[i] != '\\' && (unsigned char)text[i] >= 0x20) i++;
  if (i == length) return i;
  if (text[i] == '\\') {
    s->state = SKIM_ESCAPE;
  } else if (text[i] != '"') {
    error_json(e, offset + i, "a control character (byte 0x%02x) in a string", text[i]);
  } else if (s->key) {
    s->state = SKIM_COLON;
  } else {
    value_ended(s);
  }
  return i + 1;
}

/* One byte or more. Returns how many; 0 behind a number, whose end this was. */
static size_t advance(struct json_skim *s, const char *text, size_t length, size_t offset,
                      struct error *e) {
  bool good = true;
  switch (s->state) {
  case SKIM_STRING:
    return skim_string(s, text, length, offset, e);
  case SKIM_ESCAPE:
  case SKIM_HEX:
    good = take_escaped(s, *text);
    break;
  case SKIM_WORD:
    good = take_word(s, *text);
    break;
  case SKIM_NUMBER: {
    enum number_step step = number_scan_byte(&s->number, *text);
    good = step != NUMBER_STEP_MALFORMED;
    if (step != NUMBER_STEP_END) break;
    value_ended(s);
    return 0;
  }
  default:
    good = is_blank(*text) || take_token(s, *text, offset, e);
  }
  if (!good && !e->status) json_unexpected(e, offset, *text, wanted(s));
  return 1;
}

size_t json_skim_feed(struct json_skim *s, const char *text, size_t length, size_t offset,
                      bool *complete, struct error *e) {
  size_t at = 0;
  while (at < length && s->state != SKIM_COMPLETE && !e->status)
    at += advance(s, text + at, length - at, offset + at, e);
  *complete = s->state == SKIM_COMPLETE;
  return at;
}
