/* json_skim: finds where one JSON value of any kind ends, chunk by chunk. */
#include "server/json/json_skim.h"

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

/* Returns what JSON may have in this state, for an error. */
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

static void end_value(struct json_skim *s) {
  s->state = s->depth ? SKIM_COMMA_OR_END : SKIM_COMPLETE;
}

/* --- one byte in each state: false if JSON cannot have it there --- */

static bool close_bracket(struct json_skim *s, char c) {
  if (c != (s->object & 1 ? '}' : ']')) return false;
  s->depth--;
  s->object >>= 1;
  end_value(s);
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
    if (s->depth == JSON_SKIM_DEPTH)
      return error_json(e, offset, "brackets are nested too deep") == STATUS_OK;
    s->depth++;
    s->object = s->object << 1 | (c == '{');
    s->state = c == '{' ? SKIM_KEY_OR_END : SKIM_VALUE_OR_END;
    return true;
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

/* Reads a byte between values and names that is not blank. */
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

/* --- the value --- */

/* Skims plain ASCII of a string, and one other byte. */
static size_t skim_string(struct json_skim *s, const char *text, size_t length, size_t offset,
                          struct error *e) {
  size_t i = 0;
  if (!json_string_is_within(&s->string))
    while (i < length && (unsigned char)text[i] >= 0x20 && (unsigned char)text[i] < 0x80 &&
           text[i] != '"' && text[i] != '\\')
      i++;
  if (i == length) return i;
  const int c = json_string_byte(&s->string, text[i]);
  if (c == JSON_STRING_BAD) json_bad_string(e, offset + i, text[i]);
  if (c != JSON_STRING_END) return i + 1;
  if (s->key)
    s->state = SKIM_COLON;
  else
    end_value(s);
  return i + 1;
}

size_t json_skim_feed(struct json_skim *s, const char *text, size_t length, size_t offset,
                      bool *complete, struct error *e) {
  size_t at = 0;
  while (at < length && s->state != SKIM_COMPLETE && !e->status) {
    const char c = text[at];
    bool good = true, used = true;
    switch (s->state) {
    case SKIM_STRING:
      at += skim_string(s, text + at, length - at, offset + at, e);
      continue;
    case SKIM_WORD:
      good = c == *s->word++;
      if (good && !*s->word) end_value(s);
      break;
    case SKIM_NUMBER:
      switch (number_scan_byte(&s->number, c)) {
      case NUMBER_SCAN_MALFORMED:
        good = false;
        break;
      case NUMBER_SCAN_END: /* the byte is not part of the number */
        end_value(s);
        used = false;
        break;
      default:
        break;
      }
      break;
    default:
      good = is_blank(c) || skim_token(s, c, offset + at, e);
    }
    if (!good && !e->status) json_unexpected(e, offset + at, c, wanted_here(s));
    at += used;
  }
  *complete = s->state == SKIM_COMPLETE;
  return at;
}
