/* body_v2_values: the keys of a v2 request, and what its small values say. */
#include <jansson.h>
#include <string.h>

#include "server/body/body_v2_parts.h"

static const struct {
  enum v2_level level;
  const char *name;
} keys[V2_KEY_UNKNOWN] = {
    [V2_KEY_PARAMETERS] = {V2_REQUEST, "parameters"},
    [V2_KEY_INPUTS] = {V2_REQUEST, "inputs"},
    [V2_KEY_OUTPUTS] = {V2_REQUEST, "outputs"},
    [V2_KEY_ID] = {V2_REQUEST, "id"},
    [V2_KEY_CAUSAL] = {V2_PARAMETERS, "causal"},
    [V2_KEY_CAUSAL_OFFSET] = {V2_PARAMETERS, "causal_offset"},
    [V2_KEY_SELECT] = {V2_PARAMETERS, "select"},
    [V2_KEY_SEED] = {V2_PARAMETERS, "seed"},
    [V2_KEY_EMPTY_ROWS] = {V2_PARAMETERS, "empty_rows"},
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

const char *v2_key_name(enum v2_key key) { return keys[key].name; }

static enum v2_key find(enum v2_level level, const char *name, size_t length) {
  enum v2_key key = 0;
  while (key < V2_KEY_UNKNOWN && (keys[key].level != level || strlen(keys[key].name) != length ||
                                  memcmp(keys[key].name, name, length) != 0))
    key++;
  return key;
}

enum status v2_find_key(struct body_v2 *d, enum v2_level level, enum v2_key *out) {
  *out = V2_KEY_UNKNOWN;
  const struct small_text *t = &d->small;
  if (t->lost) return STATUS_OK;
  *out = find(level, t->text + 1, t->length - 2);
  if (*out < V2_KEY_UNKNOWN || !memchr(t->text, '\\', t->length)) return STATUS_OK;
  json_t *name = field_parse(t->text, t->length, t->offset, "", d->e);
  if (!name) return d->e->status;
  *out = find(level, json_string_value(name), json_string_length(name));
  json_decref(name);
  return STATUS_OK;
}

/* --- values --- */

struct v2_place v2_at_key(const struct body_v2 *d) {
  const enum v2_level level = keys[d->key].level;
  return (struct v2_place){level, (level < V2_OUTPUTS ? d->inputs : d->outputs) - 1,
                           keys[d->key].name};
}

static enum status refuse(struct body_v2 *d, const char *what) {
  return v2_refuse(d, v2_at_key(d), "\"%s\" must be %s", keys[d->key].name, what);
}

/* An unknown name, as it may be repeated: cut, and what would break the line is escaped later. */
static int shown(const json_t *value) {
  enum { MOST = 60 };
  const size_t length = json_string_length(value);
  return length < MOST ? (int)length : MOST;
}

static enum status read_input_name(struct body_v2 *d, const json_t *value) {
  struct v2_input *in = v2_input(d);
  for (enum attention_field f = 0; f <= FIELD_MASK; f++)
    if (json_is_text(value, field_name(f))) {
      in->field = f;
      in->named = true;
      return STATUS_OK;
    }
  return v2_refuse(d, v2_at_key(d),
                   "unknown input \"%.*s\"; there are queries, keys, values, valid_lens and mask",
                   shown(value), json_string_value(value));
}

static enum status read_output_name(struct body_v2 *d, const json_t *value) {
  struct v2_output *out = v2_output(d);
  out->weights = json_is_text(value, "attention_weights");
  if (!out->weights && !json_is_text(value, "outputs"))
    return v2_refuse(d, v2_at_key(d),
                     "unknown output \"%.*s\"; there are outputs and attention_weights",
                     shown(value), json_string_value(value));
  if (d->outputs > 1 && d->output[0].weights == out->weights)
    return v2_refuse(d, v2_at_key(d), "the output \"%s\" stands twice", json_string_value(value));
  out->named = true;
  return STATUS_OK;
}

static enum status read_datatype(struct body_v2 *d, const json_t *value) {
  static const struct {
    const char *name;
    enum tensor_dtype dtype;
  } list[] = {
      {"FP32", DTYPE_F32}, {"INT32", DTYPE_I32}, {"INT64", DTYPE_I64}, {"BOOL", DTYPE_BOOL}};
  struct v2_input *in = v2_input(d);
  in->typed = true;
  in->dtype = DTYPE_NONE; /* refused once it is known for which input */
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    if (json_is_text(value, list[i].name)) in->dtype = list[i].dtype;
  return STATUS_OK;
}

static enum status read_shape(struct body_v2 *d, const json_t *value) {
  struct v2_input *in = v2_input(d);
  const size_t rank = json_array_size(value);
  if (!json_is_array(value) || rank == 0 || rank > TENSOR_DEPTH_MAX)
    return refuse(d, "an array of 1 to 4 integers");
  for (size_t i = 0; i < rank; i++) {
    const json_t *n = json_array_get(value, i);
    if (!json_is_integer(n) || json_integer_value(n) < 0)
      return refuse(d, "an array of integers that are not negative");
    in->form.dim[i] = (size_t)json_integer_value(n);
  }
  in->form.rank = (unsigned)rank;
  in->shaped = true;
  return STATUS_OK;
}

static enum status read_count(struct body_v2 *d, const json_t *value, uint64_t *out) {
  if (!json_is_integer(value) || json_integer_value(value) < 0)
    return refuse(d, "an integer that is not negative");
  *out = (uint64_t)json_integer_value(value);
  return STATUS_OK;
}

static enum status read_flag(struct body_v2 *d, const json_t *value, bool *out) {
  if (!json_is_boolean(value)) return refuse(d, "true or false");
  *out = json_is_true(value);
  return STATUS_OK;
}

static enum status read_value(struct body_v2 *d, const json_t *value) {
  struct v2_input *in = d->inputs ? v2_input(d) : NULL;
  uint64_t size = 0;
  switch (d->key) {
  case V2_KEY_INPUT_NAME:
    return read_input_name(d, value);
  case V2_KEY_DATATYPE:
    return read_datatype(d, value);
  case V2_KEY_SHAPE:
    return read_shape(d, value);
  case V2_KEY_BINARY_SIZE:
    if (read_count(d, value, &size)) break;
    in->has_size = true;
    in->size = (size_t)size;
    break;
  case V2_KEY_OUTPUT_NAME:
    return read_output_name(d, value);
  case V2_KEY_BINARY_DATA:
    v2_output(d)->chosen = true;
    return read_flag(d, value, &v2_output(d)->binary);
  case V2_KEY_BINARY_OUTPUT:
    return read_flag(d, value, &d->binary_output);
  default:
    return read_count(d, value, &d->asked.timeout_us);
  }
  return d->e->status;
}

/* The parameters that are fields of the native form. */
static enum attention_field field_of(enum v2_key key) {
  switch (key) {
  case V2_KEY_CAUSAL:
    return FIELD_CAUSAL;
  case V2_KEY_CAUSAL_OFFSET:
    return FIELD_CAUSAL_OFFSET;
  case V2_KEY_SELECT:
    return FIELD_SELECT;
  case V2_KEY_SEED:
    return FIELD_SEED;
  case V2_KEY_EMPTY_ROWS:
    return FIELD_EMPTY_ROWS;
  default:
    return FIELD_COUNT;
  }
}

static bool wants_text(enum v2_key key) {
  return key == V2_KEY_INPUT_NAME || key == V2_KEY_DATATYPE || key == V2_KEY_OUTPUT_NAME;
}

enum status v2_small_ended(struct body_v2 *d) {
  const enum attention_field field = field_of(d->key);
  const struct small_text *t = &d->small;
  if (field < FIELD_COUNT)
    return field_read(&d->fields, field, t->text, t->length, t->offset, d->e);
  const struct v2_place at = v2_at_key(d);
  char pointer[ERROR_POINTER_SIZE];
  v2_point(&at, pointer);
  json_t *value = field_parse(t->text, t->length, t->offset, pointer, d->e);
  if (!value) return d->e->status;
  if (wants_text(d->key) && !json_is_string(value))
    refuse(d, "a string");
  else
    read_value(d, value);
  json_decref(value);
  return d->e->status;
}
