/* body_v2: the JSON of a v2 request, chunk by chunk, and the binary data behind it.
 *
 * A machine of a few states walks over the objects that mean something; all other values are passed
 * over. Numbers go to their reader as they come, if it is known by then what they are. */
#include "server/body/body_v2.h"

#include <string.h>

#include "core/run/size.h"
#include "server/body/body_v2_parts.h"
#include "server/text/blank.h"

static enum status check_length(const struct body_terms *head, struct error *e) {
  if (head->json_bytes == 0)
    return error_set(e, STATUS_INVALID_REQUEST,
                     "Inference-Header-Content-Length is 0: a body without JSON can be for one "
                     "input only, and there are three");
  if (head->json_bytes != BODY_UNKNOWN && head->json_bytes > head->body_bytes)
    return error_set(e, STATUS_INVALID_REQUEST,
                     "Inference-Header-Content-Length is %llu, and the body has %llu bytes",
                     (unsigned long long)head->json_bytes, (unsigned long long)head->body_bytes);
  return STATUS_OK;
}

struct body_v2 *body_v2_new(const struct model *m, const struct body_terms *head,
                            const struct body_limits *limits, struct arena *a, struct error *e) {
  if (check_length(head, e)) return NULL;
  struct body_v2 *d = arena_alloc(a, 1, sizeof *d, e);
  if (!d) return NULL;
  memset(d, 0, offsetof(struct body_v2, small));
  d->model = m;
  d->head = *head;
  d->limits = *limits;
  d->arena = a;
  d->e = e;
  fields_init(&d->fields, m);
  return d;
}

static enum v2_level level(const struct body_v2 *d) { return d->open[d->depth - 1].level; }

static bool is_list(enum v2_level l) { return l == V2_INPUTS || l == V2_OUTPUTS; }

static const struct v2_place inputs = {.level = V2_INPUTS}, outputs = {.level = V2_OUTPUTS};

/* --- objects and lists begin and end --- */

/* A list's element begins. */
static enum status begin_element(struct body_v2 *d, enum v2_level l) {
  if (l == V2_INPUT) {
    if (d->inputs == V2_INPUTS_MAX)
      return v2_refuse(d, inputs, "more than the %d inputs that there are", V2_INPUTS_MAX);
    d->input[d->inputs].index = d->inputs;
    d->inputs++;
  }
  if (l == V2_OUTPUT) {
    if (d->outputs == V2_OUTPUTS_MAX)
      return v2_refuse(d, outputs, "more than the %d outputs that there are", V2_OUTPUTS_MAX);
    d->outputs++;
  }
  return STATUS_OK;
}

static enum status descend(struct body_v2 *d, enum v2_level l) {
  must(d->depth < sizeof d->open / sizeof *d->open);
  d->open[d->depth].level = l;
  d->open[d->depth++].seen = 0;
  d->state = is_list(l) ? V2_VALUE_OR_END : V2_NAME_OR_END;
  return begin_element(d, l);
}

static enum status ascend(struct body_v2 *d) {
  const enum v2_level l = level(d);
  d->depth--;
  d->state = d->depth ? V2_COMMA_OR_END : V2_AFTER;
  if (l == V2_INPUT) return v2_input_ended(d);
  if (l == V2_OUTPUT && !v2_output(d)->named)
    return v2_refuse(d, (struct v2_place){V2_OUTPUT, d->outputs - 1, NULL},
                     "the output's \"name\" is missing");
  return STATUS_OK;
}

/* --- names and values --- */

static void skim_from(struct body_v2 *d, size_t offset, enum v2_state state) {
  small_text_begin(&d->small, offset);
  d->state = state;
}

static enum status name_ended(struct body_v2 *d) {
  if (v2_find_key(d, level(d), &d->key)) return d->e->status;
  d->state = V2_COLON;
  if (d->key == V2_KEY_UNKNOWN) return STATUS_OK;
  uint32_t *seen = &d->open[d->depth - 1].seen, bit = UINT32_C(1) << d->key;
  if (*seen & bit)
    return v2_refuse(d, v2_at_key(d), "\"%s\" stands twice in one object", v2_key_name(d->key));
  *seen |= bit;
  return STATUS_OK;
}

static enum status too_long(struct body_v2 *d, size_t most) {
  return v2_refuse(d, v2_at_key(d), "\"%s\" is longer than %zu bytes", v2_key_name(d->key), most);
}

static enum status skim_ended(struct body_v2 *d) {
  const enum v2_state state = d->state;
  d->state = V2_COMMA_OR_END;
  if (state == V2_IN_NAME) return name_ended(d);
  if (state == V2_IN_ID) {
    d->asked.id = d->id.text;
    d->asked.id_length = d->id.length;
  }
  return state == V2_IN_SMALL ? v2_small_ended(d) : STATUS_OK;
}

/* Within a name or a small value. */
static size_t feed_small(struct body_v2 *d, const char *text, size_t length, size_t offset) {
  bool complete = false;
  const size_t used = small_text_feed(&d->small, text, length, offset, &complete, d->e);
  /* No known name is so long. */
  if (!d->e->status && d->small.lost && d->state == V2_IN_SMALL) too_long(d, JSON_SMALL_MAX);
  if (complete && !d->e->status) skim_ended(d);
  return used;
}

/* The text that is kept of all inputs: each alone might be within the bound. */
static size_t kept_length(const struct body_v2 *d) {
  size_t length = 0;
  for (size_t i = 0; i < d->inputs; i++) length += d->input[i].kept.length;
  return length;
}

static enum status too_much_kept(struct body_v2 *d) {
  return v2_refuse(d, v2_at_key(d),
                   "more than %d bytes of \"data\" come before what they are: put \"name\", "
                   "\"shape\" and \"datatype\" before \"data\"",
                   V2_KEPT_MAX);
}

/* Within a value whose text is kept, or passed over. The first byte of a text that is over its
 * bound ends the request: no later one is looked at. */
static size_t feed_skim(struct body_v2 *d, const char *text, size_t length, size_t offset) {
  struct v2_text *kept = d->state == V2_IN_ID     ? &d->id
                         : d->state == V2_IN_KEPT ? &v2_input(d)->kept
                                                  : NULL;
  if (d->state == V2_IN_ID) length = size_min(length, V2_ID_MAX + 1 - kept->length);
  if (d->state == V2_IN_KEPT) length = size_min(length, V2_KEPT_MAX + 1 - kept_length(d));
  bool complete = false;
  const size_t used = json_skim_feed(&d->small.skim, text, length, offset, &complete, d->e);
  if (kept && !d->e->status) v2_text_keep(d, kept, text, used);
  if (d->id.length > V2_ID_MAX) too_long(d, V2_ID_MAX);
  if (kept_length(d) > V2_KEPT_MAX) too_much_kept(d);
  if (complete && !d->e->status) skim_ended(d);
  return used;
}

static size_t feed_data(struct body_v2 *d, const char *text, size_t length, size_t offset) {
  bool complete = false;
  const size_t used = v2_data_feed(d, text, length, offset, &complete);
  if (complete) d->state = V2_COMMA_OR_END;
  return used;
}

static size_t feed_offset(struct body_v2 *d, const char *text, size_t length, size_t offset) {
  size_t used = 0;
  bool complete = false;
  if (tensor_reader_feed(d->reader, text, length, offset, &used, &complete, d->e)) return used;
  if (complete) {
    d->fields.tensor[FIELD_CAUSAL_OFFSET] = tensor_reader_view(d->reader);
    d->state = V2_COMMA_OR_END;
  }
  return used;
}

static enum status refuse_kind(struct body_v2 *d, const char *kind) {
  return v2_refuse(d, v2_at_key(d), "\"%s\" must be %s", v2_key_name(d->key), kind);
}

/* The value of a key that holds further objects, or numbers. Returns how many bytes were used. */
static size_t begin_large(struct body_v2 *d, char c, size_t offset) {
  static const enum v2_level below[] = {
      [V2_KEY_PARAMETERS] = V2_PARAMETERS,
      [V2_KEY_INPUTS] = V2_INPUTS,
      [V2_KEY_INPUT_PARAMETERS] = V2_INPUT_PARAMETERS,
      [V2_KEY_OUTPUTS] = V2_OUTPUTS,
      [V2_KEY_OUTPUT_PARAMETERS] = V2_OUTPUT_PARAMETERS,
  };
  const bool list = d->key == V2_KEY_DATA || is_list(below[d->key]);
  if (c != (list ? '[' : '{')) {
    refuse_kind(d, list ? "an array" : "an object");
    return 0;
  }
  if (d->key != V2_KEY_DATA) {
    descend(d, below[d->key]);
    return 1;
  }
  struct v2_input *in = v2_input(d);
  in->has_data = true;
  in->kept_offset = offset;
  if (v2_input_is_known(in))
    d->state = V2_IN_DATA;
  else
    skim_from(d, offset, V2_IN_KEPT);
  return 0;
}

static void begin_offset(struct body_v2 *d, char c, size_t offset) {
  if (c == '"') {
    skim_from(d, offset, V2_IN_SMALL);
    return;
  }
  const struct tensor_rule rule = field_rule(FIELD_CAUSAL_OFFSET, d->model, &d->limits);
  d->reader = tensor_reader_new(&rule, d->arena, d->e);
  d->state = V2_IN_OFFSET;
}

/* The value of a key begins. Returns how many bytes were used. */
static size_t begin_member(struct body_v2 *d, char c, size_t offset) {
  if (d->key == V2_KEY_UNKNOWN || c == 'n') /* null: as if it were not there */
    skim_from(d, offset, V2_IN_UNKNOWN);
  else if (d->key <= V2_KEY_DATA)
    return begin_large(d, c, offset);
  else if (d->key == V2_KEY_ID && c != '"')
    refuse_kind(d, "a string");
  else if (d->key == V2_KEY_CAUSAL_OFFSET)
    begin_offset(d, c, offset);
  else
    skim_from(d, offset, d->key == V2_KEY_ID ? V2_IN_ID : V2_IN_SMALL);
  return 0;
}

/* Returns how many bytes were used: 0 if `c` is left to whoever reads the value. */
static size_t begin_value(struct body_v2 *d, char c, size_t offset) {
  const enum v2_level l = level(d);
  if (c == ']' && d->state == V2_VALUE_OR_END) {
    ascend(d);
    return 1;
  }
  if (!json_starts_value(c)) {
    json_unexpected(d->e, offset, c, "a value");
    return 0;
  }
  if (is_list(l)) {
    if (c == '{')
      descend(d, l == V2_INPUTS ? V2_INPUT : V2_OUTPUT);
    else
      v2_refuse(d, l == V2_INPUTS ? inputs : outputs, "each of \"%s\" must be an object",
                l == V2_INPUTS ? "inputs" : "outputs");
    return 1;
  }
  return begin_member(d, c, offset);
}

/* --- the text --- */

static size_t begin_name(struct body_v2 *d, char c, size_t offset) {
  if (c == '}' && d->state == V2_NAME_OR_END) {
    ascend(d);
    return 1;
  }
  if (c == '"')
    skim_from(d, offset, V2_IN_NAME);
  else
    json_unexpected(d->e, offset, c, "a name");
  return 0;
}

static void begin_body(struct body_v2 *d, char c, size_t offset) {
  if (c == '{')
    descend(d, V2_REQUEST);
  else if (json_starts_value(c))
    error_at(d->e, "", "the body must be a JSON object");
  else
    json_unexpected(d->e, offset, c, "'{'");
}

static void end_value(struct body_v2 *d, char c, size_t offset) {
  const bool list = is_list(level(d));
  if (c == ',')
    d->state = list ? V2_VALUE : V2_NAME;
  else if (c == (list ? ']' : '}'))
    ascend(d);
  else
    json_unexpected(d->e, offset, c, list ? "',' or ']'" : "',' or '}'");
}

/* Takes one byte that is no blank and stands between names and values. Returns 1, or 0 if the byte
 * belongs to what begins with it. */
static size_t step(struct body_v2 *d, char c, size_t offset) {
  switch (d->state) {
  case V2_BEFORE:
    begin_body(d, c, offset);
    return 1;
  case V2_NAME_OR_END:
  case V2_NAME:
    return begin_name(d, c, offset);
  case V2_COLON:
    if (c != ':') json_unexpected(d->e, offset, c, "':'");
    d->state = V2_VALUE;
    return 1;
  case V2_VALUE:
  case V2_VALUE_OR_END:
    return begin_value(d, c, offset);
  case V2_COMMA_OR_END:
    end_value(d, c, offset);
    return 1;
  default:
    json_unexpected(d->e, offset, c, "the end");
    return 1;
  }
}

static size_t advance(struct body_v2 *d, const char *text, size_t length, size_t offset) {
  switch (d->state) {
  case V2_IN_NAME:
  case V2_IN_SMALL:
    return feed_small(d, text, length, offset);
  case V2_IN_ID:
  case V2_IN_UNKNOWN:
  case V2_IN_KEPT:
    return feed_skim(d, text, length, offset);
  case V2_IN_DATA:
    return feed_data(d, text, length, offset);
  case V2_IN_OFFSET:
    return feed_offset(d, text, length, offset);
  default:
    return is_blank(*text) ? 1 : step(d, *text, offset);
  }
}

/* --- the body --- */

/* The JSON is said to end here. */
static enum status end_json(struct body_v2 *d) {
  const bool said = d->head.json_bytes != BODY_UNKNOWN;
  if (d->e->status || d->json_ended) return d->e->status;
  d->json_ended = true;
  if (said && d->offset < d->head.json_bytes)
    return error_set(d->e, STATUS_INVALID_REQUEST,
                     "Inference-Header-Content-Length is %llu, and the body has %zu bytes",
                     (unsigned long long)d->head.json_bytes, d->offset);
  if (d->state == V2_AFTER) return STATUS_OK;
  if (d->offset == 0) return error_json(d->e, 0, "the body is empty");
  return error_json(d->e, d->offset, "the JSON ends before its object does%s",
                    said ? ", by its length in Inference-Header-Content-Length" : "");
}

void body_v2_feed(struct body_v2 *d, const char *bytes, size_t size) {
  const uint64_t left = d->head.json_bytes - d->offset; /* of the JSON, unless it has ended */
  const size_t text = d->json_ended ? 0 : (size_t)(left < size ? left : size);
  for (size_t at = 0; at < text && !d->e->status;)
    at += advance(d, bytes + at, text - at, d->offset + at);
  d->offset += text;
  if (text < size && !end_json(d)) v2_blocks_feed(d, bytes + text, size - text);
}

static void settle_outputs(struct body_v2 *d) {
  struct body_v2_asked *a = &d->asked;
  a->outputs = d->outputs ? d->outputs : 1;
  for (size_t i = 0; i < a->outputs; i++) {
    const struct v2_output *o = &d->output[i]; /* all false if none is named: it is "outputs" */
    a->output[i].weights = o->weights;
    a->output[i].binary = o->chosen ? o->binary : d->binary_output;
    if (o->weights) d->fields.want = WEIGHTS_PER_HEAD;
  }
}

const struct fields *body_v2_finish(struct body_v2 *d, struct body_v2_asked *v2) {
  if (!end_json(d)) v2_blocks_ended(d);
  if (!d->e->status && !d->fields.tensor[FIELD_QUERIES])
    v2_refuse(d, inputs, "the input \"queries\" is missing");
  settle_outputs(d);
  *v2 = d->asked;
  return &d->fields;
}
