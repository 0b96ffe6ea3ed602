/* attention_fields: the table of an attention request's fields, and the readers of its small
 * values. */
#include "server/attention/attention_fields.h"

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/base/size.h"
#include "server/json/json_small.h"

/* Larger than any sum of a row number and an offset, and too small for a sum to overflow. */
static const int64_t WINDOW_MAX = 1ll << 60;

/* --- small values --- */

static enum status read_window(const json_t *value, const struct contract_field *field, void *to,
                               struct error *e) {
  struct attention_window *window = to;
  if (!json_is_array(value) || json_array_size(value) != 2)
    return error_at(e, field->pointer, "window must be two integers, [left, right]");
  for (size_t side = 0; side < 2; side++) {
    const json_t *n = json_array_get(value, side);
    if (!json_is_integer(n) || json_integer_value(n) < -1)
      return error_at(e, side ? "/window/1" : "/window/0",
                      "each side of the window must be an integer of at least -1");
    *(side ? &window->right : &window->left) =
        json_integer_value(n) < WINDOW_MAX ? json_integer_value(n) : WINDOW_MAX;
  }
  return STATUS_OK;
}

static const char *const selections[] = {
    [SELECT_SOFT] = "soft", [SELECT_HARD] = "hard", [SELECT_SAMPLE] = "sample", NULL};
static const char *const empty_rows[] = {"zero", "uniform", NULL};

static enum status read_return_attention(const json_t *value, const struct contract_field *field,
                                         void *to, struct error *e) {
  enum weights *want = to;
  if (json_is_boolean(value))
    *want = json_is_true(value) ? WEIGHTS_PER_HEAD : WEIGHTS_NONE;
  else if (json_small_is_text(value, "average"))
    *want = WEIGHTS_AVERAGE;
  else
    return error_at(e, field->pointer, "return_attention must be true, false or \"average\"");
  return STATUS_OK;
}

static enum status read_trace(const json_t *value, const struct contract_field *field, void *to,
                              struct error *e) {
  return attention_traced_read(value, field->pointer, NULL, to, e);
}

static enum status read_offset_word(const json_t *value, const struct contract_field *field,
                                    void *to, struct error *e) {
  if (!json_small_is_text(value, "end"))
    return error_at(e, field->pointer,
                    "causal_offset must be an integer, one integer per item, or \"end\"");
  *(bool *)to = true;
  return STATUS_OK;
}

/* --- the table --- */

/* The model's sizes that arrays must match. */
enum { SIZE_ANY, SIZE_QUERY, SIZE_KEY, SIZE_VALUE, SIZE_OUTPUT, SIZE_HEADS };

/* Rows of one item, or of each item of a batch. */
#define ROWS(text) \
  .rule = {        \
      .type = TENSOR_FLOAT, .depth_min = 2, .depth_max = 3, .ragged_depth = 3, .width_name = text}

/* The requests: for outputs of the layer, and for measures of its heads. */
enum { OF_BOTH = 0, OF_OUTPUTS = 1, OF_HEADS = 2 };

#define NAMED(name)     .pointer = "/" #name, .name_length = sizeof #name - 1
#define VALUE_AT(value) .at = offsetof(struct attention_values, value)

const struct contract_field attention_fields[FIELD_COUNT] = {
#define ATTENTION_ARRAY(id, name, requests, ...) \
  [FIELD_##id] = {NAMED(name), .of = requests, __VA_ARGS__},
#define ATTENTION_VALUE(id, name, requests, type, member, reader, ...) \
  [FIELD_##id] = {NAMED(name), .of = requests, .read = reader, VALUE_AT(member), __VA_ARGS__},
#include "server/attention/attention_fields.def"
};

static const struct contract_input inputs[] = {
    {"queries", FIELD_QUERIES, DTYPE_F32, DTYPE_F32, .depth_min = 3, .required = true},
    {"keys", FIELD_KEYS, DTYPE_F32, DTYPE_F32, .depth_min = 3},
    {"values", FIELD_VALUES, DTYPE_F32, DTYPE_F32, .depth_min = 3},
    {"valid_lens", FIELD_VALID_LENS, DTYPE_I32, DTYPE_I64, .depth_min = 1},
    {"mask", FIELD_MASK, DTYPE_BOOL, DTYPE_BOOL, .depth_min = 2},
};

static const char *const outputs[OUTPUT_COUNT] = {
    [OUTPUT_OUTPUTS] = "outputs", [OUTPUT_WEIGHTS] = "attention_weights"};

static const struct contract_v2 protocol = {
    .input = inputs,
    .inputs = sizeof inputs / sizeof *inputs,
    .output = outputs,
    .outputs = OUTPUT_COUNT,
};

/* --- how many numbers there may be --- */

/* Return the items, and the rows of an item, of queries or keys that are not yet checked. */
static size_t items_of(const struct tensor *t) {
  return attention_is_unbatched(t) ? 1 : t->elements;
}

static size_t rows_of(const struct tensor *t, size_t item) {
  return attention_is_unbatched(t) ? t->elements : tensor_shape_at(t, item).dim[0];
}

/* Returns how many rows all queries have; with keys, how many pairs of a query and a key. */
static size_t count_rows(const struct tensor *queries, const struct tensor *keys) {
  size_t sum = 0, n;
  for (size_t i = 0; i < items_of(queries); i++)
    if (!size_mul(rows_of(queries, i), keys ? rows_of(keys, i) : 1, &n) || !size_add(sum, n, &sum))
      return SIZE_MAX;
  return sum;
}

/* Bounds only what is certain: an empty batch does not bound a mask that its items share, and keys
 * with another number of items are rejected later. */
static size_t max_count(const struct contract_reading *r, unsigned field) {
  const struct tensor *queries = r->tensor[FIELD_QUERIES], *keys = r->tensor[FIELD_KEYS];
  if (!queries || items_of(queries) == 0) return 0;
  const bool paired = keys && items_of(keys) == items_of(queries);
  size_t count = 0;
  switch (field) {
  case FIELD_CAUSAL_OFFSET:
    return items_of(queries);
  case FIELD_VALID_LENS:
    return size_max(count_rows(queries, NULL), items_of(queries));
  case FIELD_MASK:
    return paired ? size_max(count_rows(queries, keys), 1) : 0;
  case FIELD_BIAS:
    if (paired && size_mul(count_rows(queries, keys), r->size[SIZE_HEADS], &count))
      return size_max(count, 1);
    return 0;
  default:
    return 0;
  }
}

/* Other services have the model's name in the body. */
static const char model_in_path[] =
    "name the model in the path: POST /v1/models/NAME/attention or /v1/models/NAME/heads "
    "(/v1/attention is for the default model; GET /v1/models lists all models)";
static const struct contract_stray strays[] = {{"model", model_in_path},
                                               {"model_name", model_in_path}};

#define CONTRACT                                                                             \
  .field = attention_fields, .arrays = FIELD_ARRAYS, .fields = FIELD_COUNT, .v2 = &protocol, \
  .stray = strays, .strays = sizeof strays / sizeof *strays, .max_count = max_count
static const struct contract contracts[] = {
    [ASK_ATTENTION] = {CONTRACT, .request = OF_OUTPUTS},
    [ASK_HEADS] = {CONTRACT, .request = OF_HEADS},
};

_Static_assert((int)FIELD_ARRAYS <= (int)CONTRACT_ARRAYS_MAX, "the arrays have room");
_Static_assert((int)FIELD_COUNT <= (int)CONTRACT_FIELDS_MAX, "a bit for each field");
_Static_assert(sizeof inputs / sizeof *inputs <= CONTRACT_INPUTS_MAX, "the inputs have room");
_Static_assert((int)OUTPUT_COUNT <= (int)CONTRACT_OUTPUTS_MAX, "the outputs have room");

void attention_fields_init(struct contract_reading *r, struct attention_values *values,
                           enum body_ask ask, const struct model *m, size_t max_items) {
  const struct layer_shape *s = &m->shape;
  const int64_t window = m->window ? (int64_t)m->window - 1 : -1;
  *values = (struct attention_values){.causal = m->causal,
                                      .window = {window, m->causal ? -1 : window},
                                      .want = WEIGHTS_NONE};
  *r = (struct contract_reading){.contract = &contracts[ask],
                                 .size = {[SIZE_QUERY] = s->query_size,
                                          [SIZE_KEY] = s->key_size,
                                          [SIZE_VALUE] = s->value_size,
                                          [SIZE_OUTPUT] = s->output_size,
                                          [SIZE_HEADS] = s->heads},
                                 .max_items = max_items,
                                 .values = values};
}
