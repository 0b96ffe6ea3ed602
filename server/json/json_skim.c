/* json_skim: one JSON value of any kind, chunk by chunk: where it ends, and that it is JSON. */
#include "server/json/json_skim.h"

#include "server/number/blank.h"
#include "server/number/number.h"

void json_skim_begin(struct json_skim *s) {
  s->state = SKIM_VALUE;
  s->depth = 0;
  s->object = 0;
}

bool json_starts_value(char c) {
  return c == '"' || c == '[' || c == '{' || c == '-' || (c >= '0' && c <= '9') || c == 't' ||
         c == 'f' || c == 'n';
}

const char *json_hint(char c) {
  return c == 'N' || c == 'I' ? ": JSON has no NaN and no Infinity" : "";
}

enum status json_unexpected(struct error *e, size_t offset, char c, const char *wanted) {
  if (c == '\0')
    return error_json(e, offset, "expected %s, got a NUL byte: is this UTF-16? Send UTF-8", wanted);
  if (c > ' ' && c < 0x7f)
    return error_json(e, offset, "expected %s, got '%c'%s", wanted, c, json_hint(c));
  return error_json(e, offset, "expected %s, got byte 0x%02x", wanted, (unsigned char)c);
}

enum status json_bad_string(struct error *e, size_t offset, char c) {
  const unsigned char byte = (unsigned char)c;
  if (byte >= 0x80) return error_json(e, offset, "a byte that is not UTF-8 (0x%02x)", byte);
  if (byte < 0x20)
    return error_json(e, offset, "a control character (byte 0x%02x) in a string", byte);
  return error_json(e, offset, "invalid escape sequence in a string (byte 0x%02x)", byte);
}

static const char *wanted_here(const struct json_skim *s) {
  switch (s->state) {
  case SKIM_KEY:
    return "a name";
  case SKIM_KEY_OR_END:
    return "a name or '}'";
  case SKIM_COLON:
    return "':'";
  case SKIM_COMMA_OR_END:
    return s->object & 1 ? "',' or '}'" : "',' or ']'";
  case SKIM_NUMBER:
    return "the rest of a number";
  case SKIM_WORD:
    return "the rest of true, false or null";
  default:
    return "a value";
  }
}

/* A value has ended. */
static void value_ended(struct json_skim *s) {
  s->state = s->depth ? SKIM_COMMA_OR_END : SKIM_COMPLETE;
}

/* --- one byte in each state: false if no JSON has it there --- */

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
  s->string = (struct json_string){0};
  s->state = SKIM_STRING;
  return true;
}

static bool begin_word(struct json_skim *s, const char *rest) {
  s->word = rest;
  s->state = SKIM_WORD;
  return true;
}

static bool open_value(struct json_skim *s, char c, size_t offset, struct error *e) {
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
    return number_scan_byte(&s->number, c) == NUMBER_SCAN_TAKEN;
  }
}

/* A byte between values and names that is no blank. */
static bool skim_token(struct json_skim *s, char c, size_t offset, struct error *e) {
  switch (s->state) {
  case SKIM_VALUE_OR_END:
    if (c == ']') return close_bracket(s, c);
    return open_value(s, c, offset, e);
  case SKIM_VALUE:
    return open_value(s, c, offset, e);
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

static bool skim_word(struct json_skim *s, char c) {
  bool good = c == *s->word++;
  if (good && !*s->word) value_ended(s);
  return good;
}

static bool is_plain_character(char c) {
  return (unsigned char)c >= 0x20 && (unsigned char)c < 0x80 && c != '"' && c != '\\';
}

/* Skims plain characters of a string, and one byte that is not plain. */
static size_t skim_string(struct json_skim *s, const char *text, size_t length, size_t offset,
                          struct error *e) {
  size_t i = 0;
  if (!json_string_is_within(&s->string))
    while (i < length && is_plain_character(text[i])) i++;
  if (i == length) return i;
  const int c = json_string_byte(&s->string, text[i]);
  if (c == JSON_STRING_BAD) json_bad_string(e, offset + i, text[i]);
  if (c != JSON_STRING_END) return i + 1;
  if (s->key)
    s->state = SKIM_COLON;
  else
    value_ended(s);
  return i + 1;
}

/* Skims one byte or more. Returns how many: 0 at the byte that ends a number. */
static size_t skim_some(struct json_skim *s, const char *text, size_t length, size_t offset,
                        struct error *e) {
  bool good = true;
  switch (s->state) {
  case SKIM_STRING:
    return skim_string(s, text, length, offset, e);
  case SKIM_WORD:
    good = skim_word(s, *text);
    break;
  case SKIM_NUMBER: {
    enum number_scanned scanned = number_scan_byte(&s->number, *text);
    good = scanned != NUMBER_SCAN_MALFORMED;
    if (scanned != NUMBER_SCAN_END) break;
    value_ended(s);
    return 0;
  }
  default:
    good = is_blank(*text) || skim_token(s, *text, offset, e);
  }
  if (!good && !e->status) json_unexpected(e, offset, *text, wanted_here(s));
  return 1;
}

size_t json_skim_feed(struct json_skim *s, const char *text, size_t length, size_t offset,
                      bool *complete, struct error *e) {
  size_t at = 0;
  while (at < length && s->state != SKIM_COMPLETE && !e->status)
    at += skim_some(s, text + at, length - at, offset + at, e);
  *complete = s->state == SKIM_COMPLETE;
  return at;
}
