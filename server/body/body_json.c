/* body_json: the top level of a request's text, chunk by chunk.
 *
 * A machine of a few states walks over the object. A value's text goes to its array reader or,
 * where it is small, into a buffer of fixed size, whole, before it is parsed. A chunk may end
 * anywhere: all that is remembered is in the reader. */
#include "server/body/body_json.h"

#include <string.h>

#include "server/body/small_text.h"
#include "server/body/tensor_base64.h"
#include "server/body/tensor_json.h"
#include "server/text/blank.h"

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
  AFTER,        /* behind the object */
  AFTER_BODY    /* behind a body that is no object: JSON, if nothing follows */
};

struct body_json {
  const struct model *model;
  struct body_terms head;
  struct body_limits limits;
  struct arena *arena;
  enum state state;
  enum attention_field field; /* whose value it is */
  uint32_t seen;              /* a bit per field */
  size_t offset;              /* bytes of the body before the chunk in hand */
  size_t list_offset;         /* of the '[' before IN_LIST */
  struct tensor_reader *reader;
  struct tensor_base64 *base64;
  struct fields fields;
  struct error *e; /* the first failure; then nothing is looked at any more */
  struct small_text small;
};

struct body_json *body_json_new(const struct model *m, const struct body_terms *head,
                                const struct body_limits *limits, struct arena *a,
                                struct error *e) {
  struct body_json *d = arena_alloc(a, 1, sizeof *d, e);
  if (!d) return NULL;
  memset(d, 0, offsetof(struct body_json, small));
  d->model = m;
  d->head = *head;
  d->limits = *limits;
  d->arena = a;
  d->e = e;
  d->state = BEFORE;
  fields_init(&d->fields, m);
  return d;
}

/* --- small values --- */

static void collect_from(struct body_json *d, size_t offset, enum state state) {
  small_text_begin(&d->small, offset);
  d->state = state;
}

static enum status too_long(struct body_json *d) {
  if (d->state == IN_NAME) return field_name_too_long(d->small.text, d->small.length, d->e);
  return error_at(d->e, field_pointer(d->field), "%s is longer than %d bytes", field_name(d->field),
                  JSON_SMALL_MAX);
}

static enum status name_ended(struct body_json *d) {
  struct error *e = d->e;
  if (field_of_name(d->small.text, d->small.length, d->small.offset, &d->field, e))
    return e->status;
  d->state = COLON;
  return field_note(&d->seen, d->field, d->head.ask, e);
}

static enum status small_ended(struct body_json *d) {
  d->state = COMMA_OR_END;
  return field_read(&d->fields, d->field, d->small.text, d->small.length, d->small.offset, d->e);
}

static enum status body_ended(struct body_json *d) {
  return error_at(d->e, "", "the body must be a JSON object");
}

static size_t feed_small(struct body_json *d, const char *text, size_t length, size_t offset) {
  bool complete = false;
  const size_t used = small_text_feed(&d->small, text, length, offset, &complete, d->e);
  if (d->e->status) return used;
  if (d->state == IN_BODY) {
    if (complete) d->state = AFTER_BODY;
    if (d->small.lost) body_ended(d);
  } else if (d->small.lost) {
    too_long(d);
  } else if (complete) {
    d->state == IN_NAME ? name_ended(d) : small_ended(d);
  }
  return used;
}

/* --- arrays --- */

static size_t feed_tensor(struct body_json *d, const char *text, size_t length, size_t offset) {
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

static size_t feed_base64(struct body_json *d, const char *text, size_t length, size_t offset) {
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

static void begin_tensor(struct body_json *d, const struct tensor_rule *rule) {
  d->reader = tensor_reader_new(rule, d->arena, d->e);
  d->state = IN_TENSOR;
}

static void begin_base64(struct body_json *d, const struct tensor_rule *rule, bool list) {
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
static void begin_list(struct body_json *d, char c) {
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
static size_t begin_value(struct body_json *d, const char *text, size_t length, size_t offset) {
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
static size_t begin_body(struct body_json *d, char c, size_t offset) {
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

static size_t begin_name(struct body_json *d, char c, size_t offset) {
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
static size_t step(struct body_json *d, const char *text, size_t length, size_t offset) {
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

static size_t advance(struct body_json *d, const char *text, size_t length, size_t offset) {
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

void body_json_feed(struct body_json *d, const char *text, size_t length) {
  for (size_t at = 0; at < length && !d->e->status;)
    at += advance(d, text + at, length - at, d->offset + at);
  d->offset += length;
}

static enum status truncated(struct body_json *d) {
  if (d->state == BEFORE) return error_json(d->e, d->offset, "the body is empty");
  /* A bare number has no end of its own. */
  struct error none = {0};
  bool complete = false;
  if (d->state == IN_BODY) json_skim_feed(&d->small.skim, " ", 1, d->offset, &complete, &none);
  if (complete || d->state == AFTER_BODY) return body_ended(d);
  bool value = d->state >= VALUE && d->state <= IN_SMALL;
  if (value)
    return error_json(d->e, d->offset, "the body ends before the value of \"%s\" does",
                      field_name(d->field));
  return error_json(d->e, d->offset, "the body ends before its object does");
}

const struct fields *body_json_finish(struct body_json *d) {
  if (!d->e->status && d->state != AFTER) truncated(d);
  return &d->fields;
}
