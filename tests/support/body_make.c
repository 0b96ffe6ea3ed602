/* body_make: the same request in another form. */
#include "tests/support/body_make.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "core/attention/trace.h"
#include "server/text/base64.h"

enum { ROOM = 1 << 16 };

/* Numbers as bytes. */
struct data {
  unsigned char bytes[ROOM];
  size_t size;
};

static void put(struct data *d, const void *bytes, size_t size) {
  assert_true(d->size + size <= ROOM);
  memcpy(d->bytes + d->size, bytes, size);
  d->size += size;
}

/* Only numbers that have the type: nothing is rounded. */
static void put_number(struct data *d, const char *dtype, double value) {
  const float single = (float)value;
  uint32_t bits;
  memcpy(&bits, &single, sizeof bits);
  if (strcmp(dtype, "F32") == 0) put(d, &single, sizeof single);
  if (strcmp(dtype, "F64") == 0) put(d, &value, sizeof value);
  if (strcmp(dtype, "BF16") == 0) put(d, (char *)&bits + 2, 2);
  if (strcmp(dtype, "F16") == 0) {
    uint32_t exponent = bits >> 23 & 255;
    uint16_t half = (uint16_t)(bits >> 16 & 0x8000);
    if (exponent) half |= (uint16_t)((exponent - 112) << 10 | (bits >> 13 & 0x3ff));
    put(d, &half, sizeof half);
  }
  const int32_t narrow = (int32_t)value;
  const int64_t wide = narrow;
  const uint8_t flag = value != 0;
  if (strcmp(dtype, "I32") == 0) put(d, &narrow, sizeof narrow);
  if (strcmp(dtype, "I64") == 0) put(d, &wide, sizeof wide);
  if (strcmp(dtype, "BOOL") == 0 || strcmp(dtype, "U8") == 0) put(d, &flag, sizeof flag);
}

static void put_all(struct data *d, const char *dtype, const json_t *value) {
  size_t i;
  json_t *element;
  if (json_is_array(value)) {
    json_array_foreach(value, i, element) put_all(d, dtype, element);
  } else {
    put_number(d, dtype, json_is_boolean(value) ? json_is_true(value) : json_number_value(value));
  }
}

static json_t *shape_of(const json_t *value) {
  json_t *shape = json_array();
  for (; json_is_array(value); value = json_array_get(value, 0))
    json_array_append_new(shape, json_integer((json_int_t)json_array_size(value)));
  return shape;
}

static bool is_float_field(const char *name) {
  static const char *const names[] = {"queries", "keys",      "values",
                                      "bias",    "head_mask", "gradients"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(names[i], name) == 0) return true;
  return false;
}

static bool is_integer_field(const char *name) {
  return strcmp(name, "valid_lens") == 0 || strcmp(name, "segments") == 0 ||
         strcmp(name, "causal_offset") == 0;
}

/* --- safetensors --- */

static struct body_made body_of(const char *header, const void *data, size_t size) {
  const uint64_t length = strlen(header);
  struct body_made b = {.size = sizeof length + length + size};
  b.bytes = malloc(b.size);
  assert_non_null(b.bytes);
  memcpy(b.bytes, &length, sizeof length);
  memcpy(b.bytes + sizeof length, header, length);
  if (size) memcpy(b.bytes + sizeof length + length, data, size);
  return b;
}

struct body_made body_raw(const char *header, size_t data_size) {
  void *zeros = calloc(1, data_size + 1);
  assert_non_null(zeros);
  struct body_made b = body_of(header, zeros, data_size);
  free(zeros);
  return b;
}

struct body_made body_safetensors(const char *text, const struct body_types *types) {
  json_t *request = json_loads(text, 0, NULL), *header = json_object(), *metadata = json_object();
  struct data *data = calloc(1, sizeof *data);
  assert_non_null(data);
  const char *name;
  json_t *value;
  json_object_foreach(request, name, value) {
    const char *dtype = is_float_field(name)        ? types->floats
                        : is_integer_field(name)    ? types->integers
                        : strcmp(name, "mask") == 0 ? types->flags
                                                    : NULL;
    if (json_is_null(value)) continue;
    if (!dtype || json_is_string(value)) {
      char *dumped = json_dumps(value, JSON_ENCODE_ANY);
      json_object_set_new(metadata, name, json_string(dumped));
      free(dumped);
      continue;
    }
    const size_t begin = data->size;
    put_all(data, dtype, value);
    json_object_set_new(header, name,
                        json_pack("{s:s,s:o,s:[I,I]}", "dtype", dtype, "shape", shape_of(value),
                                  "data_offsets", (json_int_t)begin, (json_int_t)data->size));
  }
  json_object_set_new(header, "__metadata__", metadata);
  char *dumped = json_dumps(header, JSON_COMPACT);
  struct body_made b = body_of(dumped, data->bytes, data->size);
  free(dumped);
  free(data);
  json_decref(header);
  json_decref(request);
  return b;
}

/* --- base64 --- */

static json_t *as_base64(const json_t *value, const char *dtype) {
  struct data *d = calloc(1, sizeof *d);
  assert_non_null(d);
  put_all(d, dtype, value);
  char *text = malloc(base64_length(d->size) + BASE64_WRITE_MARGIN);
  assert_non_null(text);
  const size_t length = (size_t)(base64_write(text, d->bytes, d->size) - text);
  json_t *object = json_pack("{s:s#,s:s,s:o}", "base64", text, (int)length, "dtype", dtype, "shape",
                             shape_of(value));
  free(text);
  free(d);
  return object;
}

static bool is_ragged(const json_t *value) {
  bool ragged = false;
  size_t i;
  json_t *element, *first = json_array_get(value, 0);
  json_array_foreach(value, i, element) {
    json_t *a = shape_of(first), *b = shape_of(element);
    ragged |= !json_equal(a, b);
    json_decref(a);
    json_decref(b);
  }
  return ragged;
}

struct body_made body_base64(const char *text, const char *dtype, bool lists) {
  json_t *request = json_loads(text, 0, NULL), *made = json_object();
  const char *name;
  json_t *value;
  json_object_foreach(request, name, value) {
    json_t *shape = shape_of(value);
    const bool deep = json_array_size(shape) > 2;
    json_decref(shape);
    if (!is_float_field(name)) {
      json_object_set(made, name, value);
    } else if (is_ragged(value) || (lists && deep)) {
      json_t *list = json_array(), *element;
      size_t i;
      json_array_foreach(value, i, element) json_array_append_new(list, as_base64(element, dtype));
      json_object_set_new(made, name, list);
    } else {
      json_object_set_new(made, name, as_base64(value, dtype));
    }
  }
  struct body_made b = {.bytes = json_dumps(made, JSON_COMPACT)};
  b.size = strlen(b.bytes);
  json_decref(made);
  json_decref(request);
  return b;
}

void body_free(struct body_made *b) {
  free(b->bytes);
  b->bytes = NULL;
}

/* --- the same? --- */

static void same_array(const void *a, const void *b, size_t size, const char *what) {
  if (!a != !b) fail_msg("%s: only one has it", what);
  if (a && size && memcmp(a, b, size) != 0) fail_msg("%s differ", what);
}

static void same_items(const struct layer_run *a, const struct layer_run *b) {
  assert_int_equal(a->geometry.items, b->geometry.items);
  assert_int_equal(a->geometry.q_rows, b->geometry.q_rows);
  assert_int_equal(a->geometry.k_rows, b->geometry.k_rows);
  if (a->geometry.items)
    assert_memory_equal(a->geometry.item, b->geometry.item,
                        a->geometry.items * sizeof *a->geometry.item);
}

void body_assert_same(const struct attention_request *x, const struct attention_request *y,
                      const struct model *m) {
  const struct layer_run *a = &x->asked, *b = &y->asked;
  const struct layer_shape *s = &m->shape;
  same_items(a, b);
  size_t segments = 0, mask = 0, bias = 0;
  for (size_t i = 0; i < a->geometry.items; i++) {
    const struct item *item = &a->geometry.item[i];
    const size_t grid = item->q * item->k;
    segments += item->segments;
    mask = item->mask_at + (a->geometry.mask_per_head ? s->heads : 1) * grid;
    bias = item->bias_at + (a->geometry.bias_per_head ? s->heads : 1) * grid;
  }
  same_array(a->call.queries, b->call.queries, a->geometry.q_rows * s->query_size * sizeof(float),
             "queries");
  same_array(a->call.keys, b->call.keys, a->geometry.k_rows * s->key_size * sizeof(float), "keys");
  same_array(a->call.values, b->call.values, a->geometry.k_rows * s->value_size * sizeof(float),
             "values");
  same_array(a->call.gradients, b->call.gradients,
             a->geometry.q_rows * s->output_size * sizeof(float), "gradients");
  same_array(a->geometry.lens, b->geometry.lens, a->geometry.q_rows * sizeof *a->geometry.lens,
             "valid_lens");
  same_array(a->geometry.mask, b->geometry.mask, mask, "mask");
  same_array(a->geometry.bias, b->geometry.bias, bias * sizeof(float), "bias");
  same_array(a->call.head_mask, b->call.head_mask, s->heads * sizeof(float), "head_mask");
  same_array(a->geometry.segment_end, b->geometry.segment_end,
             segments * sizeof *a->geometry.segment_end, "segments");
  assert_int_equal(a->geometry.mask_per_head, b->geometry.mask_per_head);
  assert_int_equal(a->geometry.bias_per_head, b->geometry.bias_per_head);
  assert_int_equal(a->geometry.causal, b->geometry.causal);
  assert_int_equal(a->geometry.window_left, b->geometry.window_left);
  assert_int_equal(a->geometry.window_right, b->geometry.window_right);
  assert_int_equal(a->call.uniform_rows, b->call.uniform_rows);
  assert_int_equal(a->call.select, b->call.select);
  assert_int_equal(a->call.seed, b->call.seed);
  assert_int_equal(a->call.want, b->call.want);
  assert_int_equal(a->call.want_pointers, b->call.want_pointers);
  assert_int_equal(a->call.want_measures, b->call.want_measures);
  assert_int_equal(a->call.trace != NULL, b->call.trace != NULL);
  if (a->call.trace)
    same_array(a->call.trace, b->call.trace, offsetof(struct trace, keys), "request of a trace");
  assert_int_equal(x->unbatched, y->unbatched);
  assert_int_equal(x->rectangular, y->rectangular);
  assert_int_equal(x->base64, y->base64);
}
