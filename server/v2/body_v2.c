/* body_v2: the JSON of a v2 request, chunk by chunk, and the binary data after it.
 *
 * A state machine reads the known objects; all other values are ignored. Numbers whose shape and
 * type are known go to their reader as they arrive. Failures are kept in `e`, whose status ends the
 * loop. */
#include "server/v2/body_v2.h"

#include <string.h>

#include "core/base/size.h"
#include "server/number/number.h"
#include "server/v2/body_v2_parts.h"

struct body_v2 *body_v2_new(struct contract_reading *into, const struct body_terms *terms,
                            struct arena *a, struct error *e) {
  must(into->contract->v2);
  if (terms->json_bytes == 0)
    error_set(e, STATUS_INVALID_REQUEST,
              "Inference-Header-Content-Length is 0: the inputs must be described in JSON "
              "before the binary data");
  else if (terms->json_bytes != BODY_UNKNOWN && terms->json_bytes > terms->body_bytes)
    error_set(e, STATUS_INVALID_REQUEST,
              "Inference-Header-Content-Length is %llu, and the body has %llu bytes",
              (unsigned long long)terms->json_bytes, (unsigned long long)terms->body_bytes);
  if (e->status) return NULL;
  struct body_v2 *b = arena_alloc(a, 1, sizeof *b, e);
  if (!b) return NULL;
  memset(b, 0, offsetof(struct body_v2, small));
  b->into = into;
  b->json_bytes = terms->json_bytes;
  b->arena = a;
  b->e = e;
  b->value = (struct body_field){.into = into, .arena = a, .small = &b->small};
  return b;
}

static enum body_v2_level level(const struct body_v2 *b) { return b->open[b->depth - 1].level; }

static bool is_list(enum body_v2_level l) { return l == V2_INPUTS || l == V2_OUTPUTS; }

static const struct body_v2_place inputs = {.level = V2_INPUTS}, outputs = {.level = V2_OUTPUTS};

/* --- objects and lists begin and end --- */

/* Opens an object or list, which may be the next input or output. */
static enum status descend(struct body_v2 *b, enum body_v2_level l) {
  must(b->depth < sizeof b->open / sizeof *b->open);
  b->open[b->depth].level = l;
  b->open[b->depth++].seen = 0;
  b->state = is_list(l) ? V2_VALUE_OR_END : V2_NAME_OR_END;
  if (l == V2_INPUT) {
    const size_t most = b->into->contract->v2->inputs;
    if (b->inputs == most)
      return body_v2_refuse(b, inputs, "more than the %zu inputs that there are", most);
    b->input[b->inputs].index = b->inputs;
    b->inputs++;
  }
  if (l == V2_OUTPUT) {
    const size_t most = b->into->contract->v2->outputs;
    if (b->outputs == most)
      return body_v2_refuse(b, outputs, "more than the %zu outputs that there are", most);
    b->outputs++;
  }
  return STATUS_OK;
}

/* Closes an object or list, and ends its input or output. */
static enum status ascend(struct body_v2 *b) {
  const enum body_v2_level l = level(b);
  b->depth--;
  b->state = b->depth ? V2_COMMA_OR_END : V2_AFTER;
  if (l == V2_INPUT) return body_v2_end_input(b);
  if (l == V2_OUTPUT && !body_v2_output(b)->named)
    return body_v2_refuse(b, (struct body_v2_place){V2_OUTPUT, b->outputs - 1, NULL},
                          "the output's \"name\" is missing");
  return STATUS_OK;
}

/* --- names and values --- */

static void begin_skim(struct body_v2 *b, size_t offset, enum body_v2_state state) {
  small_text_begin(&b->small, offset);
  b->state = state;
}

static enum status end_name(struct body_v2 *b) {
  if (body_v2_find_key(b, level(b))) return b->e->status;
  b->state = V2_COLON;
  if (b->key == V2_KEY_UNKNOWN) return STATUS_OK;
  const bool field = b->key == V2_KEY_FIELD;
  uint64_t *seen = field ? &b->parameters_seen : &b->open[b->depth - 1].seen;
  const uint64_t bit = UINT64_C(1) << (field ? b->field : b->key);
  if (*seen & bit)
    return body_v2_refuse(b, body_v2_at_key(b), "duplicate key \"%s\" in one object",
                          body_v2_key_name(b));
  *seen |= bit;
  return STATUS_OK;
}

static enum status too_long(struct body_v2 *b, size_t most) {
  return body_v2_refuse(b, body_v2_at_key(b), "\"%s\" is longer than %zu bytes",
                        body_v2_key_name(b), most);
}

/* Ends a name or a value that was skimmed. */
static enum status end_skim(struct body_v2 *b) {
  const enum body_v2_state state = b->state;
  b->state = V2_COMMA_OR_END;
  if (state == V2_IN_NAME) return end_name(b);
  if (state == V2_IN_ID) {
    b->asked.id = b->id.text;
    b->asked.id_length = b->id.length;
  }
  return state == V2_IN_SMALL ? body_v2_end_small(b) : STATUS_OK;
}

/* Reads a name or a small value. */
static size_t feed_collected(struct body_v2 *b, const char *text, size_t length, size_t offset) {
  bool complete = false;
  const size_t used = small_text_feed(&b->small, text, length, offset, &complete, b->e);
  /* A name that is too long is unknown, and ignored. */
  if (!b->e->status && b->small.lost && b->state == V2_IN_SMALL) too_long(b, JSON_SMALL_MAX);
  if (complete && !b->e->status) end_skim(b);
  return used;
}

/* Returns the bytes that are kept of all inputs together. */
static size_t kept_length(const struct body_v2 *b) {
  size_t length = 0;
  for (size_t i = 0; i < b->inputs; i++) length += b->input[i].kept.length;
  return length;
}

/* Reads a value whose text is kept or ignored. The first byte of a text beyond its limit ends the
 * request: no later one is read. */
static size_t feed_skim(struct body_v2 *b, const char *text, size_t length, size_t offset) {
  struct body_v2_text *kept = b->state == V2_IN_ID     ? &b->id
                              : b->state == V2_IN_KEPT ? &body_v2_input(b)->kept
                                                       : NULL;
  if (b->state == V2_IN_ID) length = size_min(length, V2_ID_MAX + 1 - kept->length);
  if (b->state == V2_IN_KEPT) length = size_min(length, V2_KEPT_MAX + 1 - kept_length(b));
  bool complete = false;
  const size_t used = json_skim_feed(&b->small.skim, text, length, offset, &complete, b->e);
  if (kept && !b->e->status) body_v2_text_keep(b, kept, text, used);
  if (b->id.length > V2_ID_MAX) too_long(b, V2_ID_MAX);
  if (kept_length(b) > V2_KEPT_MAX)
    body_v2_refuse(b, body_v2_at_key(b),
                   "more than %d bytes of \"data\" come before it is known what they are: put "
                   "\"name\", \"shape\" and \"datatype\" before \"data\"",
                   V2_KEPT_MAX);
  if (complete && !b->e->status) end_skim(b);
  return used;
}

/* Begins the value of a key with further objects, or numbers. Returns how many bytes were read. */
static size_t begin_large(struct body_v2 *b, char c, size_t offset) {
  static const enum body_v2_level below[] = {
      [V2_KEY_PARAMETERS] = V2_PARAMETERS,
      [V2_KEY_INPUTS] = V2_INPUTS,
      [V2_KEY_INPUT_PARAMETERS] = V2_INPUT_PARAMETERS,
      [V2_KEY_OUTPUTS] = V2_OUTPUTS,
      [V2_KEY_OUTPUT_PARAMETERS] = V2_OUTPUT_PARAMETERS,
  };
  const bool list = b->key == V2_KEY_DATA || is_list(below[b->key]);
  if (c != (list ? '[' : '{')) {
    body_v2_refuse_kind(b, list ? "an array" : "an object");
    return 0;
  }
  if (b->key != V2_KEY_DATA) {
    descend(b, below[b->key]);
    return 1;
  }
  struct body_v2_input *in = body_v2_input(b);
  in->has_data = true;
  in->kept_offset = offset;
  if (body_v2_input_is_known(in))
    b->state = V2_IN_DATA;
  else
    begin_skim(b, offset, V2_IN_KEPT);
  return 0;
}

/* Begins an element of a list, or the value of a key. Returns how many bytes were read: 0 if the
 * reader of the value reads the byte. */
static size_t begin_value(struct body_v2 *b, const char *text, size_t length, size_t offset) {
  const enum body_v2_level l = level(b);
  const char c = *text;
  if (c == ']' && b->state == V2_VALUE_OR_END) {
    ascend(b);
    return 1;
  }
  if (!json_starts_value(c)) {
    json_unexpected(b->e, offset, c, "a value");
    return 0;
  }
  if (is_list(l)) {
    if (c == '{')
      descend(b, l == V2_INPUTS ? V2_INPUT : V2_OUTPUT);
    else
      body_v2_refuse(b, l == V2_INPUTS ? inputs : outputs, "each of \"%s\" must be an object",
                     l == V2_INPUTS ? "inputs" : "outputs");
    return 1;
  }
  if (b->key == V2_KEY_UNKNOWN || c == 'n') { /* null means absent */
    begin_skim(b, offset, V2_IN_UNKNOWN);
  } else if (b->key == V2_KEY_FIELD) {
    b->state = V2_IN_FIELD;
    return body_field_begin(&b->value, b->field, text, length, offset, b->e);
  } else if (b->key <= V2_KEY_DATA) {
    return begin_large(b, c, offset);
  } else if (b->key == V2_KEY_ID && c != '"') {
    body_v2_refuse_kind(b, "a string");
  } else {
    begin_skim(b, offset, b->key == V2_KEY_ID ? V2_IN_ID : V2_IN_SMALL);
  }
  return 0;
}

/* --- the text --- */

/* Reads a byte between names and values that is not blank. Returns 1, or 0 if a name or a value
 * begins with it. */
static size_t read_between(struct body_v2 *b, const char *text, size_t length, size_t offset) {
  const char c = *text;
  const bool list = b->depth > 0 && is_list(level(b));
  switch (b->state) {
  case V2_BEFORE:
    if (c == '{')
      descend(b, V2_REQUEST);
    else if (json_starts_value(c))
      error_at(b->e, "", "the body must be a JSON object");
    else
      json_unexpected(b->e, offset, c, "'{'");
    return 1;
  case V2_NAME_OR_END:
  case V2_NAME:
    if (c == '}' && b->state == V2_NAME_OR_END) {
      ascend(b);
      return 1;
    }
    if (c == '"')
      begin_skim(b, offset, V2_IN_NAME);
    else
      json_unexpected(b->e, offset, c, "a name");
    return 0;
  case V2_COLON:
    if (c != ':') json_unexpected(b->e, offset, c, "':'");
    b->state = V2_VALUE;
    return 1;
  case V2_VALUE:
  case V2_VALUE_OR_END:
    return begin_value(b, text, length, offset);
  case V2_COMMA_OR_END:
    if (c == ',')
      b->state = list ? V2_VALUE : V2_NAME;
    else if (c == (list ? ']' : '}'))
      ascend(b);
    else
      json_unexpected(b->e, offset, c, list ? "',' or ']'" : "',' or '}'");
    return 1;
  default:
    json_unexpected(b->e, offset, c, "the end");
    return 1;
  }
}

/* Reads one byte or more, and returns how many. */
static size_t read_some(struct body_v2 *b, const char *text, size_t length, size_t offset) {
  bool complete = false;
  size_t used;
  switch (b->state) {
  case V2_IN_NAME:
  case V2_IN_SMALL:
    return feed_collected(b, text, length, offset);
  case V2_IN_ID:
  case V2_IN_UNKNOWN:
  case V2_IN_KEPT:
    return feed_skim(b, text, length, offset);
  case V2_IN_DATA:
    used = body_v2_data_feed(b, text, length, offset, &complete);
    if (complete) b->state = V2_COMMA_OR_END;
    return used;
  case V2_IN_FIELD:
    used = body_field_feed(&b->value, text, length, offset, &complete, b->e);
    if (b->small.lost) too_long(b, contract_longest(body_field_row(&b->value)));
    if (complete) b->state = V2_COMMA_OR_END;
    return used;
  default:
    return is_blank(*text) ? 1 : read_between(b, text, length, offset);
  }
}

/* --- the body --- */

/* Ends the JSON: at its announced length, or with the body. */
static enum status end_json(struct body_v2 *b) {
  const bool said = b->json_bytes != BODY_UNKNOWN;
  if (b->e->status || b->json_ended) return b->e->status;
  b->json_ended = true;
  if (said && b->offset < b->json_bytes)
    return error_set(b->e, STATUS_INVALID_REQUEST,
                     "Inference-Header-Content-Length is %llu, and the body has %zu bytes",
                     (unsigned long long)b->json_bytes, b->offset);
  if (b->state == V2_AFTER) return STATUS_OK;
  if (b->offset == 0) return error_json(b->e, 0, "the body is empty");
  return error_json(b->e, b->offset, "unexpected end of the JSON: the object is incomplete%s",
                    said ? ", by its length in Inference-Header-Content-Length" : "");
}

/* Returns the status. The JSON Pointer of a failure becomes one into this body. */
static enum status report(struct body_v2 *b) {
  if (b->e->status) body_v2_locate(b, b->e);
  return b->e->status;
}

enum status body_v2_feed(struct body_v2 *b, const char *bytes, size_t size) {
  const uint64_t left = b->json_bytes - b->offset; /* bytes of the JSON, unless it has ended */
  const size_t text = b->json_ended ? 0 : (size_t)(left < size ? left : size);
  for (size_t at = 0; at < text && !b->e->status;)
    at += read_some(b, bytes + at, text - at, b->offset + at);
  b->offset += text;
  if (text < size && !end_json(b)) body_v2_blocks_feed(b, bytes + text, size - text);
  return report(b);
}

enum status body_v2_finish(struct body_v2 *b, struct body_v2_asked *asked) {
  const struct contract_v2 *v2 = b->into->contract->v2;
  if (end_json(b) || body_v2_end_blocks(b)) return report(b);
  for (size_t i = 0; i < v2->inputs; i++)
    if (v2->input[i].required && !b->into->tensor[v2->input[i].field])
      body_v2_refuse(b, inputs, "the input \"%s\" is missing", v2->input[i].name);
  if (b->e->status) return report(b);
  *asked = b->asked;
  asked->outputs = b->outputs ? b->outputs : 1;
  for (size_t i = 0; i < asked->outputs; i++) {
    const struct body_v2_output *o =
        &b->output[i]; /* all zero, the contract's first, if none is named */
    asked->output[i].which = o->which;
    asked->output[i].binary = o->chosen ? o->binary : b->binary_output;
  }
  return STATUS_OK;
}
