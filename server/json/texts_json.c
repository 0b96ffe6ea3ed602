/* texts_json: the texts of a field in JSON, chunk by chunk. */
#include "server/json/texts_json.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "config/tokenizer/pattern/unicode.h"
#include "core/base/size.h"
#include "server/json/json_skim.h"
#include "server/number/number.h"
#include "server/text/json_string.h"

enum texts_json_state {
  TEXTS_VALUE,        /* before a text or a list */
  TEXTS_VALUE_OR_END, /* after '[' */
  TEXTS_STRING,
  TEXTS_COMMA_OR_END,
  TEXTS_KEY,   /* after '{', or within the key "text" */
  TEXTS_COLON, /* after the key */
  TEXTS_MEMBER,
  TEXTS_MEMBER_END
};

struct texts_json {
  struct texts_rule rule;
  struct texts texts;
  size_t room;             /* bytes that texts.bytes has memory for */
  size_t parts, part_room; /* texts so far, and how many there is memory for */
  enum texts_json_state state;
  unsigned depth;  /* brackets that are open */
  unsigned listed; /* depth of the texts; 0: not known yet, or a single text */
  size_t in_pair;  /* texts of the pair that is open */
  size_t key;      /* bytes of the key that have been read; 0: no object is open */
  struct json_string string;
  unsigned first_half; /* the first of two \u escapes for one character */
  size_t began;        /* where the text that is being read begins in texts.bytes */
  struct arena *arena;
};

struct texts_json *texts_json_new(const struct texts_rule *rule, struct arena *a, struct error *e) {
  struct texts_json *r = arena_alloc(a, 1, sizeof *r, e);
  if (!r) return NULL;
  *r = (struct texts_json){.rule = *rule, .arena = a, .texts = {.of_item = 1}};
  return r;
}

const struct texts *texts_json_view(const struct texts_json *r) { return &r->texts; }

/* --- failures --- */

/* Fails at the text or list that is being read. */
static enum status refuse(const struct texts_json *r, struct error *e, const char *why) {
  char pointer[ERROR_POINTER_SIZE];
  size_t n = (size_t)snprintf(pointer, sizeof pointer, "/%.40s", r->rule.field);
  const size_t open = r->depth > 1 ? r->in_pair : 0;
  const size_t item = (r->parts - open) / r->texts.of_item;
  if (r->depth > 0) n += (size_t)snprintf(pointer + n, sizeof pointer - n, "/%zu", item);
  if (r->depth > 1) snprintf(pointer + n, sizeof pointer - n, "/%zu", r->in_pair);
  return error_at(e, pointer, "%s", why);
}

static enum status refuse_value(const struct texts_json *r, char c, size_t offset,
                                struct error *e) {
  if (!json_starts_value(c)) return json_unexpected(e, offset, c, "a text");
  if (r->rule.or_tokens)
    return refuse(
        r, e,
        "expected a string, a list of strings, a list of tokens, or a list of lists of tokens");
  static const char *const belongs[] = {
      [TEXTS_OR_PAIRS] = "expected a string, a list of strings, or a list of pairs of strings",
      [TEXTS_ALONE] = "expected a string, or a list of strings",
      [TEXTS_OF_A_LIST] = "expected a list of strings",
      [TEXTS_MIXED] =
          "expected a string, a pair of strings, or a list of lists of one or two strings"};
  if (r->rule.form == TEXTS_OF_A_LIST && r->depth > 0)
    return refuse(r, e, "expected a string, or an object with \"text\"");
  return refuse(r, e, belongs[r->rule.form]);
}

/* --- memory --- */

static bool reserve(struct texts_json *r, size_t more, struct error *e) {
  size_t room;
  if (more <= r->room - r->texts.length) return true;
  if (!size_add(r->texts.length, more, &room))
    return error_set(e, STATUS_TOO_LARGE, "the texts exceed the address space") == STATUS_OK;
  room = size_max(room, 2 * r->room);
  char *moved = arena_grow(r->arena, r->texts.bytes, &room, 1, e);
  if (!moved) return false;
  r->texts.bytes = moved;
  r->room = room;
  return true;
}

static void append_bytes(struct texts_json *r, const char *bytes, size_t length, struct error *e) {
  if (!reserve(r, length, e)) return;
  memcpy(r->texts.bytes + r->texts.length, bytes, length);
  r->texts.length += length;
}

static void add_part(struct texts_json *r, struct texts_part part, struct error *e) {
  struct texts *t = &r->texts;
  if (!t->bytes && !reserve(r, 1, e)) return; /* even an empty text has an address */
  if (r->parts == r->part_room) {
    size_t room = 2 * r->part_room + 1;
    void *moved = arena_grow(r->arena, t->part, &room, sizeof *t->part, e);
    if (!moved) return;
    t->part = moved;
    r->part_room = room;
  }
  t->part[r->parts++] = part;
  r->in_pair++;
}

/* --- one text --- */

static void append_character(struct texts_json *r, uint32_t c, struct error *e) {
  char bytes[UNICODE_BYTES_MAX];
  append_bytes(r, bytes, unicode_write(c, bytes), e);
}

/* Reads plain ASCII of a text, or one other byte. Returns how many bytes it read. */
static size_t feed_string(struct texts_json *r, const char *text, size_t length, size_t offset,
                          struct error *e) {
  struct json_string *s = &r->string;
  size_t plain = 0;
  if (!json_string_is_within(s))
    while (plain < length && text[plain] >= ' ' && text[plain] != '"' && text[plain] != '\\')
      plain++;
  if (plain) {
    append_bytes(r, text, plain, e);
    return plain;
  }
  const bool hex = s->hex > 0, escaped = s->escaped;
  const int c = json_string_byte(s, *text);
  if (c == JSON_STRING_BAD) {
    json_bad_string(e, offset, *text);
  } else if (c == JSON_STRING_END) {
    add_part(r, (struct texts_part){r->began, r->texts.length - r->began}, e);
    r->state = r->key ? TEXTS_MEMBER_END : TEXTS_COMMA_OR_END;
  } else if (hex && s->hex == 0) { /* the last digit of a \u escape */
    const unsigned unicode = s->unicode;
    if (s->pair)
      r->first_half = unicode;
    else if (unicode >= 0xdc00 && unicode < 0xe000)
      append_character(r, 0x10000 + ((r->first_half & 0x3ff) << 10) + (unicode & 0x3ff), e);
    else
      append_character(r, unicode, e);
  } else if (escaped && c >= 0) {
    append_character(r, (uint32_t)c, e);
  } else if (!hex && !escaped && !s->escaped) { /* a byte of a UTF-8 character */
    append_bytes(r, text, 1, e);
  }
  return 1;
}

/* --- lists --- */

static void open_list(struct texts_json *r, struct error *e) {
  const bool pairs = r->rule.form == TEXTS_OR_PAIRS || r->rule.form == TEXTS_MIXED;
  const unsigned most = pairs ? TEXTS_PAIR : 1;
  if (r->depth == most || (r->listed && r->depth >= r->listed))
    refuse(
        r, e,
        pairs
            ? "expected a string, got a list: send a list of strings, or a list of pairs of strings"
            : "expected a string, got a list: send one list of strings");
  r->depth++;
  r->in_pair = 0;
  r->state = TEXTS_VALUE_OR_END;
  if (r->depth == TEXTS_PAIR) r->texts.of_item = TEXTS_PAIR;
}

static void begin_text(struct texts_json *r, struct error *e) {
  if (r->depth == 0 && r->rule.form == TEXTS_OF_A_LIST) refuse_value(r, '"', 0, e);
  if (r->listed == TEXTS_PAIR && r->depth < TEXTS_PAIR)
    refuse(r, e, "expected a pair of strings, got a string: texts and pairs cannot be mixed");
  if (r->depth == TEXTS_PAIR && r->in_pair == TEXTS_PAIR)
    refuse(r, e, "a pair must have two strings, got a third");
  if (r->depth && !(r->depth == TEXTS_PAIR && r->in_pair) &&
      r->parts / r->texts.of_item == r->rule.max_items)
    error_limit(e, "max_items", "more than %zu texts", r->rule.max_items);
  r->listed = r->depth;
  r->texts.alone = r->depth == 0;
  r->string = (struct json_string){0};
  r->began = r->texts.length;
  r->state = TEXTS_STRING;
}

static void close_list(struct texts_json *r, struct error *e) {
  const bool pair = r->depth-- == TEXTS_PAIR;
  if (pair && r->in_pair == 1 && r->rule.form == TEXTS_MIXED)
    add_part(r, (struct texts_part){TEXTS_NONE, 0}, e);
  else if (pair && r->in_pair != TEXTS_PAIR)
    refuse(r, e,
           r->in_pair == 0 && r->rule.form == TEXTS_MIXED ? "expected a list of one or two strings"
                                                          : "a pair must have two strings");
  r->state = TEXTS_COMMA_OR_END;
}

/* --- objects --- */

static const char key[] = "\"text\"";

static void refuse_object(const struct texts_json *r, struct error *e) {
  refuse(r, e, "an object must have one member, \"text\"");
}

/* Reads a byte of an object outside its text. */
static void read_member(struct texts_json *r, char c, size_t offset, struct error *e) {
  if (r->state == TEXTS_KEY && c == key[r->key]) {
    if (++r->key == sizeof key - 1) r->state = TEXTS_COLON;
  } else if (r->state == TEXTS_KEY && r->key > 0 && (unsigned char)c < ' ') {
    json_bad_string(e, offset, c);
  } else if (r->state == TEXTS_KEY && (r->key > 0 || c == '}')) {
    refuse_object(r, e);
  } else if (r->state == TEXTS_KEY) {
    json_unexpected(e, offset, c, "a name");
  } else if (r->state == TEXTS_COLON && c == ':') {
    r->state = TEXTS_MEMBER;
  } else if (r->state == TEXTS_COLON) {
    json_unexpected(e, offset, c, "':'");
  } else if (r->state == TEXTS_MEMBER && c == '"') {
    begin_text(r, e);
  } else if (r->state == TEXTS_MEMBER) {
    json_starts_value(c) ? refuse(r, e, "\"text\" must be a string")
                         : json_unexpected(e, offset, c, "a text");
  } else if (c == '}') {
    r->key = 0;
    r->state = TEXTS_COMMA_OR_END;
  } else if (c == ',') {
    r->parts--;
    refuse_object(r, e);
  } else {
    json_unexpected(e, offset, c, "'}'");
  }
}

/* Reads a byte outside of texts. */
static void read_between(struct texts_json *r, char c, size_t offset, struct error *e) {
  if (r->state >= TEXTS_KEY) {
    read_member(r, c, offset, e);
  } else if (r->state == TEXTS_COMMA_OR_END) {
    if (c == ',')
      r->state = TEXTS_VALUE;
    else if (c == ']')
      close_list(r, e);
    else
      json_unexpected(e, offset, c, "',' or ']'");
  } else if (c == '"') {
    begin_text(r, e);
  } else if (c == '[') {
    open_list(r, e);
  } else if (c == '{' && r->rule.form == TEXTS_OF_A_LIST && r->depth == 1) {
    r->state = TEXTS_KEY;
  } else if (c == ']' && r->state == TEXTS_VALUE_OR_END) {
    close_list(r, e);
  } else {
    refuse_value(r, c, offset, e);
  }
}

size_t texts_json_feed(struct texts_json *r, const char *text, size_t length, size_t offset,
                       bool *complete, struct error *e) {
  size_t at = 0;
  while (at < length && !*complete && !e->status) {
    if (r->state == TEXTS_STRING)
      at += feed_string(r, text + at, length - at, offset + at, e);
    else if (is_blank(text[at]) && !(r->state == TEXTS_KEY && r->key > 0))
      at++; /* outside of a key */
    else
      read_between(r, text[at], offset + at, e), at++;
    *complete = r->state == TEXTS_COMMA_OR_END && r->depth == 0;
  }
  if (*complete) r->texts.items = r->texts.alone ? 1 : r->parts / r->texts.of_item;
  return at;
}
