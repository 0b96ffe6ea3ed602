/* decode_json: the top level of a request's text, chunk by chunk.
 *
 * A machine of a few states walks over the object. A value's text goes to its array reader or,
 * where it is small, into a buffer of fixed size, whole, before it is parsed. A chunk may end
 * anywhere: all that is remembered is in the decoder. */
#include "server/decode_json.h"

#include <string.h>

#include "server/json_skim.h"
#include "server/json_small.h"
#include "server/tensor_base64.h"
#include "server/tensor_json.h"
#include "server/text/blank.h"

enum {
  SMALL_MAX = JSON_SMALL_MAX, /* blanks alone could make a small value longer */
  NAME_MAX_RAW = 256,         /* the longest known name takes 98 with every byte escaped */
  SMALL_DEPTH = 16            /* brackets in a small value; none needs more than one */
};

enum state {
  BEFORE,       /* the object has not begun */
  FIRST_OR_END, /* behind '{': a name or '}' */
  NAME,         /* behind ',': a name */
  IN_NAME,      /* within a name */
  COLON,        /* behind a name */
  VALUE,        /* behind ':'; these up to IN_SMALL are of a value */
  IN_LIST,      /* behind the '[' of floats: of numbers, or of objects with base64 */
  IN_TENSOR,    /* within the value of an array field */
  IN_BASE64,    /* within one that is base64 */
  IN_SMALL,     /* within the value of a small field */
  IN_BODY,      /* within a body that is no object, to learn whether it is JSON at all */
  COMMA_OR_END, /* behind a value: ',' or '}' */
  AFTER         /* behind the object */
};

/* A value's text, collected until it ends. */
struct collector {
  size_t offset; /* of its first byte in the body */
  size_t length;
  unsigned depth;
  bool string, escaped; /* within a string; behind its backslash */
  char text[SMALL_MAX];
};

struct decode_json {
  const struct model *model;
  struct decode_head head;
  struct decode_limits limits;
  struct arena *arena;
  enum state state;
  enum field field;   /* whose value it is */
  uint32_t seen;      /* a bit per field */
  size_t offset;      /* bytes of the body before the chunk in hand */
  size_t list_offset; /* of the '[' before IN_LIST */
  struct tensor_reader *reader;
  struct tensor_base64 *base64;
  struct fields fields;
  struct error *e; /* the first failure; then nothing is looked at any more */
  struct collector small;
};

struct decode_json *decode_json_new(const struct model *m, const struct decode_head *head,
                                    const struct decode_limits *limits, struct arena *a,
                                    struct error *e) {
  struct decode_json *d = arena_alloc(a, 1, sizeof *d, e);
  if (!d) return NULL;
  memset(d, 0, offsetof(struct decode_json, small.text));
  d->model = m;
  d->head = *head;
  d->limits = *limits;
  d->arena = a;
  d->e = e;
  d->state = BEFORE;
  fields_init(&d->fields, m);
  return d;
}

/* --- collecting a small value --- */

static void collect_from(struct decode_json *d, size_t offset, enum state state) {
  d->small.offset = offset;
  d->small.length = 0;
  d->small.depth = 0;
  d->small.string = d->small.escaped = false;
  d->state = state;
}

enum place { WITHIN, LAST, BEHIND }; /* of a byte, seen from the value that is collected */

static enum place within_string(struct collector *c, char byte) {
  if (c->escaped)
    c->escaped = false;
  else if (byte == '\\')
    c->escaped = true;
  else if (byte == '"')
    c->string = false;
  return !c->string && c->depth == 0 ? LAST : WITHIN;
}

static enum place outside_string(struct collector *c, char byte) {
  switch (byte) {
  case '"':
    c->string = true;
    return WITHIN;
  case '[':
  case '{':
    c->depth++;
    return WITHIN;
  case ']':
  case '}':
    if (c->depth == 0) return BEHIND;
    return --c->depth == 0 ? LAST : WITHIN;
  case ',':
    return c->depth == 0 ? BEHIND : WITHIN;
  default:
    return c->depth == 0 && is_blank(byte) ? BEHIND : WITHIN;
  }
}

static enum status too_long(struct decode_json *d) {
  if (d->state == IN_NAME) return field_name_too_long(d->small.text, d->small.length, d->e);
  if (d->state == IN_BODY) return error_at(d->e, "", "the body must be a JSON object");
  return error_at(d->e, field_pointer(d->field), "%s is longer than %d bytes", field_name(d->field),
                  SMALL_MAX);
}

/* Takes what the chunk has of the value. Returns how many bytes; *complete if it has ended. */
static size_t collect(struct decode_json *d, const char *text, size_t length, size_t offset,
                      bool *complete) {
  struct collector *c = &d->small;
  size_t room = d->state == IN_NAME ? NAME_MAX_RAW : SMALL_MAX;
  for (size_t i = 0; i < length; i++) {
    if ((unsigned char)text[i] < 0x20 && (c->string || text[i] == '\0')) {
      error_json(d->e, offset + i, "a control character (byte 0x%02x)", text[i]);
      return i;
    }
    enum place place = c->string ? within_string(c, text[i]) : outside_string(c, text[i]);
    *complete = place != WITHIN;
    if (place == BEHIND) return i;
    if (c->depth > SMALL_DEPTH) {
      error_json(d->e, offset + i, "brackets are nested too deep");
      return i;
    }
    if (c->length == room) {
      too_long(d);
      return i;
    }
    c->text[c->length++] = text[i];
    if (place == LAST) return i + 1;
  }
  return length;
}

/* --- what to do with a value once it is whole --- */

static enum status name_ended(struct decode_json *d) {
  struct error *e = d->e;
  if (field_of_name(d->small.text, d->small.length, d->small.offset, &d->field, e))
    return e->status;
  d->state = COLON;
  return field_note(&d->seen, d->field, d->head.ask, e);
}

static enum status small_ended(struct decode_json *d) {
  d->state = COMMA_OR_END;
  return field_read(&d->fields, d->field, d->small.text, d->small.length, d->small.offset, d->e);
}

static enum status body_ended(struct decode_json *d) {
  return field_refuse_body(d->small.text, d->small.length, d->small.offset, d->e);
}

static size_t feed_small(struct decode_json *d, const char *text, size_t length, size_t offset) {
  bool complete = false;
  size_t used = collect(d, text, length, offset, &complete);
  if (d->e->status || !complete) return used;
  switch (d->state) {
  case IN_NAME:
    name_ended(d);
    break;
  case IN_SMALL:
    small_ended(d);
    break;
  default:
    body_ended(d);
  }
  return used;
}

static size_t feed_tensor(struct decode_json *d, const char *text, size_t length, size_t offset) {
  size_t used = 0;
  bool complete = false;
  if (tensor_reader_feed(d->reader, text, length, offset, &used, &complete, d->e)) return used;
  must(complete || used == length);
  if (complete) {
    d->fields.tensor[d->field] = tensor_reader_view(d->reader);
    d->state = COMMA_OR_END;
  }
  return used;
}

static size_t feed_base64(struct decode_json *d, const char *text, size_t length, size_t offset) {
  size_t used = 0;
  bool complete = false;
  if (tensor_base64_feed(d->base64, text, length, offset, &used, &complete, d->e)) return used;
  must(complete || used == length);
  if (complete) {
    d->fields.tensor[d->field] = tensor_base64_view(d->base64);
    d->state = COMMA_OR_END;
  }
  return used;
}

static void begin_tensor(struct decode_json *d, const struct tensor_rule *rule) {
  d->reader = tensor_reader_new(rule, d->arena, d->e);
  d->state = IN_TENSOR;
}

static void begin_base64(struct decode_json *d, const struct tensor_rule *rule, bool list) {
  if (rule->type != TENSOR_FLOAT)
    error_at(d->e, field_pointer(d->field), "%s cannot be base64, which is for floats",
             field_name(d->field));
  else if (list && rule->depth_max < rule->ragged_depth)
    error_at(d->e, field_pointer(d->field), "%s is one array: one object of base64, not a list",
             field_name(d->field));
  else
    d->base64 = tensor_base64_new(rule, list, d->arena, d->e);
  d->state = IN_BASE64;
}

/* What stands behind '[' tells what the list holds. Numbers are given the bracket again. */
static void begin_list(struct decode_json *d, char c) {
  struct tensor_rule rule = field_rule(d->field, d->model, &d->limits);
  if (c == '{') {
    begin_base64(d, &rule, true);
    return;
  }
  begin_tensor(d, &rule);
  if (!d->e->status) feed_tensor(d, "[", 1, d->list_offset);
}

/* --- the object itself --- */

/* The value of a field begins at `text`. Returns how many bytes were used: others are left to
 * whoever reads the value. */
static size_t begin_value(struct decode_json *d, const char *text, size_t length, size_t offset) {
  const char c = *text;
  if (!json_starts_value(c)) {
    json_unexpected(d->e, offset, c, "a value");
    return 0;
  }
  bool word = d->field == FIELD_CAUSAL_OFFSET && c == '"';
  if (d->field >= FIELD_TENSORS || word) {
    collect_from(d, offset, IN_SMALL);
    return 0;
  }
  struct tensor_rule rule = field_rule(d->field, d->model, &d->limits);
  /* Mostly the next byte is there, and tells. */
  bool open =
      c == '[' && rule.type == TENSOR_FLOAT && (length == 1 || text[1] == '{' || is_blank(text[1]));
  if (open) {
    d->list_offset = offset;
    d->state = IN_LIST;
    return 1;
  }
  if (c == '{')
    begin_base64(d, &rule, false);
  else
    begin_tensor(d, &rule);
  return 0;
}

/* The first byte of the body that is no blank. Returns how many bytes were used. */
static size_t begin_body(struct decode_json *d, char c, size_t offset) {
  unsigned char byte = (unsigned char)c;
  if (c == '{') {
    d->state = FIRST_OR_END;
    return 1;
  }
  if (json_starts_value(c))
    collect_from(d, offset, IN_BODY);
  else if (byte == 0xef || byte == 0xfe || byte == 0xff)
    error_json(d->e, offset, "byte 0x%02x where '{' belongs; is this a byte order mark?", byte);
  else
    json_unexpected(d->e, offset, c, "'{'");
  return 0;
}

static size_t begin_name(struct decode_json *d, char c, size_t offset) {
  if (c == '}' && d->state == FIRST_OR_END) {
    d->state = AFTER;
    return 1;
  }
  if (c == '"')
    collect_from(d, offset, IN_NAME);
  else
    json_unexpected(d->e, offset, c, "a field's name");
  return 0;
}

/* Takes one byte that is no blank and stands between names and values. Returns 1, or 0 if the byte
 * belongs to what begins with it. */
static size_t step(struct decode_json *d, const char *text, size_t length, size_t offset) {
  const char c = *text;
  switch (d->state) {
  case BEFORE:
    return begin_body(d, c, offset);
  case FIRST_OR_END:
  case NAME:
    return begin_name(d, c, offset);
  case COLON:
    if (c != ':') json_unexpected(d->e, offset, c, "':'");
    d->state = VALUE;
    return 1;
  case VALUE:
    return begin_value(d, text, length, offset);
  case IN_LIST:
    begin_list(d, c);
    return 0;
  case COMMA_OR_END:
    if (c != ',' && c != '}') json_unexpected(d->e, offset, c, "',' or '}'");
    d->state = c == ',' ? NAME : AFTER;
    return 1;
  default:
    json_unexpected(d->e, offset, c, "the end");
    return 1;
  }
}

static size_t advance(struct decode_json *d, const char *text, size_t length, size_t offset) {
  switch (d->state) {
  case IN_TENSOR:
    return feed_tensor(d, text, length, offset);
  case IN_BASE64:
    return feed_base64(d, text, length, offset);
  case IN_NAME:
  case IN_SMALL:
  case IN_BODY:
    return feed_small(d, text, length, offset);
  default:
    return is_blank(*text) ? 1 : step(d, text, length, offset);
  }
}

void decode_json_feed(struct decode_json *d, const char *text, size_t length) {
  for (size_t at = 0; at < length && !d->e->status;)
    at += advance(d, text + at, length - at, d->offset + at);
  d->offset += length;
}

static enum status truncated(struct decode_json *d) {
  if (d->state == BEFORE) return error_json(d->e, d->offset, "the body is empty");
  /* A bare number or word has no end of its own. */
  bool bare = d->state == IN_BODY && !d->small.string && d->small.depth == 0;
  if (bare) return body_ended(d);
  bool value = d->state >= VALUE && d->state <= IN_SMALL;
  if (value)
    return error_json(d->e, d->offset, "the body ends before the value of \"%s\" does",
                      field_name(d->field));
  return error_json(d->e, d->offset, "the body ends before its object does");
}

const struct fields *decode_json_finish(struct decode_json *d) {
  if (!d->e->status && d->state != AFTER) truncated(d);
  return &d->fields;
}
