/* test_body_safetensors: a request as safetensors is the same request, and every way to get it
 * wrong. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/attention/attention_body.h"
#include "tests/support/body_make.h"
#include "tests/support/body_read.h"

static const struct model unequal = {
    .name = "unequal",
    .shape = {.heads = 2, .query_size = 2, .key_size = 3, .value_size = 1, .output_size = 2},
    .causal = true};
static const struct model equal = {
    .name = "equal",
    .shape = {.heads = 2, .query_size = 2, .key_size = 2, .value_size = 2, .output_size = 2}};

static const struct body_types plain = {"F32", "I32", "BOOL"};

/* Together they have every field, in every form. */
static const struct request {
  enum body_ask ask;
  const char *text;
} requests[] = {
    {ASK_ATTENTION,
     "{\"queries\":[[[1,2],[3,4]],[[5,6.5],[-7,0.25]]],\"keys\":[[[1,2,3],[4,5,6],[7,8,9]],"
     "[[-1,-2,-3],[0.5,0,1],[2,3,4]]],\"values\":[[[1],[2],[3]],[[4],[5],[6]]],"
     "\"valid_lens\":[3,2],\"mask\":[[[true,false,true],[false,1,1]],[[0,1,0],[1,1,1]]],"
     "\"bias\":[[[[1,2,3],[4,5,6]],[[7,8,9],[10,11,12]]],[[[13,14,15],[1,2,3]],[[5,6,7],[8,9,0]]]],"
     "\"causal\":false,\"causal_offset\":[-1,7],\"window\":[3,-1],\"head_mask\":[1,0.25],"
     "\"select\":\"soft\",\"seed\":9007199254740991,\"empty_rows\":\"uniform\","
     "\"return_attention\":\"average\",\"return_pointers\":true,\"encoding_format\":\"base64\"}"},
    {ASK_ATTENTION,
     "{\"queries\":[[[1,2],[3,4]],[[5,6.5],[-7,0.25]]],\"keys\":[[[1,2,3]],[[-1,-2,-3]]],"
     "\"values\":[[[1]],[[4]]],\"valid_lens\":[[1,0],[0,1]],\"mask\":[[1],[0]],"
     "\"bias\":[[0.5],[-1]],\"causal_offset\":3,\"return_attention\":true,\"select\":\"hard\"}"},
    {ASK_HEADS, "{\"queries\":[[1,2],[3,4]],\"keys\":[[1,2,3],[4,5,6]],\"values\":[[1],[2]],"
                "\"valid_lens\":2,\"bias\":[[[1,2],[3,4]],[[5,6],[7,8]]],\"segments\":[0,1,1],"
                "\"causal_offset\":-2,\"gradients\":[[1,0.5],[-1,2]]}"},
    {ASK_ATTENTION, "{\"queries\":[[1,2],[3,4]],\"keys\":[[1,2,3],[4,5,6]],\"values\":[[1],[2]],"
                    "\"valid_lens\":[2,1],\"mask\":[[1,0],[0,1]],\"causal_offset\":\"end\"}"},
    {ASK_HEADS, "{\"queries\":[[[1,2]],[[3,4]]],\"keys\":[[[1,2,3]],[[4,5,6]]],"
                "\"values\":[[[1]],[[2]]],\"segments\":[[1,0],[0,1]],"
                "\"gradients\":[[[1,0.5]],[[-1,2]]],\"bias\":[[[4]],[[5]]]}"},
};
enum { REQUESTS = sizeof requests / sizeof *requests };

static void read_binary(struct body_result *r, const struct model *m, enum body_ask ask,
                        const struct body_made *b, size_t size, size_t cut, size_t piece) {
  const struct body_terms terms = body_read_terms(ask, BODY_SAFETENSORS);
  memset(r, 0, sizeof *r);
  body_read(r, m, &terms, &body_read_wide, b->bytes, size, cut, piece);
}

static void read_text(struct body_result *r, const struct model *m, enum body_ask ask,
                      const char *text) {
  const struct body_terms terms = body_read_terms(ask, BODY_JSON);
  memset(r, 0, sizeof *r);
  body_read(r, m, &terms, &body_read_wide, text, strlen(text), 0, SIZE_MAX);
  if (r->error.status) fail_msg("%s: %s (%s)", text, r->error.detail, r->error.pointer);
}

/* --- what is the same --- */

static void each_type_is_the_same_request(void **state) {
  (void)state;
  static const struct body_types types[] = {
      {"F32", "I32", "BOOL"}, {"F16", "I64", "U8"}, {"BF16", "I32", "U8"}, {"F64", "I64", "BOOL"}};
  for (size_t i = 0; i < REQUESTS; i++)
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
      const enum body_ask ask = requests[i].ask;
      struct body_result want, got;
      struct body_made b = body_safetensors(requests[i].text, &types[t]);
      read_text(&want, &unequal, ask, requests[i].text);
      for (size_t cut = 0; cut <= b.size; cut++) {
        read_binary(&got, &unequal, ask, &b, b.size, cut, b.size);
        if (got.error.status)
          fail_msg("%zu, cut at %zu: %s (%s)", i, cut, got.error.detail, got.error.pointer);
        body_assert_same(&want.request, &got.request, &unequal);
        arena_free(&got.arena);
      }
      read_binary(&got, &unequal, ask, &b, b.size, 0, 1);
      assert_int_equal(got.error.status, STATUS_OK);
      body_assert_same(&want.request, &got.request, &unequal);
      arena_free(&got.arena);
      arena_free(&want.arena);
      body_free(&b);
    }
}

static void shapes_without_numbers_are_what_they_say(void **state) {
  (void)state;
  static const struct {
    const char *header, *text; /* the same request as text, where one says the same */
    bool unbatched;
    size_t items, q, k;
  } all[] = {
      {"{\"queries\":{\"dtype\":\"F32\",\"shape\":[0,2],\"data_offsets\":[0,0]}}", NULL, true, 1, 0,
       0},
      {"{\"queries\":{\"dtype\":\"F16\",\"shape\":[0,7,2],\"data_offsets\":[0,0]}}",
       "{\"queries\":[]}", false, 0, 0, 0},
      {"{\"queries\":{\"dtype\":\"F32\",\"shape\":[2,0,2],\"data_offsets\":[0,0]},"
       "\"keys\":{\"dtype\":\"F32\",\"shape\":[2,0,2],\"data_offsets\":[0,0]},"
       "\"mask\":{\"dtype\":\"U8\",\"shape\":[2,0,0],\"data_offsets\":[0,0]},"
       "\"bias\":{\"dtype\":\"F32\",\"shape\":[2,2,0,0],\"data_offsets\":[0,0]},"
       "\"segments\":{\"dtype\":\"I64\",\"shape\":[2,0],\"data_offsets\":[0,0]},"
       "\"valid_lens\":{\"dtype\":\"I64\",\"shape\":[2,0],\"data_offsets\":[0,0]}}",
       "{\"queries\":[[],[]],\"keys\":[[],[]],\"mask\":[[],[]],\"bias\":[[[],[]],[[],[]]],"
       "\"segments\":[[],[]],\"valid_lens\":[[],[]]}",
       false, 2, 0, 0},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    struct body_result got, want;
    struct body_made b = body_raw(all[i].header, 0);
    read_binary(&got, &equal, ASK_ATTENTION, &b, b.size, 0, 7);
    if (got.error.status)
      fail_msg("%s: %s (%s)", all[i].header, got.error.detail, got.error.pointer);
    assert_int_equal(got.request.unbatched, all[i].unbatched);
    assert_int_equal(got.request.asked.geometry.items, all[i].items);
    for (size_t j = 0; j < all[i].items; j++) {
      assert_int_equal(got.request.asked.geometry.item[j].q, all[i].q);
      assert_int_equal(got.request.asked.geometry.item[j].k, all[i].k);
    }
    if (all[i].text) {
      read_text(&want, &equal, ASK_ATTENTION, all[i].text);
      body_assert_same(&want.request, &got.request, &equal);
      arena_free(&want.arena);
    }
    arena_free(&got.arena);
    body_free(&b);
  }
}

#define QUERIES          "\"queries\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]}"
#define META(key, value) "{\"__metadata__\":{\"" key "\":\"" value "\"}," QUERIES "}"

static void metadata_holds_json_or_a_word(void **state) {
  (void)state;
  static const struct {
    const char *header, *text;
  } all[] = {
      {META("select", "hard"), "{\"queries\":[[0,0]],\"select\":\"hard\"}"},
      {META("select", "\\\"hard\\\""), "{\"queries\":[[0,0]],\"select\":\"hard\"}"},
      {META("encoding_format", "base64"), "{\"queries\":[[0,0]],\"encoding_format\":\"base64\"}"},
      {META("causal_offset", "end"), "{\"queries\":[[0,0]],\"causal_offset\":\"end\"}"},
      {META("causal_offset", " \\\"end\\\""), "{\"queries\":[[0,0]],\"causal_offset\":\"end\"}"},
      {META("causal_offset", " 12 "), "{\"queries\":[[0,0]],\"causal_offset\":12}"},
      {META("causal_offset", "-5"), "{\"queries\":[[0,0]],\"causal_offset\":-5}"},
      {META("return_attention", "average"),
       "{\"queries\":[[0,0]],\"return_attention\":\"average\"}"},
      {META("return_attention", " true "), "{\"queries\":[[0,0]],\"return_attention\":true}"},
      {META("window", "[1, -1]"), "{\"queries\":[[0,0]],\"window\":[1,-1]}"},
      {META("format", "pt"), "{\"queries\":[[0,0]]}"},
      {"{" QUERIES "}      ", "{\"queries\":[[0,0]]}"},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    struct body_result got, want;
    struct body_made b = body_raw(all[i].header, 8);
    read_binary(&got, &equal, ASK_ATTENTION, &b, b.size, 0, 3);
    if (got.error.status) fail_msg("%s: %s", all[i].header, got.error.detail);
    read_text(&want, &equal, ASK_ATTENTION, all[i].text);
    body_assert_same(&want.request, &got.request, &equal);
    arena_free(&want.arena);
    arena_free(&got.arena);
    body_free(&b);
  }
}

/* --- what is refused --- */

#define TENSOR(name, dtype, shape, bytes) \
  "{\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[0," #bytes "]}}"

static void headers_that_are_no_request(void **state) {
  (void)state;
  static const struct {
    const char *header;
    size_t data;
    const char *pointer, *why;
  } all[] = {
      {"{}", 0, "/queries", "is missing"},
      {"", 0, "", "does not begin with '{'"},
      {"{\"queries\":1}", 0, "", "not described by a dtype"},
      {TENSOR("queries", "F32", "[1,2]", 9), 9, "", "do not fill its 9 bytes"},
      {TENSOR("queries", "F32", "[1,2]", 8), 9, "", "after the last tensor"},
      {TENSOR("querys", "F32", "[1,2]", 8), 8, "/querys", "did you mean \"queries\"?"},
      {TENSOR("queries", "I32", "[1,2]", 8), 8, "/queries", "must be F32"},
      {TENSOR("queries", "F8_E4M3", "[1,2]", 2), 2, "/queries", "must be F32"},
      {TENSOR("queries", "F4", "[1,2]", 1), 1, "/queries", "must be F32"},
      {TENSOR("queries", "F32", "[2]", 8), 8, "/queries", "1 dimensions, expected 2 or 3"},
      {TENSOR("queries", "F32", "[1,1,1,2]", 8), 8, "/queries", "4 dimensions"},
      {TENSOR("queries", "F32", "[1,1,1,1,2]", 8), 8, "/queries", "5 dimensions"},
      {TENSOR("queries", "F32", "[2,1]", 8), 8, "/queries",
       "is 1, expected 2 (the model's query_size)"},
      {TENSOR("queries", "F32", "[1001,0,2]", 0), 0, "", "limit of 1000"},
      {TENSOR("gradients", "F32", "[1,2]", 8), 8, "/gradients", "/heads"},
      {TENSOR("causal", "BOOL", "[]", 1), 1, "/causal", "entry of __metadata__"},
      {META("causal", "maybe"), 8, "/causal", "must be true or false"},
      {META("causal", "\\\"true\\\""), 8, "/causal", "must be true or false"},
      {META("causal", ""), 8, "/causal", "as text"},
      {META("causal", "[1"), 8, "/causal", "as text"},
      {META("window", "[1,2,3]"), 8, "/window", "two integers"},
      {META("window", "[1,-2]"), 8, "/window/1", "at least -1"},
      {META("casual", "true"), 8, "/casual", "did you mean \"causal\"?"},
      {META("valid_lens", "[1]"), 8, "/valid_lens", "must be a tensor"},
      {META("causal_offset", "1.5"), 8, "/causal_offset", "expected an integer"},
      {META("causal_offset", "1 2"), 8, "/causal_offset", "as text"},
      {META("causal_offset", "[1,2"), 8, "/causal_offset", "as text"},
      {META("causal_offset", "[1,true]"), 8, "/causal_offset/1", "expected an integer"},
      {META("causal_offset", "[1]"), 8, "/causal_offset", "a single item"},
      {META("causal_offset", "ende"), 8, "/causal_offset", "must be an integer"},
      {"{\"__metadata__\":{\"causal_offset\":\"1\"},\"causal_offset\":{\"dtype\":\"I32\","
       "\"shape\":[],\"data_offsets\":[0,4]}}",
       4, "/causal_offset", "duplicate "},
      {"{\"__metadata__\":{\"causal\":true}," QUERIES "}", 8, "", "is not a string"},
      {"{\"__metadata__\":{\"causal\":\"true\",\"causal\":\"true\"}," QUERIES "}", 8, "",
       "duplicate"},
      {"{" QUERIES "," QUERIES "}", 8, "", "duplicate"},
      {"{" QUERIES ",\"mask\":{\"dtype\":\"U8\",\"shape\":[1,2],\"data_offsets\":[8,10]}}", 10,
       "/mask/0", "must have the shape"},
      {"{" QUERIES ",\"mask\":{\"dtype\":\"U8\",\"shape\":[0,1],\"data_offsets\":[8,8]}}", 8,
       "/mask", "must have the shape"},
      {"{" QUERIES ",\"keys\":{\"dtype\":\"F32\",\"shape\":[0,2],\"data_offsets\":[8,8]},"
       "\"bias\":{\"dtype\":\"F32\",\"shape\":[1,3],\"data_offsets\":[8,20]}}",
       20, "/bias/0", "must have the shape"},
      {"{\"queries\":{\"dtype\":\"F32\",\"shape\":[2,0,2],\"data_offsets\":[0,0]},"
       "\"mask\":{\"dtype\":\"U8\",\"shape\":[2,0,7],\"data_offsets\":[0,0]}}",
       0, "/mask/0", "must have the shape"},
      {"{\"queries\":{\"dtype\":\"F32\",\"shape\":[0,2],\"data_offsets\":[0,0]},"
       "\"keys\":{\"dtype\":\"F32\",\"shape\":[1,0,2],\"data_offsets\":[0,0]}}",
       0, "/keys", "has 3 dimensions, expected 2 for queries with 2"},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    struct body_result r;
    struct body_made b = body_raw(all[i].header, all[i].data);
    read_binary(&r, &equal, ASK_ATTENTION, &b, b.size, 0, 5);
    if (!r.error.status || strcmp(r.error.pointer, all[i].pointer) != 0 ||
        !strstr(r.error.detail, all[i].why))
      fail_msg("%s: status %d, %s: %s", all[i].header, (int)r.error.status, r.error.pointer,
               r.error.detail);
    assert_int_equal(r.error.status, r.error.limit ? STATUS_TOO_LARGE : STATUS_INVALID_REQUEST);
    arena_free(&r.arena);
    body_free(&b);
  }
}

static void flags_and_lengths_out_of_range(void **state) {
  (void)state;
  struct body_result r;
  struct body_made b = body_raw(TENSOR("mask", "U8", "[2,3]", 6), 6);
  b.bytes[b.size - 2] = 7;
  read_binary(&r, &equal, ASK_ATTENTION, &b, b.size, 0, b.size);
  assert_string_equal(r.error.pointer, "/mask/1/1");
  arena_free(&r.arena);
  body_free(&b);
  b = body_raw(TENSOR("valid_lens", "I64", "[2,4]", 64), 64);
  b.bytes[b.size - 1] = 1;
  read_binary(&r, &equal, ASK_ATTENTION, &b, b.size, 0, b.size);
  assert_string_equal(r.error.pointer, "/valid_lens/1/3");
  arena_free(&r.arena);
  body_free(&b);
}

static void headers_that_are_too_long(void **state) {
  (void)state;
  enum { LONG = 16 * 1024 };
  char *header = malloc(LONG + 2);
  assert_non_null(header);
  struct body_result r;
  for (size_t size = LONG; size <= LONG + 1; size++) {
    memset(header, ' ', size);
    header[0] = '{', header[1] = '}', header[size] = '\0';
    struct body_made b = body_raw(header, 0);
    read_binary(&r, &equal, ASK_ATTENTION, &b, b.size, 0, 1000);
    assert_non_null(strstr(r.error.detail, size > LONG ? "is over 16384 bytes" : "is missing"));
    arena_free(&r.arena);
    body_free(&b);
  }
  free(header);
  char text[700] = "{\"__metadata__\":{\"select\":\"";
  memset(text + strlen(text), 'x', 511);
  strcat(text, "\"}}");
  struct body_made b = body_raw(text, 0);
  read_binary(&r, &equal, ASK_ATTENTION, &b, b.size, 0, 1000);
  assert_string_equal(r.error.detail, "select is longer than 510 bytes");
  arena_free(&r.arena);
  body_free(&b);
}

static void every_truncation_is_refused(void **state) {
  (void)state;
  for (size_t i = 0; i < REQUESTS; i++) {
    struct body_made b = body_safetensors(requests[i].text, &plain);
    for (size_t size = 0; size < b.size; size++) {
      struct body_result r;
      read_binary(&r, &unequal, requests[i].ask, &b, size, size / 2, size);
      assert_int_equal(r.error.status, STATUS_INVALID_REQUEST);
      assert_true(r.error.has_offset);
      assert_int_equal(r.error.offset, size);
      arena_free(&r.arena);
      /* Told beforehand it is seen at the latest when the header is there. */
      memset(&r, 0, sizeof r);
      struct body_terms terms = body_read_terms(requests[i].ask, BODY_SAFETENSORS);
      terms.body_bytes = size;
      body_read(&r, &unequal, &terms, &body_read_wide, b.bytes, b.size, 0, b.size);
      assert_int_equal(r.error.status, STATUS_INVALID_REQUEST);
      assert_false(r.error.has_offset);
      arena_free(&r.arena);
    }
    body_free(&b);
  }
}

static void bytes_behind_the_end_are_refused(void **state) {
  (void)state;
  struct body_made b = body_safetensors(requests[0].text, &plain);
  const size_t size = b.size;
  b.bytes = realloc(b.bytes, size + 3);
  assert_non_null(b.bytes);
  memset(b.bytes + size, ' ', 3);
  for (size_t more = 1; more <= 3; more++) {
    struct body_result r;
    read_binary(&r, &unequal, ASK_ATTENTION, &b, size + more, size, size);
    assert_int_equal(r.error.status, STATUS_INVALID_REQUEST);
    assert_int_equal(r.error.offset, size);
    arena_free(&r.arena);
    memset(&r, 0, sizeof r);
    struct body_terms terms = body_read_terms(ASK_ATTENTION, BODY_SAFETENSORS);
    terms.body_bytes = size + more;
    body_read(&r, &unequal, &terms, &body_read_wide, b.bytes, size + more, size, size);
    assert_non_null(strstr(r.error.detail, "bytes follow"));
    arena_free(&r.arena);
  }
  body_free(&b);
}

static void mutants_are_judged(void **state) {
  (void)state;
  uint64_t seed = 88172645463325252u;
  for (size_t i = 0; i < 4000; i++) {
    struct body_made b = body_safetensors(requests[i % REQUESTS].text, &plain);
    for (size_t changes = 1 + i % 3; changes > 0; changes--) {
      seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
      size_t at = seed % (b.size < 900 ? b.size : 900);
      b.bytes[at] = "\0\xff\x7f{}[],:\"0192 abF"[seed >> 32 & 15];
    }
    struct body_result r;
    read_binary(&r, &unequal, requests[i % REQUESTS].ask, &b, b.size, seed >> 40 & 1023, b.size);
    assert_true(r.error.status == STATUS_OK || r.error.status == STATUS_INVALID_REQUEST ||
                r.error.status == STATUS_TOO_LARGE);
    arena_free(&r.arena);
    body_free(&b);
  }
}

static void a_full_budget_at_every_step(void **state) {
  (void)state;
  struct body_made b = body_safetensors(requests[0].text, &(struct body_types){"F16", "I64", "U8"});
  size_t refused = 0;
  for (size_t limit = 0;; limit += 500, refused++) {
    struct budget budget;
    struct body_result r = {0};
    budget_init(&budget, limit);
    arena_init(&r.arena, &budget);
    struct body_terms terms = body_read_terms(ASK_ATTENTION, BODY_SAFETENSORS);
    terms.body_bytes = BODY_UNKNOWN;
    body_read(&r, &unequal, &terms, &body_read_wide, b.bytes, b.size, 0, 100);
    arena_free(&r.arena);
    assert_int_equal(atomic_load(&budget.used), 0);
    if (!r.error.status) break;
    assert_string_equal(r.error.limit, "memory_budget_bytes");
  }
  assert_true(refused > 40);
  body_free(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_type_is_the_same_request),
      cmocka_unit_test(shapes_without_numbers_are_what_they_say),
      cmocka_unit_test(metadata_holds_json_or_a_word),
      cmocka_unit_test(headers_that_are_no_request),
      cmocka_unit_test(flags_and_lengths_out_of_range),
      cmocka_unit_test(headers_that_are_too_long),
      cmocka_unit_test(every_truncation_is_refused),
      cmocka_unit_test(bytes_behind_the_end_are_refused),
      cmocka_unit_test(mutants_are_judged),
      cmocka_unit_test(a_full_budget_at_every_step),
  };
  return cmocka_run_group_tests_name("body_safetensors", tests, NULL, NULL);
}
