/* body_json: the top level of a body in JSON, chunk by chunk.
 *
 * A state machine reads the object; body_field reads values, and names are collected in a buffer of
 * fixed size. A chunk may end anywhere. Failures are kept in `e`, whose status ends the loop. */
#include <string.h>

#include "server/body/body_field.h"
#include "server/body/form/body_readers.h"
#include "server/number/number.h"

enum body_json_state {
  BEFORE,       /* the object has not begun */
  FIRST_OR_END, /* after '{': a name or '}' */
  NAME,         /* after ',': a name */
  IN_NAME,      /* within a name */
  COLON,        /* after a name */
  VALUE,        /* after ':' */
  IN_VALUE,     /* within a field's value */
  COMMA_OR_END, /* after a value: ',' or '}' */
  AFTER,        /* after the object */
  IN_OTHER,     /* within a body that is no object, to learn whether it is JSON at all */
  AFTER_OTHER   /* after a body that is no object: JSON, if nothing follows */
};

struct body_json {
  struct contract_reading *into;
  enum body_json_state state;
  unsigned field; /* the field whose value is read */
  size_t offset;  /* bytes of the body before this chunk */
  struct error *e;
  struct body_field value;
  struct small_text small; /* a name, or a small value */
};

struct body_json *body_json_new(struct contract_reading *into, struct arena *a, struct error *e) {
  struct body_json *b = arena_alloc(a, 1, sizeof *b, e);
  if (!b) return NULL;
  memset(b, 0, offsetof(struct body_json, small));
  b->into = into;
  b->e = e;
  b->state = BEFORE;
  b->value = (struct body_field){.into = into, .arena = a, .small = &b->small, .base64 = true};
  return b;
}

/* The field whose value is read. */
static const struct contract_field *this_field(const struct body_json *b) {
  return &b->into->contract->field[b->field];
}

static void begin_small(struct body_json *b, size_t offset, enum body_json_state state) {
  small_text_begin(&b->small, offset);
  b->state = state;
}

static enum status refuse_other(struct body_json *b) {
  return error_at(b->e, "", "the body must be a JSON object");
}

static size_t feed_name(struct body_json *b, const char *text, size_t length, size_t offset) {
  const struct small_text *t = &b->small;
  bool complete = false;
  const size_t used = small_text_feed(&b->small, text, length, offset, &complete, b->e);
  if (b->e->status) return used;
  if (t->lost) {
    contract_refuse_long(b->into->contract, t->text, t->length, b->e);
  } else if (complete) {
    contract_meet_raw(b->into, t->text, t->length, t->offset, &b->field, b->e);
    b->state = COLON;
  }
  return used;
}

static size_t feed_value(struct body_json *b, const char *text, size_t length, size_t offset) {
  bool complete = false;
  const size_t used = body_field_feed(&b->value, text, length, offset, &complete, b->e);
  if (complete) b->state = COMMA_OR_END;
  if (b->small.lost)
    error_at(b->e, this_field(b)->pointer, "%s is longer than %zu bytes",
             contract_name(this_field(b)), contract_longest(this_field(b)));
  return used;
}

/* Reads a body that is no object. */
static size_t feed_other(struct body_json *b, const char *text, size_t length, size_t offset) {
  bool complete = false;
  const size_t used = small_text_feed(&b->small, text, length, offset, &complete, b->e);
  if (complete) b->state = AFTER_OTHER;
  if (b->small.lost) refuse_other(b);
  return used;
}

/* Reads a byte between names and values that is not blank. Returns 1, or 0 if a name or a value
 * begins with it. */
static size_t read_between(struct body_json *b, const char *text, size_t length, size_t offset) {
  const char c = *text;
  const unsigned char byte = (unsigned char)c;
  switch (b->state) {
  case BEFORE:
    if (c == '{') {
      b->state = FIRST_OR_END;
      return 1;
    }
    if (json_starts_value(c))
      begin_small(b, offset, IN_OTHER);
    else if (byte == 0xef || byte == 0xfe || byte == 0xff)
      error_json(
          b->e, offset,
          "expected '{', got byte 0x%02x: if this is a byte order mark, send UTF-8 without it",
          byte);
    else
      json_unexpected(b->e, offset, c, "'{'");
    return 0;
  case FIRST_OR_END:
  case NAME:
    if (c == '}' && b->state == FIRST_OR_END) {
      b->state = AFTER;
      return 1;
    }
    if (c == '"')
      begin_small(b, offset, IN_NAME);
    else
      json_unexpected(b->e, offset, c, "a field name");
    return 0;
  case COLON:
    if (c != ':') json_unexpected(b->e, offset, c, "':'");
    b->state = VALUE;
    return 1;
  case VALUE:
    if (!json_starts_value(c)) {
      json_unexpected(b->e, offset, c, "a value");
      return 0;
    }
    b->state = IN_VALUE;
    return body_field_begin(&b->value, b->field, text, length, offset, b->e);
  case COMMA_OR_END:
    if (c != ',' && c != '}') json_unexpected(b->e, offset, c, "',' or '}'");
    b->state = c == ',' ? NAME : AFTER;
    return 1;
  default:
    json_unexpected(b->e, offset, c, "the end");
    return 1;
  }
}

enum status body_json_feed(struct body_json *b, const char *text, size_t length) {
  for (size_t at = 0; at < length && !b->e->status;) {
    const char *p = text + at;
    const size_t left = length - at, offset = b->offset + at;
    switch (b->state) {
    case IN_VALUE:
      at += feed_value(b, p, left, offset);
      break;
    case IN_NAME:
      at += feed_name(b, p, left, offset);
      break;
    case IN_OTHER:
      at += feed_other(b, p, left, offset);
      break;
    default:
      at += is_blank(*p) ? 1 : read_between(b, p, left, offset);
    }
  }
  b->offset += length;
  return b->e->status;
}

enum status body_json_finish(struct body_json *b) {
  if (b->e->status || b->state == AFTER) return b->e->status;
  if (b->state == BEFORE) return error_json(b->e, b->offset, "the body is empty");
  /* A bare number ends only at another byte. */
  struct error none = {0};
  bool complete = false;
  if (b->state == IN_OTHER) json_skim_feed(&b->small.skim, " ", 1, b->offset, &complete, &none);
  if (complete || b->state == AFTER_OTHER) return refuse_other(b);
  if (b->state == VALUE || b->state == IN_VALUE)
    return error_json(b->e, b->offset,
                      "unexpected end of the body: the value of \"%s\" is incomplete",
                      contract_name(this_field(b)));
  return error_json(b->e, b->offset, "unexpected end of the body: the JSON object is incomplete");
}
