/* test_body_base64: arrays of a JSON request as base64 are the same request, and every way to get
 * them wrong. */
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
    .shape = {.heads = 2, .query_size = 2, .key_size = 3, .value_size = 1, .output_size = 2}};
static const struct model equal = {
    .name = "equal",
    .shape = {.heads = 2, .query_size = 2, .key_size = 2, .value_size = 2, .output_size = 2}};

static const struct body_limits wide = {.max_items = 4,
                                        .max_pairs = 1 << 20,
                                        .max_answer_bytes = 1 << 20};

static const struct request {
  const struct model *model;
  enum body_ask ask;
  const char *text;
} requests[] = {
    {&unequal, ASK_ATTENTION,
     "{\"queries\":[[[1,2],[3,4]],[[5,6.5]]],\"keys\":[[[1,2,3],[4,5,6],[7,8,9]],"
     "[[-1,-2,-3],[0.5,0,1]]],\"values\":[[[1],[2],[3]],[[4],[5]]],"
     "\"valid_lens\":[[3,0],[2]],\"mask\":[[[1,0,true],[false,1,1]],[[0,1]]],"
     "\"bias\":[[[[1,2,3],[4,5,6]],[[7,8,9],[10,11,12]]],[[[13,14]],[[15,16]]]],"
     "\"head_mask\":[1,0.25],\"encoding_format\":\"base64\"}"},
    {&unequal, ASK_HEADS,
     "{\"queries\":[[1,2],[3,4]],\"keys\":[[1,2,3],[4,5,6]],\"values\":[[1],[2]],"
     "\"bias\":[[[1,2],[3,4]],[[5,6],[7,8]]],\"gradients\":[[1,0.5],[-1,2]]}"},
    {&equal, ASK_HEADS,
     "{\"queries\":[[[1,2]],[[3,4],[5,6]],[[7,8]],[[0,1]]],"
     "\"gradients\":[[[1,0.5]],[[-1,2],[3,4]],[[5,6]],[[7,8]]]}"},
    {&equal, ASK_ATTENTION, "{\"queries\":[[[1,2],[3,4]],[[5,6],[7,8]]],\"bias\":[[1,2],[3,4]]}"},
};
enum { REQUESTS = sizeof requests / sizeof *requests };

static void read_in(struct body_result *r, const struct request *q, const char *text, size_t size,
                    size_t cut, size_t piece) {
  const struct body_terms terms = body_read_terms(q->ask, BODY_JSON);
  body_read(r, q->model, &terms, &wide, text, size, cut, piece);
}

static void read_body(struct body_result *r, const struct request *q, const char *text, size_t size,
                      size_t cut, size_t piece) {
  memset(r, 0, sizeof *r);
  read_in(r, q, text, size, cut, piece);
}

static void assert_same(const struct request *q, const char *text, size_t size, size_t cut,
                        size_t piece, const struct body_result *want) {
  struct body_result got;
  read_body(&got, q, text, size, cut, piece);
  if (got.error.status)
    fail_msg("%s\ncut at %zu: %s (%s, %zu)", text, cut, got.error.detail, got.error.pointer,
             got.error.offset);
  body_assert_same(&want->request, &got.request, q->model);
  arena_free(&got.arena);
}

static void each_type_is_the_same_request(void **state) {
  (void)state;
  static const char *const types[] = {"F32", "F16", "BF16", "F64"};
  for (const struct request *q = requests; q < requests + REQUESTS; q++)
    for (size_t t = 0; t < 8; t++) {
      struct body_result want;
      struct body_made b = body_base64(q->text, types[t / 2], t % 2);
      read_body(&want, q, q->text, strlen(q->text), 0, 1000);
      assert_int_equal(want.error.status, STATUS_OK);
      for (size_t cut = 0; cut <= b.size; cut++)
        assert_same(q, b.bytes, b.size, cut, b.size, &want);
      for (size_t piece = 1; piece < 9; piece++) assert_same(q, b.bytes, b.size, 0, piece, &want);
      arena_free(&want.arena);
      body_free(&b);
    }
}

static void every_truncation_is_no_json(void **state) {
  (void)state;
  for (const struct request *q = requests; q < requests + REQUESTS; q++) {
    struct body_made b = body_base64(q->text, "F32", true);
    for (size_t size = 0; size < b.size; size++) {
      struct body_result r;
      read_body(&r, q, b.bytes, size, 0, size);
      assert_int_equal(r.error.status, STATUS_INVALID_JSON);
      assert_int_equal(r.error.offset, size);
      arena_free(&r.arena);
    }
    body_free(&b);
  }
}

/* [1, 2, 3, 4] is AACAPwAAAEAAAEBAAACAQA==, and 255 of a byte is "/" in base64: here in NaN. */
static void keys_in_any_order_and_escapes(void **state) {
  (void)state;
  static const char *const same[] = {
      "{\"queries\":{\"dtype\":\"F32\",\"shape\":[2,2],\"base64\":\"AACAPwAAAEAAAEBAAACAQA==\"}}",
      "{\"queries\" : { \"base64\" : \"AACAPwAAAEAAAEBAAACAQA==\" , \"shape\" :\n[ 2 , 2 ] ,\t"
      "\"dtype\" : \"F32\" } } ",
      "{\"queries\":{\"shape\":[2,2],\"base64\":\"AACAPwAAAEAAAEBAAACAQA==\",\"dtype\":\"F32\"}}",
      "{\"queries\":{\"b\\u0061se64\":\"\\u0041ACAPwAAAEAA\\u0041EBAAACAQ\\u0041=\\u003D\","
      "\"sh\\u0061pe\":[2,2],\"dtype\":\"\\u004632\"}}",
  };
  const struct request q = {&equal, ASK_ATTENTION, "{\"queries\":[[1,2],[3,4]]}"};
  struct body_result want;
  read_body(&want, &q, q.text, strlen(q.text), 0, 100);
  for (size_t i = 0; i < sizeof same / sizeof *same; i++)
    for (size_t cut = 0; cut < strlen(same[i]); cut++)
      assert_same(&q, same[i], strlen(same[i]), cut, 1000, &want);
  arena_free(&want.arena);
  static const char slashes[] = "{\"queries\":{\"base64\":\"\\/\\/\\u002F\\/f\\/\\/\\u002f\\u007A"
                                "\\u002b8=\",\"shape\":[1,2],\"dtype\":\"F32\"}}";
  const unsigned char bytes[8] = {0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xcf, 0xef};
  struct body_result r;
  read_body(&r, &q, slashes, sizeof slashes - 1, 0, 1);
  assert_int_equal(r.error.status, STATUS_OK);
  assert_memory_equal(r.request.asked.call.queries, bytes, sizeof bytes);
  arena_free(&r.arena);
}

static void shapes_without_numbers(void **state) {
  (void)state;
  struct body_result r;
  const struct request q = {&equal, ASK_ATTENTION, NULL};
  static const char one[] = "{\"queries\":{\"dtype\":\"F32\",\"shape\":[0,2],\"base64\":\"\"},"
                            "\"keys\":[],\"return_attention\":true}";
  read_body(&r, &q, one, sizeof one - 1, 0, 100);
  assert_int_equal(r.error.status, STATUS_OK);
  assert_true(r.request.unbatched);
  assert_int_equal(r.request.asked.geometry.items, 1);
  assert_int_equal(r.request.asked.geometry.q_rows, 0);
  arena_free(&r.arena);
  static const char three[] = "{\"queries\":[{\"dtype\":\"F32\",\"shape\":[0,2],\"base64\":\"\"},"
                              "{\"dtype\":\"BF16\",\"base64\":\"AAAAAA==\",\"shape\":[1,2]},"
                              "{\"base64\":\"\",\"dtype\":\"F64\",\"shape\":[0,2]}]}";
  read_body(&r, &q, three, sizeof three - 1, 0, 1);
  assert_int_equal(r.error.status, STATUS_OK);
  assert_false(r.request.unbatched);
  assert_int_equal(r.request.asked.geometry.items, 3);
  assert_int_equal(r.request.asked.geometry.item[1].q, 1);
  assert_int_equal(r.request.asked.geometry.item[2].q, 0);
  arena_free(&r.arena);
}

/* Bytes that come before their type wait, between numbers that do not, until the request ends. */
static void types_behind_their_bytes(void **state) {
  (void)state;
  static const char rest[] =
      "\"keys\":[[[1,2,3],[1,2,3],[1,2,3]],[[1,2,3],[1,2,3]],[[1,2,3]],[[1,2,3]]],"
      "\"values\":";
  static const char queries[] = "{\"queries\":[[[1,2]],[[3,4]],[[5,6]],[[7,8]]],";
  static const char *const values[] = {
      "[[[1],[2],[3]],[[4],[5]],[[6]],[[7]]]", /* in decimals, */
      /* and in objects of which some have their type last */
      "[{\"base64\":\"ADwAQABC\",\"dtype\":\"F16\",\"shape\":[3,1]},{\"dtype\":\"F64\","
      "\"shape\":[2,1],\"base64\":\"AAAAAAAAEEAAAAAAAAAUQA==\"},{\"base64\":\"wEA=\",\""
      "dtype\":\"BF16\",\"shape\":[1,1]},{\"dtype\":\"F32\",\"shape\":[1,1],\"base64\":"
      "\"AADgQA==\"}]",
      "[{\"dtype\":\"F32\",\"shape\":[3,1],\"base64\":\"AACAPwAAAEAAAEBA\"},{\"base64\""
      ":\"AAAAAAAAEEAAAAAAAAAUQA==\",\"dtype\":\"F64\",\"shape\":[2,1]},{\"dtype\":\"F1"
      "6\",\"shape\":[1,1],\"base64\":\"AEY=\"},{\"base64\":\"AEc=\",\"dtype\":\"F16\","
      "\"shape\":[1,1]}]",
      "[{\"base64\":\"gD8AQEBA\",\"dtype\":\"BF16\",\"shape\":[3,1]},{\"base64\":\"gECg"
      "QA==\",\"dtype\":\"BF16\",\"shape\":[2,1]},{\"base64\":\"wEA=\",\"dtype\":\"BF16"
      "\",\"shape\":[1,1]},{\"base64\":\"4EA=\",\"dtype\":\"BF16\",\"shape\":[1,1]}]",
      "[{\"base64\":\"AACAPwAAAEAAAEBA\",\"dtype\":\"F32\",\"shape\":[3,1]},{\"base64\""
      ":\"AEQARQ==\",\"dtype\":\"F16\",\"shape\":[2,1]},{\"base64\":\"AADAQA==\",\"dtyp"
      "e\":\"F32\",\"shape\":[1,1]},{\"base64\":\"AAAAAAAAHEA=\",\"dtype\":\"F64\",\"sh"
      "ape\":[1,1]}]",
  };
  const struct request q = {&unequal, ASK_ATTENTION, NULL};
  struct body_result want;
  char text[1000];
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    const size_t size = (size_t)snprintf(text, sizeof text, "%s%s%s}", queries, rest, values[i]);
    if (i == 0) read_body(&want, &q, text, size, 0, size);
    assert_int_equal(want.error.status, STATUS_OK);
    for (size_t cut = 0; cut < size; cut++) assert_same(&q, text, size, cut, size, &want);
  }
  arena_free(&want.arena);
}

/* --- what is refused --- */

#define D            "\"dtype\":\"F32\""
#define S            "\"shape\":[1,2]"
#define B            "\"base64\":\"AAAAAAAAAAA=\""
#define TEXT(text)   "{" D "," S ",\"base64\":\"" text "\"}"
#define SHAPE(shape) "{" D "," B ",\"shape\":" shape "}"

static const struct refused {
  const char *value; /* of queries */
  enum status status;
  const char *pointer;
  const char *why;
  const char *at; /* where the offset is: at this text; or NULL */
} refused[] = {
    {"{}", STATUS_INVALID_REQUEST, "/queries", "dtype is missing", NULL},
    {"{" D "," B "}", STATUS_INVALID_REQUEST, "/queries", "shape is missing", NULL},
    {"{" D "," S "}", STATUS_INVALID_REQUEST, "/queries", "base64 is missing", NULL},
    {"{" D "," D "}", STATUS_INVALID_REQUEST, "/queries/dtype", "duplicate ", NULL},
    {"{" S "," S "}", STATUS_INVALID_REQUEST, "/queries/shape", "duplicate ", NULL},
    {"{" B "," B "}", STATUS_INVALID_REQUEST, "/queries/base64", "duplicate ", NULL},
    {"{\"data\":1}", STATUS_INVALID_REQUEST, "/queries/data", "unknown key", NULL},
    {"{\"a/b\":1}", STATUS_INVALID_REQUEST, "/queries", "unknown key", NULL},
    {"{\"\":1}", STATUS_INVALID_REQUEST, "/queries", "unknown key", NULL},
    {"{\"base64base64base64base64base64\":1}", STATUS_INVALID_REQUEST,
     "/queries/base64base64base64base64", "unknown key", NULL},
    {"{\"dtype\":3}", STATUS_INVALID_REQUEST, "/queries/dtype", "expected a string", NULL},
    {"{\"dtype\":\"I32\"}", STATUS_INVALID_REQUEST, "/queries/dtype", "must be \"F32\"", NULL},
    {"{\"dtype\":\"f32\"}", STATUS_INVALID_REQUEST, "/queries/dtype", "must be \"F32\"", NULL},
    {"{\"dtype\":\"F32F32F32F32F32F32F32F32F32\"}", STATUS_INVALID_REQUEST, "/queries/dtype",
     "must be \"F32\"", NULL},
    {"{\"shape\":3}", STATUS_INVALID_REQUEST, "/queries/shape", "an array of integers", NULL},
    {SHAPE("[1.0,2]"), STATUS_INVALID_REQUEST, "/queries/shape/0", "without fraction", NULL},
    {SHAPE("[1,2e0]"), STATUS_INVALID_REQUEST, "/queries/shape/1", "without fraction", NULL},
    {SHAPE("[-1,2]"), STATUS_INVALID_REQUEST, "/queries/shape/0", "not be negative", NULL},
    {SHAPE("[1,99999999999]"), STATUS_INVALID_REQUEST, "/queries/shape/1", "32-bit integer", NULL},
    {SHAPE("[1,-99999999999]"), STATUS_INVALID_REQUEST, "/queries/shape/1", "32-bit integer", NULL},
    {SHAPE("[1,\"2\"]"), STATUS_INVALID_REQUEST, "/queries/shape/1", "expected an integer", NULL},
    {SHAPE("[true,2]"), STATUS_INVALID_REQUEST, "/queries/shape/0", "expected an integer", NULL},
    {SHAPE("[]"), STATUS_INVALID_REQUEST, "/queries/shape", "0 dimensions", NULL},
    {SHAPE("[2]"), STATUS_INVALID_REQUEST, "/queries/shape", "1 dimensions", NULL},
    {SHAPE("[1,1,1,1,1,2]"), STATUS_INVALID_REQUEST, "/queries/shape", "6 dimensions", NULL},
    {SHAPE("[1,3]"), STATUS_INVALID_REQUEST, "/queries/shape", "is 3, expected 2", NULL},
    {SHAPE("[5,1,2]"), STATUS_TOO_LARGE, "", "limit of 4", NULL},
    {SHAPE("[2147483647,2147483647,2147483647]"), STATUS_INVALID_REQUEST, "/queries/shape",
     "too large for the address space", NULL},
    {SHAPE("[2,2]"), STATUS_INVALID_REQUEST, "/queries/base64", "8 bytes, but", NULL},
    {SHAPE("[0,2]"), STATUS_INVALID_REQUEST, "/queries/base64", "require 0", NULL},
    {"{" D "," S ",\"base64\":3}", STATUS_INVALID_REQUEST, "/queries/base64", "a string", NULL},
    {TEXT(""), STATUS_INVALID_REQUEST, "/queries/base64", "0 bytes, but", NULL},
    {TEXT("AAAAAAAAAA=="), STATUS_INVALID_REQUEST, "/queries/base64", "7 bytes, but", NULL},
    {TEXT("AAAAAAAAAAAA"), STATUS_INVALID_REQUEST, "/queries/base64", "more bytes than", "AAAA\"}"},
    {TEXT("AAAAAAAAAAAAAAAA"), STATUS_INVALID_REQUEST, "/queries/base64", "more bytes than",
     "AAAAAAAA\"}"},
    {TEXT("AAAAAAAAAAAAAA=="), STATUS_INVALID_REQUEST, "/queries/base64", "more bytes than",
     "AAAAAA==\"}"},
    {TEXT("AAAAAAAAAAA"), STATUS_INVALID_REQUEST, "/queries/base64", "multiple of 4", "\"}"},
    {TEXT("AAAAAAAAAAB="), STATUS_INVALID_REQUEST, "/queries/base64", "must be zero", "=\"}"},
    {TEXT("AAAAAAAAAAA=A"), STATUS_INVALID_REQUEST, "/queries/base64", "after the padding", "A\"}"},
    {TEXT("AAAAAAAAAAA=="), STATUS_INVALID_REQUEST, "/queries/base64", "after the padding", "=\"}"},
    {TEXT("AAAAAAAAA==="), STATUS_INVALID_REQUEST, "/queries/base64", "base64 padding", "===\"}"},
    {TEXT("===="), STATUS_INVALID_REQUEST, "/queries/base64", "base64 padding", "====\"}"},
    {TEXT("AAAAAAAAAA=A"), STATUS_INVALID_REQUEST, "/queries/base64", "base64 padding", "A\"}"},
    {TEXT("AAAA AAAAAAA="), STATUS_INVALID_REQUEST, "/queries/base64", "not a base64 character",
     " AAAA"},
    {TEXT("AAAA-AAAAAA="), STATUS_INVALID_REQUEST, "/queries/base64", "not a base64 character",
     "-AAA"},
    {TEXT("AAAAAA\\nA"), STATUS_INVALID_REQUEST, "/queries/base64", "not a base64 character",
     "nA\"}"},
    {TEXT("AAAAAA\\u0100"), STATUS_INVALID_REQUEST, "/queries/base64", "not a base64 character",
     "0\"}"},
    {TEXT("AAAAAA\\u0000"), STATUS_INVALID_REQUEST, "/queries/base64", "not a base64 character",
     "0\"}"},
    {TEXT("AAA\xc3\xa9"), STATUS_INVALID_REQUEST, "/queries/base64", "not a base64 character",
     "\xa9"},
    {TEXT("AAA\xff"), STATUS_INVALID_JSON, "", "not UTF-8 (0xff)", "\xff"},
    {TEXT("AAA\xed\xa0"), STATUS_INVALID_JSON, "", "not UTF-8 (0xa0)", "\xa0"},
    {TEXT("AAA\xc3g"), STATUS_INVALID_JSON, "", "0x67", "g"},
    {TEXT("AAA\\udc00"), STATUS_INVALID_JSON, "", "0x30", "0\"}"},
    {TEXT("AAA\\ud800g"), STATUS_INVALID_JSON, "", "0x67", "g"},
    {"{\"dt\xff\":1}", STATUS_INVALID_JSON, "", "not UTF-8", "\xff"},
    {"{\"dtype\":\"F\xff\"}", STATUS_INVALID_JSON, "", "not UTF-8", "\xff"},
    {"{\"dt\xc3\xa4\":1}", STATUS_INVALID_REQUEST, "/queries", "unknown key", NULL},
    {TEXT("AAAA\n"), STATUS_INVALID_JSON, "", "0x0a", "\n"},
    {TEXT("AAAA\\x"), STATUS_INVALID_JSON, "", "0x78", "x\"}"},
    {TEXT("AAAA\\u00g0"), STATUS_INVALID_JSON, "", "0x67", "g0"},
    {"{\"dt\x01\":1}", STATUS_INVALID_JSON, "", "0x01", "\x01"},
    {"{1:2}", STATUS_INVALID_JSON, "", "'1'", "1"},
    {"{" D ",}", STATUS_INVALID_JSON, "", "'}'", "}"},
    {"{" D " " S "}", STATUS_INVALID_JSON, "", "'\"'", "\"shape"},
    {"{\"dtype\" \"F32\"}", STATUS_INVALID_JSON, "", "'\"'", "\"F32"},
    {"{\"dtype\":}", STATUS_INVALID_JSON, "", "'}'", "}"},
    {SHAPE("[1,2,]"), STATUS_INVALID_JSON, "", "']'", "]"},
    {SHAPE("[01,2]"), STATUS_INVALID_JSON, "", "'1'", "1,2"},
    {SHAPE("[1 2]"), STATUS_INVALID_JSON, "", "'2'", "2]"},
    {SHAPE("[,]"), STATUS_INVALID_JSON, "", "','", ",]"},
    {SHAPE("[1,\x7f]"), STATUS_INVALID_JSON, "", "0x7f", "\x7f"},
    /* lists */
    {"[" TEXT("AAAAAAAAAAA=") ",[[1,2]]]", STATUS_INVALID_REQUEST, "/queries/1",
     "expected an object", NULL},
    {"[" TEXT("AAAAAAAAAAA=") ",{" D "," S ",\"base64\":\"AAAA*\"}]", STATUS_INVALID_REQUEST,
     "/queries/1/base64", "not a base64 character", "*"},
    {"[" TEXT("AAAAAAAAAAA=") ",{" D "," B ",\"shape\":[1,1,2]}]", STATUS_INVALID_REQUEST,
     "/queries/1/shape", "3 dimensions, expected 2", NULL},
    {"[" TEXT("AAAAAAAAAAA=") ",{" D "," S "}]", STATUS_INVALID_REQUEST, "/queries/1",
     "base64 is missing", NULL},
    {"[" TEXT("AAAAAAAAAAA=") ",]", STATUS_INVALID_JSON, "", "']'", "]"},
    {"[" TEXT("AAAAAAAAAAA=") "}", STATUS_INVALID_JSON, "", "'}'", "}}"},
    {"[[" TEXT("AAAAAAAAAAA=") "]]", STATUS_INVALID_REQUEST, "/queries/0/0", "got an object", NULL},
    {"[[[1,2]]," TEXT("AAAAAAAAAAA=") "]", STATUS_INVALID_REQUEST, "/queries/1", "got an object",
     NULL},
#define ONE TEXT("AAAAAAAAAAA=")
    {"[" ONE "," ONE "," ONE "," ONE "," ONE "]", STATUS_TOO_LARGE, "", "more than 4 items", NULL},
};

static void what_is_no_base64(void **state) {
  (void)state;
  const struct request q = {&equal, ASK_ATTENTION, NULL};
  for (const struct refused *f = refused; f < refused + sizeof refused / sizeof *refused; f++) {
    char text[1000] = "{\"queries\":";
    strcat(strcat(text, f->value), "}");
    const size_t length = strlen(text);
    for (size_t cut = 0; cut <= length; cut++) {
      struct body_result r;
      read_body(&r, &q, text, length, cut, length);
      bool right = r.error.status == f->status && strcmp(r.error.pointer, f->pointer) == 0 &&
                   strstr(r.error.detail, f->why) && r.error.has_offset == (f->at != NULL);
      if (right && f->at) right = memcmp(text + r.error.offset, f->at, strlen(f->at)) == 0;
      if (!right)
        fail_msg("%s\ncut at %zu: %d, %s, %zu: %s", text, cut, (int)r.error.status, r.error.pointer,
                 r.error.offset, r.error.detail);
      arena_free(&r.arena);
    }
  }
}

static void other_fields_and_other_shapes(void **state) {
  (void)state;
  static const struct {
    const char *fields, *pointer, *why;
  } all[] = {
      {"\"mask\":{}", "/mask", "cannot be base64"},
      {"\"valid_lens\":{}", "/valid_lens", "cannot be base64"},
      {"\"causal_offset\":{}", "/causal_offset", "cannot be base64"},
      {"\"mask\":[{}]", "/mask/0", "got an object"},
      {"\"head_mask\":[{}]", "/head_mask", "not a list"},
      {"\"head_mask\":{" D ",\"shape\":[1,2]}", "/head_mask/shape", "2 dimensions, expected 1"},
      {"\"bias\":[{" D ",\"shape\":[1,1],\"base64\":\"AAAAAA==\"},{" D
       ",\"shape\":[1,1,1],\"base64\":\"AAAAAA==\"}]",
       "/bias/1/shape", "3 dimensions, but the first object has 2"},
      {"\"gradients\":{}", "/gradients", "/heads"},
      {"\"keys\":[{" D ",\"shape\":[1,2],\"base64\":\"AAAAAAAAAAA=\"}]", "/keys",
       "keys has 3 dimensions, expected 2 for queries with 2"},
  };
  const struct request q = {&equal, ASK_ATTENTION, NULL};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    struct body_result r;
    char text[500] = "{\"queries\":[[1,2]],";
    strcat(strcat(text, all[i].fields), "}");
    read_body(&r, &q, text, strlen(text), 0, 1000);
    if (r.error.status != STATUS_INVALID_REQUEST || strcmp(r.error.pointer, all[i].pointer) != 0 ||
        !strstr(r.error.detail, all[i].why))
      fail_msg("%s: %s, %s", text, r.error.pointer, r.error.detail);
    arena_free(&r.arena);
  }
}

static void mutants_are_judged(void **state) {
  (void)state;
  uint64_t seed = 88172645463325252u;
  for (size_t i = 0; i < 4000; i++) {
    const struct request *q = &requests[i % REQUESTS];
    struct body_made b = body_base64(q->text, "F32", i & 4);
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    b.bytes[seed % b.size] = "\x01\xff\\u{}[],:\"=1/ A"[seed >> 32 & 15];
    struct body_result whole, cut;
    read_body(&whole, q, b.bytes, b.size, 0, b.size);
    read_body(&cut, q, b.bytes, b.size, 0, 1 + (seed >> 40 & 15));
    assert_int_equal(whole.error.status, cut.error.status);
    assert_string_equal(whole.error.detail, cut.error.detail);
    assert_string_equal(whole.error.pointer, cut.error.pointer);
    assert_int_equal(whole.error.offset, cut.error.offset);
    arena_free(&whole.arena);
    arena_free(&cut.arena);
    body_free(&b);
  }
}

static void a_full_budget_at_every_step(void **state) {
  (void)state;
  for (size_t lists = 0; lists < 2; lists++) {
    const struct request *q = &requests[0];
    struct body_made b = body_base64(q->text, "F16", lists);
    size_t refused_times = 0;
    for (size_t limit = 0;; limit += 500, refused_times++) {
      struct budget budget;
      struct body_result r = {0};
      budget_init(&budget, limit);
      arena_init(&r.arena, &budget);
      read_in(&r, q, b.bytes, b.size, 0, 64);
      arena_free(&r.arena);
      assert_int_equal(atomic_load(&budget.used), 0);
      if (!r.error.status) break;
      assert_string_equal(r.error.limit, "memory_budget_bytes");
    }
    assert_true(refused_times > 30);
    body_free(&b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_type_is_the_same_request),
      cmocka_unit_test(every_truncation_is_no_json),
      cmocka_unit_test(keys_in_any_order_and_escapes),
      cmocka_unit_test(shapes_without_numbers),
      cmocka_unit_test(types_behind_their_bytes),
      cmocka_unit_test(what_is_no_base64),
      cmocka_unit_test(other_fields_and_other_shapes),
      cmocka_unit_test(mutants_are_judged),
      cmocka_unit_test(a_full_budget_at_every_step),
  };
  return cmocka_run_group_tests_name("body_base64", tests, NULL, NULL);
}
