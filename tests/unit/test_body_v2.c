/* test_body_v2: requests of the Open Inference Protocol into the core's call, and every way to
 * get them wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/attention/attention_body.h"
#include "tests/support/body_read.h"
#include "tests/support/number_draw.h"

static const struct model model = {
    .name = "m",
    .shape = {.heads = 2, .query_size = 2, .key_size = 3, .value_size = 1, .output_size = 2},
    .causal = true};

/* Keys and values may be left out. */
static const struct model equal = {
    .name = "equal",
    .shape = {.heads = 2, .query_size = 2, .key_size = 2, .value_size = 2, .output_size = 2}};

/* A body: its JSON, and bytes behind it. `said` is what Inference-Header-Content-Length says. */
struct body_made {
  const char *bytes;
  size_t size;
  uint64_t said;
};

static struct body_made text_of(const char *json) {
  return (struct body_made){json, strlen(json), BODY_UNKNOWN};
}

/* Reads a body: a first chunk of `cut` bytes, then chunks of `step`. */
static void read_with(struct body_result *r, const struct model *m, const struct body_made *b,
                      size_t cut, size_t step, struct budget *budget) {
  struct body_terms terms = body_read_terms(ASK_ATTENTION, BODY_V2);
  terms.body_bytes = b->size;
  terms.json_bytes = b->said;
  memset(r, 0, sizeof *r);
  arena_init(&r->arena, budget);
  body_read(r, m, &terms, &body_read_wide, b->bytes, b->size, cut, step);
}

static void read_body(struct body_result *r, const struct model *m, const struct body_made *b) {
  read_with(r, m, b, 0, SIZE_MAX, NULL);
}

static void accept(struct body_result *r, const struct model *m, const struct body_made *b) {
  read_body(r, m, b);
  if (r->error.status)
    fail_msg("%.*s\nrefused: %s (%s, %zu)", (int)b->size, b->bytes, r->error.detail,
             r->error.pointer, r->error.offset);
}

static void refuse(const struct model *m, const struct body_made *b, enum status status,
                   const char *detail) {
  struct body_result r;
  read_body(&r, m, b);
  if (r.error.status != status || !strstr(r.error.detail, detail))
    fail_msg("%.*s\nshould say \"%s\" (%d), and says \"%s\" (%d)", (int)b->size, b->bytes, detail,
             status, r.error.detail, r.error.status);
  arena_free(&r.arena);
}

/* --- what is accepted --- */

static const float queries[] = {1, 2, 3, 4, 5, 6.5f, 7, 8};
static const float keys[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, -1, -2, -3, 0.5f, 0, 1e-3f, 1, 1, 1};
static const float values[] = {1, 2, 3, 4, 5, 6};
static const int32_t lens[] = {3, 0, 2, 1};
static const uint8_t mask[] = {1, 0, 1, 0, 1, 1, 1, 1, 1, 0, 0, 1};

#define QUERIES_JSON \
  "{\"name\":\"queries\",\"shape\":[2,2,2],\"datatype\":\"FP32\",\"data\":[1,2,3,4,5,6.5,7,8]}"
#define KEYS_JSON                                                        \
  "{\"name\":\"keys\",\"shape\":[2,3,3],\"datatype\":\"FP32\",\"data\":" \
  "[[[1,2,3],[4,5,6],[7,8,9]],[[-1,-2,-3],[0.5,0,1e-3],[1,1,1]]]}"
#define VALUES_JSON \
  "{\"name\":\"values\",\"shape\":[2,3,1],\"datatype\":\"FP32\",\"data\":[1,2,3,4,5,6]}"
#define LENS_JSON \
  "{\"name\":\"valid_lens\",\"shape\":[2,2],\"datatype\":\"INT32\",\"data\":[[3,0],[2,1]]}"
#define MASK_JSON                                                                                  \
  "{\"name\":\"mask\",\"shape\":[2,2,3],\"datatype\":\"BOOL\",\"data\":[[[true,false,1],[0,1,1]]," \
  "[[1,1,1],[0,0,1]]]}"

static const char full[] =
    " { \"id\" : \"a\\u00e9\\\"b\" , \"unknown\":[{\"x\":[1e5,-0.5,null]},\"\\n\\\\\"],"
    "\"par\\u0061meters\":{\"causal\":false,\"causal_offset\":[-1,7],\"select\":\"soft\","
    "\"seed\":12,\"empty_rows\":\"uniform\",\"timeout\":2500000,\"priority\":3,"
    "\"binary_data_output\":true,\"sequence_id\":{}},\n"
    "\"inputs\":[" KEYS_JSON " , " QUERIES_JSON "," VALUES_JSON "," LENS_JSON "," MASK_JSON "],"
    "\"outputs\":[{\"name\":\"attention_weights\",\"parameters\":{\"binary_data\":false,"
    "\"classification\":0}},{\"parameters\":null,\"name\":\"outputs\"}]} \r\n";

/* The arrays above, and what `full` says. */
static void check_inputs(const struct layer_run *c) {
  assert_int_equal(c->geometry.items, 2);
  assert_int_equal(c->geometry.q_rows, 4);
  assert_int_equal(c->geometry.k_rows, 6);
  assert_memory_equal(c->call.queries, queries, sizeof queries);
  assert_memory_equal(c->call.keys, keys, sizeof keys);
  assert_memory_equal(c->call.values, values, sizeof values);
  assert_memory_equal(c->geometry.lens, lens, sizeof lens);
  assert_memory_equal(c->geometry.mask, mask, sizeof mask);
  assert_int_equal(c->geometry.item[1].mask_at, 6);
}

static void check_full(const struct attention_request *d) {
  const struct layer_run *c = &d->asked;
  const struct body_v2_asked *v2 = &d->v2;
  check_inputs(c);
  assert_false(d->unbatched);
  assert_true(d->rectangular);
  assert_false(c->geometry.causal);
  assert_int_equal(c->geometry.item[0].offset, -1);
  assert_int_equal(c->geometry.item[1].offset, 7);
  assert_int_equal(c->call.select, SELECT_SOFT);
  assert_int_equal(c->call.seed, 12);
  assert_true(c->call.uniform_rows);
  assert_int_equal(c->call.want, WEIGHTS_PER_HEAD);
  assert_int_equal(v2->id_length, 12);
  assert_memory_equal(v2->id, "\"a\\u00e9\\\"b\"", 12);
  assert_int_equal(v2->timeout_us, 2500000);
  assert_int_equal(v2->outputs, 2);
  assert_true(v2->output[0].which == 1 && !v2->output[0].binary);
  assert_true(v2->output[1].which == 0 && v2->output[1].binary);
}

/* Every input but the keys is binary; the mask, of 12 bytes, leaves the next ones unaligned only
 * with a byte more before it: so valid_lens are INT64, and the blocks begin behind an odd text. */
static const char mixed_json[] =
    "{\"inputs\":[{\"name\":\"mask\",\"shape\":[2,2,3],\"datatype\":\"BOOL\","
    "\"parameters\":{\"binary_data_size\":12,\"other\":[]}}," KEYS_JSON ","
    "{\"parameters\":{\"binary_data_size\":32},\"datatype\":\"FP32\",\"shape\":[2,2,2],"
    "\"name\":\"queries\"},"
    "{\"name\":\"valid_lens\",\"shape\":[2,2],\"datatype\":\"INT64\","
    "\"parameters\":{\"binary_data_size\":32}},"
    "{\"name\":\"values\",\"shape\":[2,3,1],\"datatype\":\"FP32\","
    "\"parameters\":{\"binary_data_size\":24},\"data\":null}]} ";
enum { MIXED_BLOCKS = 12 + 32 + 32 + 24 };

static char mixed_bytes[sizeof mixed_json + MIXED_BLOCKS + 8];

static struct body_made mixed(void) {
  const int64_t wide_lens[] = {3, 0, 2, 1};
  char *at = mixed_bytes;
  memcpy(at, mixed_json, sizeof mixed_json - 1);
  at += sizeof mixed_json - 1;
  memcpy(at, mask, 12);
  memcpy(at + 12, queries, 32);
  memcpy(at + 44, wide_lens, 32);
  memcpy(at + 76, values, 24);
  return (struct body_made){mixed_bytes, sizeof mixed_json - 1 + MIXED_BLOCKS,
                            sizeof mixed_json - 1};
}

static void check_mixed(const struct attention_request *d) {
  check_inputs(&d->asked);
  assert_true(d->asked.geometry.causal);
  assert_int_equal(d->asked.call.want, WEIGHTS_NONE);
  assert_null(d->v2.id);
  assert_int_equal(d->v2.outputs, 1);
  assert_false(d->v2.output[0].which || d->v2.output[0].binary);
  assert_int_equal(d->v2.timeout_us, 0);
}

static void every_part_cut_at_every_byte(void **state) {
  (void)state;
  const struct body_made bodies[] = {text_of(full), mixed()};
  for (size_t i = 0; i < 2; i++)
    for (size_t cut = 0; cut <= bodies[i].size; cut++) {
      struct body_result r;
      read_with(&r, &model, &bodies[i], cut, cut == 0 ? 1 : SIZE_MAX, NULL);
      if (r.error.status) fail_msg("cut at %zu: %s", cut, r.error.detail);
      i ? check_mixed(&r.request) : check_full(&r.request);
      arena_free(&r.arena);
    }
}

static void keys_of_an_input_in_any_order(void **state) {
  (void)state;
  static const char *const part[] = {"\"name\":\"queries\"", "\"shape\":[1,2,2]",
                                     "\"datatype\":\"FP32\"", "\"data\":[[[1,2],[3,4]]]",
                                     "\"x\":{\"data\":[[],{}]}"};
  const float expected[] = {1, 2, 3, 4};
  int orders = 0;
  for (unsigned n = 0; n < 3125; n++) {
    unsigned order[5], used = 0, rest = n;
    for (unsigned i = 0; i < 5; i++, rest /= 5) used |= 1u << (order[i] = rest % 5);
    if (used != 31) continue;
    char json[256];
    struct body_result r;
    snprintf(json, sizeof json, "{\"inputs\":[{%s,%s,%s,%s,%s}]}", part[order[0]], part[order[1]],
             part[order[2]], part[order[3]], part[order[4]]);
    const struct body_made b = text_of(json);
    for (size_t step = 1; step < 4; step++) {
      read_with(&r, &equal, &b, 0, step, NULL);
      if (r.error.status) fail_msg("%s\n%s", json, r.error.detail);
      assert_int_equal(r.request.asked.geometry.q_rows, 2);
      assert_memory_equal(r.request.asked.call.queries, expected, sizeof expected);
      arena_free(&r.arena);
    }
    orders++;
  }
  assert_int_equal(orders, 120);
}

#define ONE(shape, data)                                                                        \
  "{\"inputs\":[{\"name\":\"queries\",\"datatype\":\"FP32\",\"shape\":" shape ",\"data\":" data \
  "}]}"
#define LATE(shape, data)                                                                       \
  "{\"inputs\":[{\"data\":" data ",\"name\":\"queries\",\"datatype\":\"FP32\",\"shape\":" shape \
  "}]}"

static void shapes_without_elements(void **state) {
  (void)state;
  static const struct {
    const char *json;
    size_t items, rows;
  } list[] = {
      {ONE("[0,0,2]", "[]"), 0, 0},
      {ONE("[0,3,2]", "[]"), 0, 0},
      {ONE("[2,0,2]", "[]"), 2, 0},
      {ONE("[2,0,2]", "[[],[]]"), 2, 0},
      {ONE("[2,0,2]", " [ [ ] , [ ] ] "), 2, 0},
      {LATE("[2,0,2]", "[[],[]]"), 2, 0},
      {ONE("[1,1,2]", "[1,2]"), 1, 1},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    const struct body_made b = text_of(list[i].json);
    struct body_result r;
    accept(&r, &equal, &b);
    assert_false(r.request.unbatched);
    assert_int_equal(r.request.asked.geometry.items, list[i].items);
    assert_int_equal(r.request.asked.geometry.q_rows, list[i].rows);
    arena_free(&r.arena);
  }
}

static void blocks_of_no_bytes(void **state) {
  (void)state;
  static const char json[] =
      "{\"inputs\":[{\"name\":\"queries\",\"datatype\":\"FP32\",\"shape\":[1,0,2],"
      "\"parameters\":{\"binary_data_size\":0}}]}";
  const struct body_made b = {json, strlen(json), strlen(json)};
  struct body_result r;
  accept(&r, &equal, &b);
  assert_int_equal(r.request.asked.geometry.items, 1);
  assert_int_equal(r.request.asked.geometry.q_rows, 0);
  arena_free(&r.arena);
}

/* What libraries write that know no better: null for what is not there. */
static void null_is_nothing(void **state) {
  (void)state;
  const struct body_made b =
      text_of("{\"id\":null,\"parameters\":null,\"outputs\":null,\"inputs\":[{\"parameters\":null,"
              "\"name\":\"queries\",\"datatype\":\"FP32\",\"shape\":[1,1,2],\"data\":[1,2]}]}");
  struct body_result r;
  accept(&r, &equal, &b);
  assert_null(r.request.v2.id);
  assert_int_equal(r.request.v2.outputs, 1);
  arena_free(&r.arena);
  static const char *const parameters[] = {"causal", "causal_offset",     "select",
                                           "seed",   "empty_rows",        "timeout",
                                           "other",  "binary_data_output"};
  for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++)
    for (size_t step = 1; step < 100; step += 98) {
      char json[400];
      snprintf(json, sizeof json, "{\"parameters\":{\"%s\":null},\"inputs\":[%s]}", parameters[i],
               QUERIES_JSON);
      const struct body_made one = text_of(json);
      read_with(&r, &equal, &one, 0, step, NULL);
      if (r.error.status) fail_msg("%s: %s", json, r.error.detail);
      assert_false(r.request.asked.geometry.causal || r.request.asked.call.uniform_rows);
      assert_int_equal(r.request.asked.geometry.item[0].offset, 0);
      arena_free(&r.arena);
    }
}

static void outputs_and_their_form(void **state) {
  (void)state;
  static const struct {
    const char *members;
    size_t outputs;
    bool weights, binary; /* of the first */
  } list[] = {
      {"\"outputs\":[]", 1, false, false},
      {"\"parameters\":{\"binary_data_output\":true}", 1, false, true},
      {"\"outputs\":[{\"name\":\"attention_weights\"}]", 1, true, false},
      {"\"outputs\":[{\"name\":\"outputs\",\"parameters\":{\"binary_data\":true}}]", 1, false,
       true},
      {"\"outputs\":[{\"name\":\"outputs\",\"parameters\":{\"binary_data\":false}}],"
       "\"parameters\":{\"binary_data_output\":true}",
       1, false, false},
      {"\"outputs\":[{\"name\":\"attention_weights\"},{\"name\":\"outputs\"}],"
       "\"parameters\":{\"binary_data_output\":true}",
       2, true, true},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    char json[512];
    struct body_result r;
    snprintf(json, sizeof json, "{%s,\"inputs\":[%s]}", list[i].members,
             "{\"name\":\"queries\",\"datatype\":\"FP32\",\"shape\":[1,1,2],\"data\":[1,2]}");
    const struct body_made b = text_of(json);
    accept(&r, &equal, &b);
    assert_int_equal(r.request.v2.outputs, list[i].outputs);
    assert_int_equal(r.request.v2.output[0].which, list[i].weights);
    assert_int_equal(r.request.v2.output[0].binary, list[i].binary);
    assert_int_equal(r.request.asked.call.want, list[i].weights ? WEIGHTS_PER_HEAD : WEIGHTS_NONE);
    arena_free(&r.arena);
  }
}

static void parameters_are_the_native_fields(void **state) {
  (void)state;
  const struct body_made b =
      text_of("{\"parameters\":{\"causal\":true,\"causal_offset\":\"end\",\"select\":\"sample\","
              "\"seed\":9007199254740991},\"inputs\":[" QUERIES_JSON "]}");
  struct body_result r;
  accept(&r, &equal, &b);
  assert_true(r.request.asked.geometry.causal);
  assert_int_equal(r.request.asked.call.select, SELECT_SAMPLE);
  assert_int_equal(r.request.asked.call.seed, 9007199254740991);
  assert_int_equal(r.request.asked.geometry.item[0].offset, 0);
  arena_free(&r.arena);
}

/* --- what is refused --- */

#define IN(members) "{\"inputs\":[{" members "}]}"
#define FP32(name)  "\"name\":\"" name "\",\"datatype\":\"FP32\","

static void wrong_requests(void **state) {
  (void)state;
  static const struct {
    const char *json, *detail;
  } list[] = {
      {"[]", "must be a JSON object"},
      {"{}", "\"queries\" is missing"},
      {"{\"inputs\":[]}", "\"queries\" is missing"},
      {"{\"inputs\":{}}", "\"inputs\" must be an array"},
      {"{\"inputs\":[1]}", "each of \"inputs\" must be an object"},
      {"{\"outputs\":[\"outputs\"]}", "each of \"outputs\" must be an object"},
      {"{\"parameters\":[]}", "\"parameters\" must be an object"},
      {"{\"id\":1}", "\"id\" must be a string"},
      {"{\"id\":\"a\",\"id\":\"b\"}", "duplicate key \"id\""},
      {"{\"parameters\":{\"timeout\":-1}}", "\"timeout\" must be a non-negative integer"},
      {"{\"parameters\":{\"timeout\":\"1\"}}", "\"timeout\" must be a non-negative integer"},
      {"{\"parameters\":{\"binary_data_output\":1}}", "must be true or false"},
      {"{\"parameters\":{\"causal\":1}}", "causal must be true or false"},
      {"{\"parameters\":{\"causal_offset\":\"begin\"}}", "causal_offset must be"},
      {"{\"parameters\":{\"causal_offset\":1.5}}", "expected an integer"},
      {"{\"parameters\":{\"select\":\"softly\"}}", "select must be"},
      {"{\"parameters\":{\"seed\":-1}}", "seed must be"},
      {"{\"parameters\":{\"empty_rows\":\"one\"}}", "empty_rows must be"},
      {IN(""), "the input's \"name\" is missing"},
      {IN("\"name\":\"querys\""), "unknown input \"querys\""},
      {IN("\"name\":\"bias\""), "unknown input \"bias\""},
      {IN("\"name\":5"), "\"name\" must be a string"},
      {IN("\"name\":\"queries\""), "\"datatype\" is missing"},
      {IN("\"name\":\"queries\",\"datatype\":\"FP32\""), "\"shape\" is missing"},
      {IN(FP32("queries") "\"shape\":[1,1,2]"), "\"data\" or the"},
      {IN(FP32("queries") "\"shape\":[1,1,2],\"parameters\":{\"shared_memory_region\":\"x\"}"),
       "\"data\" or the"},
      {IN(FP32("queries") "\"shape\":[1,1,2],\"data\":[1,2],"
                          "\"parameters\":{\"binary_data_size\":8}"),
       "\"data\" and"},
      {IN(FP32("queries") "\"shape\":[1,1,2],\"parameters\":{\"binary_data_size\":8}"),
       "without the header Inference-Header-Content-Length"},
      {IN("\"name\":\"queries\",\"datatype\":\"FP16\",\"shape\":[1,1,2],\"data\":[1,2]"),
       "the datatype must be FP32"},
      {IN("\"name\":\"valid_lens\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[1]"),
       "the datatype must be INT32 or INT64"},
      {IN("\"name\":\"mask\",\"datatype\":\"UINT8\",\"shape\":[1,1],\"data\":[1]"),
       "the datatype must be BOOL"},
      {IN("\"name\":\"mask\",\"datatype\":\"BOOL\",\"shape\":[1,1],\"data\":[2]"),
       "expected true, false, 1 or 0"},
      {IN("\"name\":\"valid_lens\",\"datatype\":\"INT64\",\"shape\":[1],\"data\":[2147483648]"),
       "the number exceeds the 32-bit integer range"},
      {IN("\"name\":\"valid_lens\",\"datatype\":\"INT64\",\"shape\":[1],\"data\":[1.0]"),
       "a number with a fraction"},
      {ONE("[1,1,2]", "{}"), "\"data\" must be an array"},
      {ONE("[1,1,2]", "\"AAAA\""), "\"data\" must be an array"},
      {ONE("[]", "[]"), "\"shape\" must be an array of 1 to 4"},
      {ONE("3", "[]"), "\"shape\" must be an array"},
      {ONE("[1,1,1,1,2]", "[]"), "\"shape\" must be an array of 1 to 4"},
      {ONE("[1,-1,2]", "[]"), "non-negative"},
      {ONE("[1,1.0,2]", "[]"), "non-negative"},
      {ONE("[1,\"1\",2]", "[]"), "non-negative"},
      {ONE("[1,9223372036854775808,2]", "[]"), "out of range"},
      {ONE("[4,4611686018427387906,2]", "[1]"), "the shape is too large"},
      {ONE("[4,4611686018427387906]", "[1]"), "the shape has 2 dimensions"},
      {LATE("[4,4611686018427387906,2]", "[1]"), "the shape is too large"},
      {ONE("[2,2]", "[1,2,3,4]"), "the shape has 2 dimensions, expected 3"},
      {ONE("[1,1,3]", "[1,2,3]"), "the model's query_size"},
      {ONE("[1,2,2]", "[1,2,3]"), "the array has 3 elements, expected 4"},
      {ONE("[1,2,2]", "[1,2,3,4,5]"), "the array has 5 elements, expected 4"},
      {ONE("[1,2,2]", "[]"), "the array has 0 elements, expected 4"},
      {ONE("[1,0,2]", "[1]"), "the shape has no elements"},
      {ONE("[1,2,2]", "[[1,2],[3,4]]"), "dimensions, got 2"},
      {ONE("[1,2,2]", "[[[1,2]]]"), "dimension 1 of the data has length 1, but the shape says 2"},
      {ONE("[1,2,2]", "[[[1,2],[3,4]],[[1,2],[3,4]]]"),
       "dimension 0 of the data has length 2, but the shape says 1"},
      {ONE("[2,2,2]", "[[[1,2],[3,4]],[[1,2]]]"), "the array has 1 elements, expected 2"},
      {ONE("[2,2,2]", "[[[1,2],[3,4]],[[1,2],[3]]]"), "the array has 1 elements, expected 2"},
      {ONE("[2,2,2]", "[[[1,2],[3,4]],[5,6]]"), "expected an array, got a number"},
      {ONE("[1,2,2]", "[1,2,[3,4]]"), "expected a number, got an array"},
      {ONE("[1,1,2]", "[1,null]"), "got null"},
      {ONE("[1,1,2]", "[1,\"NaN\"]"), "got a string"},
      {ONE("[1,1,2]", "[1,1e39]"), "float32 range"},
      {LATE("[1,1,2]", "[1,1e39]"), "the number exceeds the float32 range"},
      {LATE("[1,1,2]", "[1,{}]"), "got an object"},
      {ONE("[2,0,2]", "[[]]"), "dimension 0 of the data has length 1, but the shape says 2"},
      {ONE("[1001,1,2]", "[1]"), "1001 items exceed the limit of 1000"},
      {"{\"inputs\":[" QUERIES_JSON "," QUERIES_JSON "]}", "duplicate input \"queries\""},
      {"{\"inputs\":[" QUERIES_JSON "," KEYS_JSON "]}", "the last dimension is 3"},
      {"{\"inputs\":[" QUERIES_JSON
       ",{\"name\":\"keys\",\"datatype\":\"FP32\",\"shape\":[1,1,2],\"data\":[1,2]}]}",
       "1 "},
      {"{\"inputs\":[" QUERIES_JSON "," LENS_JSON "," MASK_JSON
       ",{\"name\":\"keys\",\"datatype\":\"FP32\",\"shape\":[2,2,2],\"data\":[1,2,3,4,5,6,7,8]},"
       "{\"name\":\"values\",\"datatype\":\"FP32\",\"shape\":[2,2,2],\"data\":[1,2,3,4,5,6,7,8]},"
       "{\"name\":\"values\"}]}",
       "more than the 5 inputs"},
      {"{\"outputs\":[{}]}", "the output's \"name\" is missing"},
      {"{\"outputs\":[{\"name\":\"output\"}]}", "unknown output \"output\""},
      {"{\"outputs\":[{\"name\":\"outputs\"},{\"name\":\"outputs\"}]}",
       "duplicate output \"outputs\""},
      {"{\"outputs\":[{\"name\":\"outputs\"},{\"name\":\"attention_weights\"},{}]}",
       "more than the 2 outputs"},
      {"{\"outputs\":[{\"name\":\"outputs\",\"parameters\":{\"binary_data\":0}}]}",
       "\"binary_data\" must be true or false"},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    const struct body_made b = text_of(list[i].json);
    struct body_result r;
    read_body(&r, &equal, &b);
    const bool limit = r.error.status == STATUS_TOO_LARGE;
    arena_free(&r.arena);
    refuse(&equal, &b, limit ? STATUS_TOO_LARGE : STATUS_INVALID_REQUEST, list[i].detail);
  }
}

#define LENS(shape, data)                                                         \
  "{\"inputs\":[{\"name\":\"valid_lens\",\"datatype\":\"INT32\",\"shape\":" shape \
  ",\"data\":" data "}," QUERIES_JSON "]}"

/* A pointer is one into the body, whoever has found the failure. */
static void failures_say_where(void **state) {
  (void)state;
  static const struct {
    const char *json, *pointer, *detail;
  } list[] = {
      {"{\"id\":1}", "/id", "must be a string"},
      {"{\"inputs\":{}}", "/inputs", "an array"},
      {"{\"inputs\":[1]}", "/inputs", "an object"},
      {"{\"inputs\":[]}", "/inputs", "is missing"},
      {"{\"parameters\":{\"causal\":1}}", "/parameters/causal", "true or false"},
      {"{\"parameters\":{\"causal_offset\":\"x\"}}", "/parameters/causal_offset", "must be"},
      {"{\"parameters\":{\"causal_offset\":[0,\"\"]}}", "/parameters/causal_offset/1", "expected"},
      {"{\"parameters\":{\"causal_offset\":[0,1,2]},\"inputs\":[" QUERIES_JSON "]}",
       "/parameters/causal_offset", "3 offsets for 2 items"},
      {"{\"parameters\":{\"timeout\":-1}}", "/parameters/timeout", "non-negative"},
      {IN("\"name\":\"bias\""), "/inputs/0/name", "unknown input"},
      {IN(""), "/inputs/0", "\"name\" is missing"},
      {IN("\"shape\":1"), "/inputs/0/shape", "an array"},
      {IN("\"shape\":[1],\"shape\":[1]"), "/inputs/0/shape", "duplicate "},
      {IN("\"parameters\":{\"binary_data_size\":-1}"), "/inputs/0/parameters/binary_data_size",
       "non-negative"},
      {IN("\"name\":\"queries\",\"datatype\":\"BOOL\",\"shape\":[1,1,2],\"data\":[1,2]"),
       "/inputs/0/datatype", "FP32"},
      {"{\"outputs\":[{\"name\":\"outputs\"},{\"name\":\"x\"}]}", "/outputs/1/name", "unknown"},
      {"{\"outputs\":[{\"parameters\":{\"binary_data\":1}}]}", "/outputs/0/parameters/binary_data",
       "true or false"},
      {"{\"outputs\":[{}]}", "/outputs/0", "\"name\" is missing"},
      {"{\"outputs\":[{\"name\":\"outputs\"},{\"name\":\"attention_weights\"},{}]}", "/outputs",
       "more than"},
      {ONE("[1,1,3]", "[1,2,3]"), "/inputs/0/shape", "query_size"},
      {LATE("[1,1,3]", "[1,2,3]"), "/inputs/0/shape", "query_size"},
      {ONE("[1,1,2]", "{}"), "/inputs/0/data", "an array"},
      {ONE("[1,1,2]", "[1,null]"), "/inputs/0/data/1", "null"},
      {LATE("[1,1,2]", "[1,1e39]"), "/inputs/0/data/1", "float32"},
      {ONE("[1,2,2]", "[1,2,3]"), "/inputs/0/data", "has 3 elements, expected 4"},
      {ONE("[1,2,2]", "[[[1,2],[3,{}]]]"), "/inputs/0/data/0/1/1", "an object"},
      {ONE("[1,2,2]", "[[[1,2]]]"), "/inputs/0/data", "dimension 1"},
      {"{\"inputs\":[" QUERIES_JSON "," QUERIES_JSON "]}", "/inputs/1/name", "duplicate "},
      {"{\"inputs\":[" QUERIES_JSON
       ",{\"name\":\"queries\",\"datatype\":\"FP32\",\"shape\":[1,1,2],\"data\":[1,{}]}]}",
       "/inputs/1/data/1", "an object"},
      {LENS("[2]", "[1,3]"), "/inputs/0/data/1", "3"},
      {LENS("[2,2]", "[[1,1],[1,3]]"), "/inputs/0/data/1/1", "3"},
      {LENS("[2,2]", "[1,1,1,3]"), "/inputs/0", "at /1/1 of the array"},
      {LENS("[3]", "[1,1,1]"), "/inputs/0", "for 2 items"},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    for (size_t step = 1; step < 1000; step += 998) {
      const struct body_made b = text_of(list[i].json);
      struct body_result r;
      read_with(&r, &equal, &b, 0, step, NULL);
      if (r.error.status != STATUS_INVALID_REQUEST || !strstr(r.error.detail, list[i].detail) ||
          strcmp(r.error.pointer, list[i].pointer) != 0)
        fail_msg("%s\nis \"%s\" at \"%s\", not at \"%s\"", b.bytes, r.error.detail, r.error.pointer,
                 list[i].pointer);
      arena_free(&r.arena);
    }
  /* Neither have binary data a place in the JSON, nor has what is not there. */
  static const char json[] =
      "{\"inputs\":[{\"name\":\"mask\",\"datatype\":\"BOOL\",\"shape\":[1,1,2],"
      "\"parameters\":{\"binary_data_size\":2}},"
      "{\"name\":\"queries\",\"datatype\":\"FP32\",\"shape\":[1,1,2],\"data\":[1,2]}]}\1\2";
  struct body_made b = {json, sizeof json - 1, sizeof json - 3};
  struct body_result r;
  read_body(&r, &equal, &b);
  assert_string_equal(r.error.pointer, "/inputs/0");
  assert_string_equal(r.error.detail, "the byte of a flag must be 0 or 1, at /0/0/1 of the array");
  arena_free(&r.arena);
  b = text_of("{\"inputs\":[" QUERIES_JSON "]}");
  read_body(&r, &model, &b);
  assert_string_equal(r.error.pointer, "/inputs");
  assert_non_null(strstr(r.error.detail, "\"keys\""));
  arena_free(&r.arena);
}

static void text_that_is_no_json(void **state) {
  (void)state;
  static const struct {
    const char *json;
    size_t offset;
  } list[] = {
      {"", 0},
      {"\xef\xbb\xbf{}", 0},
      {"{\"x\" 1}", 5},
      {"{\"x\":1,}", 7},
      {"{\"x\":}", 5},
      {"{\"x\":+1}", 5},
      {"{\"x\":01}", 6},
      {"{\"x\":1.}", 7},
      {"{\"x\":nul}", 8},
      {"{\"x\":truth}", 8},
      {"{\"x\":[1,]}", 8},
      {"{\"x\":[1}}", 7},
      {"{\"x\":{\"y\":1]}", 11},
      {"{\"x\":{1:1}}", 6},
      {"{\"x\":{\"y\",1}}", 9},
      {"{\"x\":{\"y\":1,}}", 12},
      {"{\"x\":\"\\x\"}", 7},
      {"{\"x\":\"\\u00g0\"}", 10},
      {"{\"x\":\"a\nb\"}", 7},
      {"{\"x\":1", 6},
      {"{\"x\":1}}", 7},
      {"{\"x\":1} 2", 8},
      {"{,}", 1},
      {"{\"inputs\":[,]}", 11},
      {"{\"outputs\":[{\"name\":\"outputs\"}{}]}", 30},
      {"{\"id\":\"\xff\"}", 7},
      {"{\"x\":\"\xff\xfe\"}", 6},
      {"{\"\xff\":1}", 2},
      {"{\"x\":[\"\xed\xa0\x80\"]}", 8},
      {"{\"x\":\"\xc3\"}", 7},
      {"{\"x\":\"\\ud800\"}", 12},
      {"{\"\\udc00\":1}", 7},
      {"{\"inputs\":[{\"data\":[1,2,}]}", 24},
      {"{\"inputs\":[{\"data\":[1,", 22},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    for (size_t step = 1; step < 100; step += 33) {
      const struct body_made b = text_of(list[i].json);
      struct body_result r;
      read_with(&r, &equal, &b, 0, step, NULL);
      if (r.error.status != STATUS_INVALID_JSON || r.error.offset != list[i].offset)
        fail_msg("%s: %d at %zu: %s", list[i].json, r.error.status, r.error.offset, r.error.detail);
      arena_free(&r.arena);
    }
}

static void brackets_without_end(void **state) {
  (void)state;
  enum { DEEP = 100000 };
  static char json[DEEP + 16];
  static const char *const begins[] = {"{\"x\":", "{\"inputs\":[{\"data\":",
                                       "{\"parameters\":{\"seed\":"};
  for (size_t i = 0; i < 3; i++) {
    memset(json, '[', sizeof json);
    memcpy(json, begins[i], strlen(begins[i]));
    const struct body_made b = {json, sizeof json, BODY_UNKNOWN};
    refuse(&equal, &b, STATUS_INVALID_JSON, "nested too deep");
  }
}

static void long_names_and_values(void **state) {
  (void)state;
  enum { LONG = 5000, ID_MOST = 64 * 1024 };
  static char json[ID_MOST + LONG], id[ID_MOST];
  memset(id, 'x', sizeof id);
  struct body_result r;
  for (int length = ID_MOST - 2; length < ID_MOST; length++) {
    snprintf(json, sizeof json, "{\"id\":\"%.*s\",\"inputs\":[%s]}", length, id, QUERIES_JSON);
    struct body_made b = text_of(json);
    if (length > ID_MOST - 2) {
      refuse(&equal, &b, STATUS_INVALID_REQUEST, "\"id\" is longer than 65536 bytes");
      continue;
    }
    read_with(&r, &equal, &b, 0, 1000, NULL);
    assert_int_equal(r.error.status, STATUS_OK);
    assert_int_equal(r.request.v2.id_length, ID_MOST);
    assert_memory_equal(r.request.v2.id + 1, id, ID_MOST - 2);
    arena_free(&r.arena);
  }
  snprintf(json, sizeof json, "{\"parameters\":{\"select\":\"%.510s\"}}", id);
  struct body_made small = text_of(json);
  refuse(&equal, &small, STATUS_INVALID_REQUEST, "select must be");
  snprintf(json, sizeof json, "{\"parameters\":{\"select\":\"%.511s\"}}", id);
  small = text_of(json);
  refuse(&equal, &small, STATUS_INVALID_REQUEST, "\"select\" is longer than 512 bytes");
  int used = snprintf(json, sizeof json, "{\"");
  memset(json + used, 'n', LONG);
  snprintf(json + used + LONG, sizeof json - LONG - (size_t)used, "\":1,\"inputs\":[%s]}",
           QUERIES_JSON);
  struct body_made b = text_of(json);
  accept(&r, &equal, &b);
  arena_free(&r.arena);
}

/* Writes an input whose data, of `size` bytes of text, come first. Returns behind it. */
static char *put_early(char *at, const char *name, size_t size) {
  static const char numbers[] = "1,2]";
  at += sprintf(at, "{\"data\":[");
  memset(at, ' ', size - 1);
  at += size - 1;
  memcpy(at - strlen(numbers), numbers, strlen(numbers));
  return at + sprintf(at, ",\"name\":\"%s\",\"datatype\":\"FP32\",\"shape\":[1,1,2]}", name);
}

enum { KEPT_MOST = 1024 * 1024 };

/* What is kept is bounded for all inputs together, and what is read as it comes does not count. */
static void data_before_what_they_are(void **state) {
  (void)state;
  static char json[2 * KEPT_MOST];
  static const struct {
    size_t first, second;
    const char *pointer; /* of the refusal; NULL: there is none */
  } list[] = {
      {KEPT_MOST, 0, NULL},
      {KEPT_MOST + 1, 0, "/inputs/0/data"},
      {KEPT_MOST / 2, KEPT_MOST / 2, NULL},
      {KEPT_MOST / 2, KEPT_MOST / 2 + 1, "/inputs/1/data"},
      {KEPT_MOST, 10, "/inputs/1/data"},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    for (size_t step = 1000; step < 1 << 22; step <<= 11) {
      char *at = put_early(json + sprintf(json, "{\"inputs\":["), "queries", list[i].first);
      if (list[i].second)
        at = put_early(at + sprintf(at, ","), "keys", list[i].second);
      else
        at += sprintf(at, ",{" FP32("keys") "\"shape\":[1,1,2],\"data\":[1,2]}");
      sprintf(at, ",{" FP32("values") "\"shape\":[1,1,2],\"data\":[%500000s1,2]}]}", "");
      const struct body_made b = text_of(json);
      struct budget budget;
      struct body_result r;
      budget_init(&budget, 2 * KEPT_MOST);
      read_with(&r, &equal, &b, 0, step, &budget);
      if (!list[i].pointer) {
        if (r.error.status) fail_msg("%zu: %s", i, r.error.detail);
        assert_int_equal(r.request.asked.geometry.q_rows, 1);
        assert_true(r.request.asked.call.queries[0] == 1 && r.request.asked.call.queries[1] == 2);
      } else {
        assert_int_equal(r.error.status, STATUS_INVALID_REQUEST);
        assert_string_equal(r.error.pointer, list[i].pointer);
        assert_string_equal(
            r.error.detail,
            "more than 1048576 bytes of \"data\" come before it is known what they are: put "
            "\"name\", \"shape\" and \"datatype\" before \"data\"");
      }
      assert_int_equal(atomic_load(&budget.used), r.arena.bytes);
      arena_free(&r.arena);
      assert_int_equal(atomic_load(&budget.used), 0);
    }
}

/* The byte behind the bound is the last that is looked at: the value has not ended then. */
static void too_much_data_are_refused_at_once(void **state) {
  (void)state;
  static const char begin[] = "{\"inputs\":[{\"data\":";
  static char json[sizeof begin + KEPT_MOST];
  const size_t head = sizeof begin - 1;
  struct body_result r;
  memset(json, ' ', sizeof json);
  memcpy(json, begin, head);
  json[head] = '[';
  for (size_t more = 0; more < 2; more++) {
    const struct body_made b = {json, head + KEPT_MOST + more, BODY_UNKNOWN};
    read_body(&r, &equal, &b);
    assert_int_equal(r.error.status, more ? STATUS_INVALID_REQUEST : STATUS_INVALID_JSON);
    assert_non_null(strstr(r.error.detail, more ? "come before" : "unexpected end of the JSON"));
    arena_free(&r.arena);
  }
}

/* --- lengths --- */

static void blocks_must_be_as_long_as_they_say(void **state) {
  (void)state;
  struct body_made whole = mixed(), b = whole;
  struct body_result r;
  for (size_t size = 0; size < whole.size; size++) {
    b.size = size;
    read_body(&r, &model, &b);
    assert_true(r.error.status == STATUS_INVALID_REQUEST || r.error.status == STATUS_INVALID_JSON);
    arena_free(&r.arena);
  }
  b.size = whole.size - 1;
  refuse(&model, &b, STATUS_INVALID_REQUEST, "the body ends after 23 of the 24");
  b.size = whole.size + 1;
  refuse(&model, &b, STATUS_INVALID_REQUEST, "extra bytes after");
  /* The JSON ends elsewhere than it is said to; its last byte is a blank. */
  b = whole;
  b.said--;
  b.bytes = whole.bytes;
  refuse(&model, &b, STATUS_INVALID_REQUEST, "the byte of a flag must be 0 or 1");
  b.said--;
  refuse(&model, &b, STATUS_INVALID_JSON, "by its length in Inference-Header-Content-Length");
  b.said = whole.said + 1;
  refuse(&model, &b, STATUS_INVALID_JSON, "expected the end");
  b.said = whole.size + 1;
  refuse(&model, &b, STATUS_INVALID_REQUEST, "and the body has");
  b.said = UINT64_MAX - 1;
  refuse(&model, &b, STATUS_INVALID_REQUEST, "and the body has");
  b.said = 0;
  refuse(&model, &b, STATUS_INVALID_REQUEST, "must be described in JSON");
}

static void a_body_without_length_ends_too_early(void **state) {
  (void)state;
  struct body_terms terms = body_read_terms(ASK_ATTENTION, BODY_V2);
  struct body_result r = {0};
  const char *json = "{\"inputs\":[" QUERIES_JSON "]}";
  terms.json_bytes = 1000;
  body_read(&r, &equal, &terms, &body_read_wide, json, strlen(json), 0, SIZE_MAX);
  assert_int_equal(r.error.status, STATUS_INVALID_REQUEST);
  assert_non_null(strstr(r.error.detail, "is 1000, and the body has"));
  arena_free(&r.arena);
}

static void sizes_must_be_those_of_the_shape(void **state) {
  (void)state;
  static const struct {
    const char *shape, *size, *detail;
  } list[] = {
      {"[1,1,2]", "7", "\"binary_data_size\" is 7, but the shape needs 8 bytes"},
      {"[1,1,2]", "9", "but the shape needs 8 bytes"},
      {"[1,1,2]", "0", "but the shape needs 8 bytes"},
      {"[1,1,2]", "-8", "\"binary_data_size\" must be a non-negative integer"},
      {"[1,1,2]", "8.0", "\"binary_data_size\" must be a non-negative integer"},
      {"[1,1,2]", "\"8\"", "\"binary_data_size\" must be a non-negative integer"},
      {"[4,4611686018427387906,2]", "8", "the shape is too large"},
      {"[2,2305843009213693952,2]", "0", "the shape is too large"},
      {"[1,1099511627776,2]", "8796093022208", "the body ends after 8 of the 8796093022208 bytes"},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    char json[256];
    snprintf(json, sizeof json,
             "{\"inputs\":[{\"name\":\"queries\",\"datatype\":\"FP32\",\"shape\":%s,"
             "\"parameters\":{\"binary_data_size\":%s}}]}12345678",
             list[i].shape, list[i].size);
    const struct body_made b = {json, strlen(json), strlen(json) - 8};
    refuse(&equal, &b, STATUS_INVALID_REQUEST, list[i].detail);
  }
}

/* --- chance, and memory --- */

static void mutations(void **state) {
  (void)state;
  static const char soup[] = "[]{}\",:0123456789-.etrufalsn \\u\0\xff\x80";
  const struct body_made bodies[] = {text_of(full), mixed()};
  uint64_t seed = 1;
  unsigned accepted = 0;
  for (unsigned i = 0; i < 20000; i++) {
    const struct body_made *from = &bodies[i % 2];
    char bytes[4096];
    assert_true(from->size + 8 < sizeof bytes);
    struct body_made b = {bytes, from->size, from->said};
    memcpy(bytes, from->bytes, from->size);
    for (unsigned n = 1 + draw(&seed) % 3; n > 0; n--) {
      size_t at = draw(&seed) % b.size;
      char byte = draw(&seed) % 4 ? soup[draw(&seed) % (sizeof soup - 1)] : (char)draw(&seed);
      switch (draw(&seed) % 4) {
      case 0: /* a byte less */
        memmove(bytes + at, bytes + at + 1, b.size - at - 1);
        b.size--;
        if (at < b.said && b.said != BODY_UNKNOWN && draw(&seed) % 4) b.said--;
        break;
      case 1: /* one more */
        memmove(bytes + at + 1, bytes + at, b.size - at);
        bytes[at] = byte;
        b.size++;
        if (at < b.said && b.said != BODY_UNKNOWN && draw(&seed) % 4) b.said++;
        break;
      default:
        bytes[at] = byte;
      }
    }
    struct body_result whole, cut;
    read_body(&whole, &model, &b);
    read_with(&cut, &model, &b, 0, 1 + draw(&seed) % 40, NULL);
    assert_int_equal(whole.error.status, cut.error.status);
    assert_string_equal(whole.error.detail, cut.error.detail);
    assert_string_equal(whole.error.pointer, cut.error.pointer);
    assert_int_equal(whole.error.offset, cut.error.offset);
    assert_true(whole.error.status == STATUS_OK || whole.error.detail[0]);
    assert_true(whole.arena.bytes < 256 * 1024);
    accepted += whole.error.status == STATUS_OK;
    arena_free(&whole.arena);
    arena_free(&cut.arena);
  }
  assert_in_range(accepted, 100, 15000);
}

static void memory_runs_out_anywhere(void **state) {
  (void)state;
  static const char late[] =
      LATE("[1,4,2]", "[1,2,3,4,5,6,7,8]"); /* its text is kept, then its numbers */
  const struct body_made bodies[] = {text_of(full), mixed(), text_of(late)};
  for (size_t i = 0; i < 3; i++) {
    bool done = false;
    unsigned refused = 0;
    for (size_t limit = 0; !done; limit += 512) {
      struct budget budget;
      struct body_result r;
      budget_init(&budget, limit);
      read_with(&r, i < 2 ? &model : &equal, &bodies[i], 0, 50, &budget);
      done = r.error.status == STATUS_OK;
      if (!done) assert_string_equal(r.error.limit, "memory_budget_bytes");
      refused += !done;
      arena_free(&r.arena);
      assert_int_equal(atomic_load(&budget.used), 0);
      assert_true(limit < 1 << 20);
    }
    assert_true(refused > 2);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_part_cut_at_every_byte),
      cmocka_unit_test(keys_of_an_input_in_any_order),
      cmocka_unit_test(shapes_without_elements),
      cmocka_unit_test(blocks_of_no_bytes),
      cmocka_unit_test(null_is_nothing),
      cmocka_unit_test(outputs_and_their_form),
      cmocka_unit_test(parameters_are_the_native_fields),
      cmocka_unit_test(wrong_requests),
      cmocka_unit_test(failures_say_where),
      cmocka_unit_test(text_that_is_no_json),
      cmocka_unit_test(brackets_without_end),
      cmocka_unit_test(long_names_and_values),
      cmocka_unit_test(data_before_what_they_are),
      cmocka_unit_test(too_much_data_are_refused_at_once),
      cmocka_unit_test(blocks_must_be_as_long_as_they_say),
      cmocka_unit_test(a_body_without_length_ends_too_early),
      cmocka_unit_test(sizes_must_be_those_of_the_shape),
      cmocka_unit_test(mutations),
      cmocka_unit_test(memory_runs_out_anywhere),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
