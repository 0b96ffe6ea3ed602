/* test_answer_forms: answers as safetensors, as base64 and as v2 wants them, read back by readers
 * of their own. */
#include <stdio.h>

#include <jansson.h>

#include "core/attention/trace.h"
#include "server/text/base64.h"
#include "tests/support/answered.h"

/* Says whether the items agree, as the check does. */
static void settle(struct answered *a) {
  a->request.rectangular = true;
  for (size_t i = 1; i < a->request.asked.geometry.items; i++)
    if (a->item[i].q != a->item[0].q || a->item[i].k != a->item[0].k)
      a->request.rectangular = false;
}

/* Batches of every kind: items, rows, and as many segments in each. */
static const struct batch {
  size_t items, rows[4][2], segments[4];
  bool unbatched;
} batches[] = {
    {1, {{2, 3}}, {2}, false},
    {1, {{2, 3}}, {2}, true},
    {3, {{2, 4}, {2, 4}, {2, 4}}, {3, 3, 3}, false},
    {3, {{5, 1}, {5, 1}, {5, 1}}, {1, 1, 1}, false},
    {0, {{0, 0}}, {0}, false},
    {2, {{0, 3}, {0, 3}}, {2, 2}, false},
    {2, {{3, 0}, {3, 0}}, {0, 0}, false},
    {1, {{0, 0}}, {0}, true},
    {1, {{700, 300}}, {7}, false}, /* some pieces */
    {4, {{130, 257}, {130, 257}, {130, 257}, {130, 257}}, {5, 5, 5, 5}, false},
    /* those that follow have no form as safetensors */
    {3, {{2, 4}, {2, 4}, {2, 4}}, {3, 1, 3}, false},
    {3, {{2, 4}, {1, 4}, {0, 0}}, {3, 3, 0}, false},
    {4, {{3, 1}, {3, 2}, {3, 0}, {500, 400}}, {1, 2, 0, 9}, false},
};
enum { BATCHES = sizeof batches / sizeof *batches, RECTANGLES = BATCHES - 3 };

static void make_batch(struct answered *a, const struct batch *b, enum weights want,
                       bool segments) {
  make(a, b->items, b->rows, want);
  if (segments) add_segments(a, b->segments);
  a->request.unbatched = b->unbatched;
  settle(a);
}

/* --- the arrays that are expected --- */

enum { OUTPUTS, WEIGHTS, SEGMENT_WEIGHTS, POINTERS, ARRAYS };

static const char *const NAME[ARRAYS] = {"outputs", "attention_weights", "segment_weights",
                                         "pointers"};

struct expected {
  bool there;
  size_t rank, dim[4];
  const void *data; /* of 4 bytes each */
  size_t count;
};

static bool has(const struct layer_run *c, int array) {
  return array == OUTPUTS           ? true
         : array == WEIGHTS         ? c->call.want != WEIGHTS_NONE
         : array == SEGMENT_WEIGHTS ? c->call.want == WEIGHTS_PER_HEAD && c->geometry.segment_end
                                    : c->call.want_pointers;
}

/* Of one item. */
static struct expected expect_item(const struct answered *a, int array, size_t i) {
  const struct layer_run *c = &a->request.asked;
  const struct item *item = &c->geometry.item[i];
  const bool per_head = array == WEIGHTS ? c->call.want == WEIGHTS_PER_HEAD : array != OUTPUTS;
  struct expected x = {.there = has(c, array)};
  if (!x.there) return x;
  if (per_head) x.dim[x.rank++] = HEADS;
  x.dim[x.rank++] = item->q;
  if (array == OUTPUTS) x.dim[x.rank++] = OUTPUT;
  if (array == WEIGHTS) x.dim[x.rank++] = item->k;
  if (array == SEGMENT_WEIGHTS) x.dim[x.rank++] = item->segments;
  x.count = 1;
  for (size_t k = 0; k < x.rank; k++) x.count *= x.dim[k];
  x.data = array == OUTPUTS   ? (const void *)(c->call.outputs + item->q_row * OUTPUT)
           : array == WEIGHTS ? (const void *)(c->call.weights + c->call.weights_at[i])
           : array == SEGMENT_WEIGHTS
               ? (const void *)(c->call.segment_weights + c->call.segment_weights_at[i])
               : (const void *)(c->call.pointers + HEADS * item->q_row);
  return x;
}

/* Of the batch, whose items agree. */
static struct expected expect(const struct answered *a, int array) {
  static struct item none;
  struct answered empty = *a;
  if (a->request.asked.geometry.items == 0) empty.request.asked.geometry.item = &none;
  struct expected x = expect_item(&empty, array, 0);
  if (!x.there || a->request.unbatched) return x;
  memmove(x.dim + 1, x.dim, x.rank * sizeof *x.dim);
  x.dim[0] = a->request.asked.geometry.items;
  x.rank++;
  x.count *= x.dim[0];
  return x;
}

static void assert_shape(const json_t *shape, const struct expected *x) {
  assert_true(json_is_array(shape));
  assert_int_equal(json_array_size(shape), x->rank);
  for (size_t i = 0; i < x->rank; i++)
    assert_int_equal(json_integer_value(json_array_get(shape, i)), x->dim[i]);
}

static void assert_bytes(const void *bytes, const struct expected *x) {
  if (x->count) assert_memory_equal(bytes, x->data, x->count * 4);
}

static void assert_few_pieces(const struct answer *answer) {
  assert_in_range(answer->pieces, 1, ANSWER_PIECES_MAX);
  for (size_t i = 0; i < answer->pieces; i++) assert_true(answer->piece[i].iov_len > 0);
}

/* --- safetensors --- */

/* The tensor has this place in the data, which follow each other. */
static void assert_tensor(const json_t *header, const char *data, int array,
                          const struct expected *x, size_t *at) {
  const json_t *tensor = json_object_get(header, NAME[array]);
  const size_t bytes = x->count * (array == POINTERS ? 8 : 4);
  assert_int_equal(json_object_size(tensor), 3);
  assert_string_equal(json_string_value(json_object_get(tensor, "dtype")),
                      array == POINTERS ? "I64" : "F32");
  assert_shape(json_object_get(tensor, "shape"), x);
  const json_t *offsets = json_object_get(tensor, "data_offsets");
  assert_int_equal(json_array_size(offsets), 2);
  assert_int_equal(json_integer_value(json_array_get(offsets, 0)), *at);
  assert_int_equal(json_integer_value(json_array_get(offsets, 1)), *at + bytes);
  if (array != POINTERS) assert_bytes(data + *at, x);
  for (size_t i = 0; array == POINTERS && i < x->count; i++) {
    int64_t pointer;
    memcpy(&pointer, data + *at + i * 8, sizeof pointer);
    assert_int_equal(pointer, ((const int32_t *)x->data)[i]);
  }
  *at += bytes;
}

static void assert_safetensors(const struct answered *a, const char *bytes, size_t size) {
  uint64_t length;
  assert_true(size >= sizeof length);
  memcpy(&length, bytes, sizeof length);
  assert_true(length <= size - sizeof length);
  assert_int_equal(length % 8, 0);
  assert_int_equal(bytes[8], '{');
  json_t *header = json_loadb(bytes + 8, length, JSON_REJECT_DUPLICATES, NULL);
  assert_non_null(header);
  const json_t *metadata = json_object_get(header, "__metadata__");
  assert_int_equal(json_object_size(metadata), 1);
  assert_string_equal(json_string_value(json_object_get(metadata, "model")), "demo");
  const int order[ARRAYS] = {POINTERS, OUTPUTS, WEIGHTS, SEGMENT_WEIGHTS};
  size_t at = 0, tensors = 0;
  for (size_t i = 0; i < ARRAYS; i++) {
    const struct expected x = expect(a, order[i]);
    if (!x.there) continue;
    assert_tensor(header, bytes + 8 + length, order[i], &x, &at);
    tensors++;
  }
  assert_int_equal(json_object_size(header), tensors + 1);
  assert_int_equal(at, size - 8 - length);
  json_decref(header);
}

static void safetensors_read_back(void **state) {
  (void)state;
  for (size_t i = 0; i < RECTANGLES; i++)
    for (unsigned n = 0; n < 12; n++) {
      struct answered a;
      make_batch(&a, &batches[i], (enum weights)(n % 3), n / 3 % 2);
      if (n / 6) add_pointers(&a);
      assert_true(attention_request_has_binary(&a.request));
      struct answer answer;
      size_t size;
      char *bytes = answer_of(&a, ANSWER_SAFETENSORS, &model, &answer, &size);
      assert_int_equal(answer.form, ANSWER_SAFETENSORS);
      assert_int_equal(answer.json_bytes, 0);
      assert_safetensors(&a, bytes, size);
      assert_few_pieces(&answer);
      assert_in_range(answer.pieces, 1, 5);
      free(bytes);
      arena_free(&a.arena);
    }
}

static void safetensors_to_the_letter(void **state) {
  (void)state;
  static const char header[] =
      "{\"__metadata__\":{\"model\":\"demo\"},"
      "\"outputs\":{\"dtype\":\"F32\",\"shape\":[1,1,3],\"data_offsets\":[0,12]}}       ";
  struct answered a;
  make_batch(&a, &(struct batch){1, {{1, 2}}, {0}, false}, WEIGHTS_NONE, false);
  struct answer answer;
  size_t size;
  char *bytes = answer_of(&a, ANSWER_SAFETENSORS, &model, &answer, &size);
  const uint64_t length = sizeof header - 1;
  assert_int_equal(size, 8 + length + 12);
  assert_memory_equal(bytes, &length, 8);
  assert_memory_equal(bytes + 8, header, length);
  assert_memory_equal(bytes + 8 + length, a.request.asked.call.outputs, 12);
  free(bytes);
  arena_free(&a.arena);
}

static void floats_are_sent_from_where_they_are(void **state) {
  (void)state;
  struct answered a;
  make_batch(&a, &batches[8], WEIGHTS_PER_HEAD, false);
  const size_t before = a.arena.bytes;
  struct answer answer;
  size_t size;
  free(answer_of(&a, ANSWER_SAFETENSORS, &model, &answer, &size));
  assert_int_equal(answer.pieces, 3);
  assert_ptr_equal(answer.piece[1].iov_base, a.request.asked.call.outputs);
  assert_ptr_equal(answer.piece[2].iov_base, a.request.asked.call.weights);
  assert_true(a.arena.bytes - before <= 64 * 1024);
  arena_free(&a.arena);
}

/* Of many pointers there are pieces, in what the call leaves where it is enough. */
static void many_pointers_are_converted_in_pieces(void **state) {
  (void)state;
  enum { LEFT = 300 * 1024 };
  _Alignas(64) static char left[LEFT];
  for (size_t rows = 40000; rows <= 4500000; rows += 4460000) {
    struct answered a;
    make_batch(&a, &(struct batch){1, {{rows, 0}}, {0}, true}, WEIGHTS_NONE, false);
    add_pointers(&a);
    spare_add(&a.request.asked.call.left, left, LEFT);
    struct answer answer;
    size_t size;
    char *bytes = answer_of(&a, ANSWER_SAFETENSORS, &model, &answer, &size);
    assert_safetensors(&a, bytes, size);
    assert_few_pieces(&answer);
    assert_in_range(answer.pieces, 5, 132);
    const char *first = answer.piece[1].iov_base;
    if (rows == 40000) assert_true(first >= left && first < left + LEFT);
    free(bytes);
    arena_free(&a.arena);
  }
}

static void what_has_no_form_as_safetensors(void **state) {
  (void)state;
  struct answered a;
  for (size_t i = RECTANGLES; i < BATCHES; i++)
    for (enum weights want = WEIGHTS_NONE; want <= WEIGHTS_AVERAGE; want++) {
      make_batch(&a, &batches[i], want, true);
      /* Segments that differ are nothing to an answer without their weights. */
      const bool asked = i > RECTANGLES || want == WEIGHTS_PER_HEAD;
      assert_int_equal(attention_request_has_binary(&a.request), !asked);
      arena_free(&a.arena);
    }
  make_batch(&a, &batches[0], WEIGHTS_NONE, false);
  measure(&a, false, true);
  assert_false(attention_request_has_binary(&a.request));
  arena_free(&a.arena);
  struct trace trace = {0};
  make_batch(&a, &batches[0], WEIGHTS_NONE, false);
  a.request.asked.call.trace = &trace;
  assert_false(attention_request_has_binary(&a.request));
  arena_free(&a.arena);
}

/* --- base64 --- */

/* {"dtype":"F32","shape":[...],"base64":"..."} */
static void assert_object(const json_t *object, const struct expected *x) {
  assert_int_equal(json_object_size(object), 3);
  assert_string_equal(json_string_value(json_object_get(object, "dtype")), "F32");
  assert_shape(json_object_get(object, "shape"), x);
  const json_t *string = json_object_get(object, "base64");
  const char *text = json_string_value(string);
  const size_t length = json_string_length(string), size = x->count * 4;
  assert_int_equal(length, base64_length(size));
  unsigned char *bytes = malloc(size + BASE64_READ_MARGIN);
  assert_non_null(bytes);
  const size_t taken = base64_read(text, length, bytes);
  assert_int_equal(taken, size / 3 * 4);
  if (size % 3) assert_int_equal(base64_read_last(text + taken, bytes + size / 3 * 3), size % 3);
  assert_bytes(bytes, x);
  free(bytes);
}

static void assert_member(const struct answered *a, const json_t *body, int array) {
  const json_t *member = json_object_get(body, NAME[array]);
  const struct layer_run *c = &a->request.asked;
  if (!has(c, array)) {
    assert_null(member);
    return;
  }
  bool whole = a->request.rectangular;
  for (size_t i = 1; array == SEGMENT_WEIGHTS && i < c->geometry.items; i++)
    whole = whole && c->geometry.item[i].segments == c->geometry.item[0].segments;
  if (whole) {
    const struct expected x = expect(a, array);
    assert_object(member, &x);
    return;
  }
  assert_true(json_is_array(member));
  assert_int_equal(json_array_size(member), c->geometry.items);
  for (size_t i = 0; i < c->geometry.items; i++) {
    const struct expected x = expect_item(a, array, i);
    assert_object(json_array_get(member, i), &x);
  }
}

static void base64_reads_back(void **state) {
  (void)state;
  for (size_t i = 0; i < BATCHES; i++)
    for (unsigned n = 0; n < 6; n++) {
      struct answered a;
      make_batch(&a, &batches[i], (enum weights)(n % 3), n / 3);
      add_pointers(&a);
      a.request.base64 = true;
      struct answer answer;
      size_t size;
      char *text = answer_of(&a, ANSWER_JSON, &model, &answer, &size);
      json_t *body = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
      assert_non_null(body);
      assert_string_equal(json_string_value(json_object_get(body, "model")), "demo");
      for (int array = OUTPUTS; array <= SEGMENT_WEIGHTS; array++) assert_member(&a, body, array);
      const json_t *pointers = json_object_get(body, "pointers"); /* integers as ever */
      assert_int_equal(json_array_size(pointers), batches[i].unbatched ? HEADS : batches[i].items);
      assert_few_pieces(&answer);
      json_decref(body);
      free(text);
      arena_free(&a.arena);
    }
}

static void assert_json(struct answered *a, enum answer_form form, const char *want) {
  struct answer answer;
  size_t size;
  char *text = answer_of(a, form, &model, &answer, &size);
  assert_string_equal(text, want);
  free(text);
  arena_free(&a->arena);
}

static void base64_to_the_letter(void **state) {
  (void)state;
  struct answered a;
  make_batch(&a, &(struct batch){1, {{1, 2}}, {0}, false}, WEIGHTS_AVERAGE, false);
  add_pointers(&a);
  a.request.base64 = true;
  assert_json(&a, ANSWER_JSON,
              "{\"model\":\"demo\",\"outputs\":{\"dtype\":\"F32\",\"shape\":[1,1,3],"
              "\"base64\":\"ACB6xAAYesQAEHrE\"},\"attention_weights\":{\"dtype\":\"F32\","
              "\"shape\":[1,1,2],\"base64\":\"AAAAPgAAgD4=\"},\"pointers\":[[[-1],[0]]]}");
  make_batch(&a, &(struct batch){2, {{1, 2}, {0, 1}}, {0}, false}, WEIGHTS_PER_HEAD, false);
  a.request.base64 = true;
  assert_json(&a, ANSWER_JSON,
              "{\"model\":\"demo\",\"outputs\":[{\"dtype\":\"F32\",\"shape\":[1,3],"
              "\"base64\":\"ACB6xAAYesQAEHrE\"},{\"dtype\":\"F32\",\"shape\":[0,3],"
              "\"base64\":\"\"}],\"attention_weights\":[{\"dtype\":\"F32\","
              "\"shape\":[2,1,2],\"base64\":\"AAAAPgAAgD4AAMA+AAAAPw==\"},{\"dtype\":\"F32\","
              "\"shape\":[2,0,1],\"base64\":\"\"}]}");
  make_batch(&a, &batches[4], WEIGHTS_PER_HEAD, false);
  a.request.base64 = true;
  assert_json(&a, ANSWER_JSON,
              "{\"model\":\"demo\",\"outputs\":{\"dtype\":\"F32\",\"shape\":[0,0,3],"
              "\"base64\":\"\"},\"attention_weights\":{\"dtype\":\"F32\",\"shape\":[0,2,0,0],"
              "\"base64\":\"\"}}");
}

/* The measures stay numbers; the weights beside them do not. */
static void measures_beside_base64(void **state) {
  (void)state;
  struct answered a;
  make_batch(&a, &(struct batch){1, {{1, 2}}, {0}, true}, WEIGHTS_AVERAGE, false);
  measure(&a, false, true);
  a.request.base64 = true;
  assert_json(&a, ANSWER_JSON,
              "{\"model\":\"demo\",\"rows\":512,\"heads\":["
              "{\"confidence\":0.5,\"entropy\":0.25,\"distance\":1e+10,\"norm\":3,"
              "\"share\":0.75,\"delta\":0.33333334},"
              "{\"confidence\":1,\"entropy\":0,\"distance\":0,\"norm\":0,"
              "\"share\":0,\"delta\":2}],"
              "\"divergence\":[[0,0.1],[0.1,0]],\"ranking\":[1,0],"
              "\"attention_weights\":{\"dtype\":\"F32\",\"shape\":[1,2],"
              "\"base64\":\"AAAAPgAAgD4=\"}}");
}

/* Pieces of base64 are larger, as it takes less time; those of a large answer are not too many. */
static void pieces_of_base64(void **state) {
  (void)state;
  static const struct {
    struct batch batch;
    size_t least, most;
  } row[] = {{{1, {{500, 500}}, {0}, false}, 7, 10}, /* 501500 floats, 64 Ki to a piece */
             {{1, {{3100, 3100}}, {0}, false}, 200, ANSWER_PIECES_MAX},
             {{4, {{1, 1}, {2000, 500}, {0, 0}, {500, 2001}}, {0}, false}, 50, 80}};
  for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
    struct answered a;
    make_batch(&a, &row[i].batch, WEIGHTS_PER_HEAD, false);
    a.request.base64 = true;
    struct answer answer;
    size_t size;
    char *text = answer_of(&a, ANSWER_JSON, &model, &answer, &size);
    assert_in_range(answer.pieces, row[i].least, row[i].most);
    json_t *body = json_loads(text, 0, NULL);
    assert_non_null(body);
    for (int array = OUTPUTS; array <= WEIGHTS; array++) assert_member(&a, body, array);
    json_decref(body);
    free(text);
    arena_free(&a.arena);
  }
}

/* Each of very many items has a step of its own. */
static void base64_of_many_items(void **state) {
  (void)state;
  enum { MANY = 20000 };
  struct answered a;
  make(&a, 0, NULL, WEIGHTS_NONE);
  struct layer_run *c = &a.request.asked;
  c->geometry.item = arena_alloc(&a.arena, MANY, sizeof *c->geometry.item, &a.error);
  assert_non_null(c->geometry.item);
  for (size_t i = 0; i < MANY; i++) {
    c->geometry.item[i] = (struct item){.q = i % 3, .q_row = c->geometry.q_rows};
    c->geometry.q_rows += i % 3;
  }
  c->geometry.items = MANY;
  c->call.outputs = numbers(&a, c->geometry.q_rows * OUTPUT, 1);
  a.request.base64 = true;
  struct answer answer;
  size_t size;
  char *text = answer_of(&a, ANSWER_JSON, &model, &answer, &size);
  assert_in_range(answer.pieces, 4, ANSWER_PIECES_MAX);
  json_t *body = json_loads(text, 0, NULL);
  assert_non_null(body);
  assert_member(&a, body, OUTPUTS);
  json_decref(body);
  free(text);
  arena_free(&a.arena);
}

/* --- v2 --- */

static void ask_v2(struct answered *a, size_t outputs, bool first_is_weights, unsigned binary) {
  a->request.v2.outputs = outputs;
  for (size_t i = 0; i < outputs; i++) {
    a->request.v2.output[i].which = (i == 0) == first_is_weights;
    a->request.v2.output[i].binary = binary >> i & 1;
  }
}

static void v2_to_the_letter(void **state) {
  (void)state;
  struct answered a;
  make_batch(&a, &batches[0], WEIGHTS_NONE, false);
  ask_v2(&a, 1, false, 0);
  a.request.v2.id = "\"a\\u0022b\" and more";
  a.request.v2.id_length = 10;
  assert_json(&a, ANSWER_V2,
              "{\"model_name\":\"demo\",\"model_version\":\"1\",\"id\":\"a\\u0022b\","
              "\"outputs\":[{\"name\":\"outputs\",\"datatype\":\"FP32\",\"shape\":[1,2,3],"
              "\"data\":[-1000.5,-1000.375,-1000.25,-1000.125,-1000,-999.875]}]}");
  make_batch(&a, &(struct batch){2, {{1, 1}, {1, 1}}, {0}, false}, WEIGHTS_PER_HEAD, false);
  ask_v2(&a, 2, true, 0);
  assert_json(&a, ANSWER_V2,
              "{\"model_name\":\"demo\",\"model_version\":\"1\",\"outputs\":["
              "{\"name\":\"attention_weights\",\"datatype\":\"FP32\",\"shape\":[2,2,1,1],"
              "\"data\":[0.125,0.25,0.375,0.5]},"
              "{\"name\":\"outputs\",\"datatype\":\"FP32\",\"shape\":[2,1,3],"
              "\"data\":[-1000.5,-1000.375,-1000.25,-1000.125,-1000,-999.875]}]}");
  make_batch(&a, &batches[4], WEIGHTS_NONE, false);
  ask_v2(&a, 1, false, 0);
  assert_json(&a, ANSWER_V2,
              "{\"model_name\":\"demo\",\"model_version\":\"1\",\"outputs\":["
              "{\"name\":\"outputs\",\"datatype\":\"FP32\",\"shape\":[0,0,3],\"data\":[]}]}");
  make_batch(&a, &(struct batch){1, {{1, 1}}, {0}, false}, WEIGHTS_NONE, false);
  ask_v2(&a, 1, false, 1);
  memcpy(a.request.asked.call.outputs, "twelve bytes", 12);
  assert_json(&a, ANSWER_V2,
              "{\"model_name\":\"demo\",\"model_version\":\"1\",\"outputs\":["
              "{\"name\":\"outputs\",\"datatype\":\"FP32\",\"shape\":[1,1,3],"
              "\"parameters\":{\"binary_data_size\":12}}]}twelve bytes");
}

static void assert_v2_output(const struct answered *a, const json_t *output, size_t i,
                             const char **behind) {
  const int array = a->request.v2.output[i].which ? WEIGHTS : OUTPUTS;
  const struct expected x = expect(a, array);
  assert_int_equal(json_object_size(output), 4);
  assert_string_equal(json_string_value(json_object_get(output, "name")), NAME[array]);
  assert_string_equal(json_string_value(json_object_get(output, "datatype")), "FP32");
  assert_shape(json_object_get(output, "shape"), &x);
  if (a->request.v2.output[i].binary) {
    const json_t *parameters = json_object_get(output, "parameters");
    assert_int_equal(json_object_size(parameters), 1);
    assert_int_equal(json_integer_value(json_object_get(parameters, "binary_data_size")),
                     x.count * 4);
    assert_bytes(*behind, &x);
    *behind += x.count * 4;
    return;
  }
  const json_t *data = json_object_get(output, "data");
  assert_true(json_is_array(data));
  assert_int_equal(json_array_size(data), x.count);
  for (size_t k = 0; k < x.count; k++) {
    const float read = (float)json_number_value(json_array_get(data, k));
    assert_memory_equal(&read, (const float *)x.data + k, sizeof read);
  }
}

static void v2_reads_back(void **state) {
  (void)state;
  for (size_t i = 0; i < RECTANGLES; i++)
    for (unsigned n = 0; n < 24; n++) {
      if (batches[i].unbatched) continue; /* v2 has batches alone */
      const size_t outputs = 1 + n % 2;
      struct answered a;
      make_batch(&a, &batches[i], n / 12 ? WEIGHTS_AVERAGE : WEIGHTS_PER_HEAD, false);
      ask_v2(&a, outputs, n / 2 % 2, n / 4 % 3 + (n / 4 % 3 == 2));
      if (outputs == 1 && a.request.v2.output[0].binary && n % 3) a.request.v2.id = "\"\"";
      a.request.v2.id_length = a.request.v2.id ? 2 : 0;
      struct answer answer;
      size_t size;
      char *bytes = answer_of(&a, ANSWER_V2, &model, &answer, &size);
      const bool binary = a.request.v2.output[0].binary || a.request.v2.output[1].binary;
      const size_t length = answer.json_bytes;
      if (!binary) assert_int_equal(length, 0);
      json_t *body = json_loadb(bytes, binary ? length : size, JSON_REJECT_DUPLICATES, NULL);
      assert_non_null(body);
      assert_int_equal(json_object_size(body), a.request.v2.id ? 4 : 3);
      assert_string_equal(json_string_value(json_object_get(body, "model_name")), "demo");
      assert_string_equal(json_string_value(json_object_get(body, "model_version")), "1");
      const json_t *list = json_object_get(body, "outputs");
      assert_int_equal(json_array_size(list), outputs);
      const char *behind = bytes + (binary ? length : size);
      for (size_t k = 0; k < outputs; k++)
        assert_v2_output(&a, json_array_get(list, k), k, &behind);
      assert_ptr_equal(behind, bytes + size);
      assert_few_pieces(&answer);
      json_decref(body);
      free(bytes);
      arena_free(&a.arena);
    }
}

/* --- all of them --- */

/* A request whose answer has all there is in this form; the last one is JSON with base64. */
enum { FORMS = ANSWER_V2 + 2 };

static enum answer_form make_form(struct answered *a, unsigned n, const struct batch *b) {
  make_batch(a, b, WEIGHTS_PER_HEAD, n != ANSWER_V2);
  if (n != ANSWER_V2) add_pointers(a);
  if (n == ANSWER_V2) ask_v2(a, 2, false, 2);
  a->request.base64 = n > ANSWER_V2;
  return n > ANSWER_V2 ? ANSWER_JSON : (enum answer_form)n;
}

/* The shape that the request said is the answer's, in every form that says shapes. */
static void empty_batches_keep_their_shape(void **state) {
  (void)state;
  for (unsigned n = 1; n < FORMS; n++) {
    struct answered a;
    const enum answer_form form = make_form(&a, n, &batches[4]);
    a.request.none = (struct item){.q = 5, .k = 7, .segments = 2};
    struct answer answer;
    size_t size;
    char *bytes = answer_of(&a, form, &model, &answer, &size);
    const char *text = form == ANSWER_SAFETENSORS ? bytes + 8 : bytes;
    assert_non_null(strstr(text, "\"shape\":[0,5,3]"));
    assert_non_null(strstr(text, "\"shape\":[0,2,5,7]"));
    if (form != ANSWER_V2) assert_non_null(strstr(text, "\"shape\":[0,2,5,2]"));
    free(bytes);
    arena_free(&a.arena);
  }
}

/* The limit is on an upper bound: exact where there is nothing but bytes, near where text is as
 * long as it may be. */
static void limits_of_all_forms(void **state) {
  (void)state;
  for (unsigned n = 0; n < FORMS; n++)
    for (size_t i = 8; i < RECTANGLES; i++) {
      struct answered a;
      const enum answer_form form = make_form(&a, n, &batches[i]);
      struct layer_run *c = &a.request.asked;
      for (size_t k = 0; k < c->geometry.q_rows * OUTPUT; k++)
        c->call.outputs[k] = -1.00000016e-35f;
      for (size_t k = 0; k < c->call.weight_count; k++) c->call.weights[k] = -1.00000016e-35f;
      for (size_t k = 0; k < c->call.segment_weight_count; k++)
        c->call.segment_weights[k] = -1.00000016e-35f;
      for (size_t k = 0; k < HEADS * c->geometry.q_rows; k++)
        if (c->call.pointers) c->call.pointers[k] = INT32_MAX;
      struct answer answer;
      size_t size;
      free(answer_of(&a, form, &model, &answer, &size));
      struct body_limits limits = {.max_answer_bytes = size - 1};
      assert_int_equal(attention_answer_plan(&answer, form, &model, &a.request, &limits, &a.arena,
                                             &a.error),
                       STATUS_TOO_LARGE);
      assert_string_equal(a.error.limit, "max_answer_bytes");
      assert_int_equal(answer.pieces, 0);
      limits.max_answer_bytes += form == ANSWER_SAFETENSORS ? 1 : size / 50;
      a.error = (struct error){0};
      assert_int_equal(attention_answer_plan(&answer, form, &model, &a.request, &limits, &a.arena,
                                             &a.error),
                       STATUS_OK);
      arena_free(&a.arena);
    }
}

/* Wherever memory ends, nothing is planned, and nothing is kept. */
static void memory_that_ends_anywhere(void **state) {
  (void)state;
  for (unsigned n = 0; n < FORMS; n++) {
    struct answered a;
    const enum answer_form form = make_form(&a, n, &batches[8]);
    size_t failures = 0;
    bool fits = false;
    for (size_t limit = 0; !fits; limit += 1024) {
      struct budget budget;
      struct arena arena;
      struct answer answer;
      budget_init(&budget, limit);
      arena_init(&arena, &budget);
      a.error = (struct error){0};
      fits = !attention_answer_plan(&answer, form, &model, &a.request, &wide, &arena, &a.error);
      if (!fits) {
        assert_string_equal(a.error.limit, "memory_budget_bytes");
        assert_int_equal(answer.pieces, 0);
        failures++;
      }
      arena_free(&arena);
      assert_int_equal(atomic_load(&budget.used), 0);
    }
    assert_true(failures > 2);
    arena_free(&a.arena);
  }
}

/* Other workers write the neighbours meanwhile: what a piece touches behind its text is its own. */
static void a_piece_leaves_its_neighbours_alone(void **state) {
  (void)state;
  for (unsigned n = 0; n < FORMS; n++)
    for (size_t i = 9; i < BATCHES; i++) {
      struct answered a;
      if (i >= RECTANGLES && (n == ANSWER_SAFETENSORS || n == ANSWER_V2)) continue;
      const enum answer_form form = make_form(&a, n, &batches[i]);
      struct answer answer;
      size_t size;
      char *want = answer_of(&a, form, &model, &answer, &size), *at = want;
      /* Each piece is written again, and all of them are as they were. */
      for (size_t k = 0; k < answer.pieces; k++) {
        answer_write_piece(&answer, k);
        for (size_t j = 0; j < answer.pieces; j++) {
          if (j == 0) at = want;
          assert_memory_equal(answer.piece[j].iov_base, at, answer.piece[j].iov_len);
          at += answer.piece[j].iov_len;
        }
      }
      free(want);
      arena_free(&a.arena);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(safetensors_read_back),
      cmocka_unit_test(safetensors_to_the_letter),
      cmocka_unit_test(floats_are_sent_from_where_they_are),
      cmocka_unit_test(many_pointers_are_converted_in_pieces),
      cmocka_unit_test(what_has_no_form_as_safetensors),
      cmocka_unit_test(base64_reads_back),
      cmocka_unit_test(base64_to_the_letter),
      cmocka_unit_test(measures_beside_base64),
      cmocka_unit_test(pieces_of_base64),
      cmocka_unit_test(base64_of_many_items),
      cmocka_unit_test(v2_to_the_letter),
      cmocka_unit_test(v2_reads_back),
      cmocka_unit_test(limits_of_all_forms),
      cmocka_unit_test(memory_that_ends_anywhere),
      cmocka_unit_test(a_piece_leaves_its_neighbours_alone),
      cmocka_unit_test(empty_batches_keep_their_shape),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
