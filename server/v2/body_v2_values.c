/* body_v2_values: the keys of a v2 request, and its small values. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "server/v2/body_v2_parts.h"

enum { LIST_SIZE = 200 }; /* bytes of the names of all inputs, or outputs */

static const struct {
  enum body_v2_level level;
  const char *name;
} keys[V2_KEYS] = {
    [V2_KEY_PARAMETERS] = {V2_REQUEST, "parameters"},
    [V2_KEY_INPUTS] = {V2_REQUEST, "inputs"},
    [V2_KEY_OUTPUTS] = {V2_REQUEST, "outputs"},
    [V2_KEY_ID] = {V2_REQUEST, "id"},
    [V2_KEY_BINARY_OUTPUT] = {V2_PARAMETERS, "binary_data_output"},
    [V2_KEY_TIMEOUT] = {V2_PARAMETERS, "timeout"},
    [V2_KEY_INPUT_NAME] = {V2_INPUT, "name"},
    [V2_KEY_DATATYPE] = {V2_INPUT, "datatype"},
    [V2_KEY_SHAPE] = {V2_INPUT, "shape"},
    [V2_KEY_DATA] = {V2_INPUT, "data"},
    [V2_KEY_INPUT_PARAMETERS] = {V2_INPUT, "parameters"},
    [V2_KEY_BINARY_SIZE] = {V2_INPUT_PARAMETERS, "binary_data_size"},
    [V2_KEY_OUTPUT_NAME] = {V2_OUTPUT, "name"},
    [V2_KEY_OUTPUT_PARAMETERS] = {V2_OUTPUT, "parameters"},
    [V2_KEY_BINARY_DATA] = {V2_OUTPUT_PARAMETERS, "binary_data"},
};

const char *body_v2_key_name(const struct body_v2 *b) {
  if (b->key == V2_KEY_FIELD) return contract_name(&b->into->contract->field[b->field]);
  return keys[b->key].name;
}

static enum body_v2_key find_key(struct body_v2 *b, enum body_v2_level level, const char *name,
                                 size_t length) {
  const struct contract *c = b->into->contract;
  for (enum body_v2_key key = 0; key < V2_KEYS; key++)
    if (keys[key].level == level && strlen(keys[key].name) == length &&
        memcmp(keys[key].name, name, length) == 0)
      return key;
  if (level != V2_PARAMETERS) return V2_KEY_UNKNOWN;
  b->field = contract_find(c, name, length);
  const bool parameter = b->field < c->fields && c->field[b->field].parameter;
  return parameter ? V2_KEY_FIELD : V2_KEY_UNKNOWN;
}

enum status body_v2_find_key(struct body_v2 *b, enum body_v2_level level) {
  b->key = V2_KEY_UNKNOWN;
  const struct small_text *t = &b->small;
  if (t->lost) return STATUS_OK;
  b->key = find_key(b, level, t->text + 1, t->length - 2);
  if (b->key != V2_KEY_UNKNOWN || !memchr(t->text, '\\', t->length)) return STATUS_OK;
  json_t *name = json_small_parse(t->text, t->length, t->offset, "", b->e);
  if (!name) return b->e->status;
  b->key = find_key(b, level, json_string_value(name), json_string_length(name));
  json_decref(name);
  return STATUS_OK;
}

/* --- values --- */

struct body_v2_place body_v2_at_key(const struct body_v2 *b) {
  const enum body_v2_level level = b->key == V2_KEY_FIELD ? V2_PARAMETERS : keys[b->key].level;
  return (struct body_v2_place){level, (level < V2_OUTPUTS ? b->inputs : b->outputs) - 1,
                                body_v2_key_name(b)};
}

enum status body_v2_refuse_kind(struct body_v2 *b, const char *kind) {
  return body_v2_refuse(b, body_v2_at_key(b), "\"%s\" must be %s", body_v2_key_name(b), kind);
}

/* Adds the next of `count` names to "a, b and c". */
static void list_name(char list[LIST_SIZE], const char *name, size_t index, size_t count) {
  const size_t used = strlen(list);
  const char *before = index == 0 ? "" : index + 1 < count ? ", " : " and ";
  snprintf(list + used, LIST_SIZE - used, "%s%s", before, name);
}

static enum status refuse_name(struct body_v2 *b, const char *kind, const json_t *value,
                               const char *list) {
  enum { SHOWN = 60 }; /* bytes of the name; control characters are escaped later */
  const size_t length = json_string_length(value);
  return body_v2_refuse(b, body_v2_at_key(b), "unknown %s \"%.*s\": expected %s", kind,
                        length < SHOWN ? (int)length : SHOWN, json_string_value(value), list);
}

static enum status read_input_name(struct body_v2 *b, const json_t *value) {
  const struct contract_v2 *v2 = b->into->contract->v2;
  struct body_v2_input *in = body_v2_input(b);
  for (size_t i = 0; i < v2->inputs && !in->is; i++)
    if (json_small_is_text(value, v2->input[i].name)) in->is = &v2->input[i];
  if (in->is) return STATUS_OK;
  char list[LIST_SIZE] = "";
  for (size_t i = 0; i < v2->inputs; i++) list_name(list, v2->input[i].name, i, v2->inputs);
  return refuse_name(b, "input", value, list);
}

static enum status read_output_name(struct body_v2 *b, const json_t *value) {
  const struct contract_v2 *v2 = b->into->contract->v2;
  struct body_v2_output *out = body_v2_output(b);
  while (out->which < v2->outputs && !json_small_is_text(value, v2->output[out->which]))
    out->which++;
  if (out->which == v2->outputs) {
    char list[LIST_SIZE] = "";
    for (size_t i = 0; i < v2->outputs; i++) list_name(list, v2->output[i], i, v2->outputs);
    return refuse_name(b, "output", value, list);
  }
  for (const struct body_v2_output *o = b->output; o < out; o++)
    if (o->which == out->which)
      return body_v2_refuse(b, body_v2_at_key(b), "duplicate output \"%s\"",
                            json_string_value(value));
  out->named = true;
  return STATUS_OK;
}

static const struct {
  const char *name;
  enum tensor_dtype dtype;
} datatypes[] = {
    {"FP32", DTYPE_F32}, {"INT32", DTYPE_I32}, {"INT64", DTYPE_I64}, {"BOOL", DTYPE_BOOL}};
enum { DATATYPES = sizeof datatypes / sizeof *datatypes };

const char *body_v2_datatype_name(enum tensor_dtype dtype) {
  size_t i = 0;
  while (i + 1 < DATATYPES && datatypes[i].dtype != dtype) i++;
  return datatypes[i].name;
}

static enum status read_shape(struct body_v2 *b, const json_t *value) {
  struct body_v2_input *in = body_v2_input(b);
  const size_t rank = json_array_size(value);
  if (!json_is_array(value) || rank == 0 || rank > TENSOR_DEPTH_MAX)
    return body_v2_refuse_kind(b, "an array of 1 to 4 integers");
  for (size_t i = 0; i < rank; i++) {
    const json_t *n = json_array_get(value, i);
    if (!json_is_integer(n) || json_integer_value(n) < 0)
      return body_v2_refuse_kind(b, "an array of non-negative integers");
    in->form.dim[i] = (size_t)json_integer_value(n);
  }
  in->form.rank = (unsigned)rank;
  in->shaped = true;
  return STATUS_OK;
}

static enum status read_natural(struct body_v2 *b, const json_t *value, uint64_t *out) {
  if (!json_is_integer(value) || json_integer_value(value) < 0)
    return body_v2_refuse_kind(b, "a non-negative integer");
  *out = (uint64_t)json_integer_value(value);
  return STATUS_OK;
}

static enum status read_flag(struct body_v2 *b, const json_t *value, bool *out) {
  if (!json_is_boolean(value)) return body_v2_refuse_kind(b, "true or false");
  *out = json_is_true(value);
  return STATUS_OK;
}

static enum status read_value(struct body_v2 *b, const json_t *value) {
  struct body_v2_input *in = b->inputs ? body_v2_input(b) : NULL;
  uint64_t size = 0;
  const bool string =
      b->key == V2_KEY_INPUT_NAME || b->key == V2_KEY_DATATYPE || b->key == V2_KEY_OUTPUT_NAME;
  if (string && !json_is_string(value)) return body_v2_refuse_kind(b, "a string");
  switch (b->key) {
  case V2_KEY_INPUT_NAME:
    return read_input_name(b, value);
  case V2_KEY_DATATYPE:
    in->typed = true;
    in->dtype = DTYPE_NONE; /* rejected when it is known for which input */
    for (size_t i = 0; i < DATATYPES; i++)
      if (json_small_is_text(value, datatypes[i].name)) in->dtype = datatypes[i].dtype;
    break;
  case V2_KEY_SHAPE:
    return read_shape(b, value);
  case V2_KEY_BINARY_SIZE:
    if (read_natural(b, value, &size)) break;
    in->has_size = true;
    in->size = (size_t)size;
    break;
  case V2_KEY_OUTPUT_NAME:
    return read_output_name(b, value);
  case V2_KEY_BINARY_DATA:
    body_v2_output(b)->chosen = true;
    return read_flag(b, value, &body_v2_output(b)->binary);
  case V2_KEY_BINARY_OUTPUT:
    return read_flag(b, value, &b->binary_output);
  default:
    return read_natural(b, value, &b->asked.timeout_us);
  }
  return b->e->status;
}

enum status body_v2_end_small(struct body_v2 *b) {
  const struct small_text *t = &b->small;
  const struct body_v2_place at = body_v2_at_key(b);
  char pointer[ERROR_POINTER_SIZE];
  body_v2_point(&at, pointer);
  json_t *value = json_small_parse(t->text, t->length, t->offset, pointer, b->e);
  if (!value) return b->e->status;
  const enum status status = read_value(b, value);
  json_decref(value);
  return status;
}
