/* test_attention_sight: a bias of minus infinity is a mask; and what a number of the answer
 * counts, by the form that it will have. */
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

static const struct model equal = {
    .name = "equal",
    .shape = {.heads = 2, .query_size = 1, .key_size = 1, .value_size = 1, .output_size = 3}};

static void read_body(struct body_result *r, enum body_form form, const char *bytes, size_t size) {
  const struct body_terms terms = body_read_terms(ASK_ATTENTION, form);
  body_read(r, &equal, &terms, &body_read_wide, bytes, size, 0, SIZE_MAX);
}

/* In the texts -9999 stands for minus infinity, and 9999 for what is not finite either. */
static struct body_made with_infinities(const char *text) {
  const struct body_types types = {"F32", "I32", "BOOL"};
  const float mark[2] = {-9999, 9999}, meant[2] = {-INFINITY, NAN};
  struct body_made b = body_safetensors(text, &types);
  for (size_t i = 0; i + sizeof *mark <= b.size; i++)
    for (size_t k = 0; k < 2; k++)
      if (memcmp(b.bytes + i, &mark[k], sizeof *mark) == 0)
        memcpy(b.bytes + i, &meant[k], sizeof *meant);
  return b;
}

static void accept(struct body_result *r, const char *text) {
  struct body_made b = with_infinities(text);
  read_body(r, BODY_SAFETENSORS, b.bytes, b.size);
  if (r->error.status) fail_msg("%s: %s (%s)", text, r->error.detail, r->error.pointer);
  body_free(&b);
}

#define BATCH "\"queries\":[[[1],[2]],[[3],[4]]],\"keys\":[[[5],[6]],[[7],[8]]]"
#define ALONE "\"queries\":[[1],[2]],\"keys\":[[5],[6]]"

static void one_mask_for_all_heads(void **state) {
  (void)state;
  static const struct {
    const char *hidden, *masked;
  } all[] = {
      {"{" BATCH ",\"bias\":[[1,-9999],[2,3]]}",
       "{" BATCH ",\"bias\":[[1,0],[2,3]],\"mask\":[[1,0],[1,1]]}"},
      {"{" BATCH ",\"bias\":[[1,-9999],[2,3]],\"mask\":[[1,1],[0,1]]}",
       "{" BATCH ",\"bias\":[[1,0],[2,3]],\"mask\":[[1,0],[0,1]]}"},
      {"{" BATCH ",\"bias\":[[1,-9999],[2,3]],\"mask\":[[[1,1],[0,1]],[[0,1],[1,1]]]}",
       "{" BATCH ",\"bias\":[[1,0],[2,3]],\"mask\":[[[1,0],[0,1]],[[0,0],[1,1]]]}"},
      {"{" BATCH ",\"bias\":[[[1,-9999],[2,3]],[[4,5],[-9999,-9999]]]}",
       "{" BATCH ",\"bias\":[[[1,0],[2,3]],[[4,5],[0,0]]],\"mask\":[[[1,0],[1,1]],[[1,1],[0,0]]]}"},
      {"{" BATCH ",\"bias\":[[[1,-9999],[2,3]],[[4,5],[-9999,6]]],\"mask\":[[1,1],[1,0]]}",
       "{" BATCH ",\"bias\":[[[1,0],[2,3]],[[4,5],[0,6]]],\"mask\":[[[1,0],[1,0]],[[1,1],[0,0]]]}"},
      {"{" BATCH ",\"bias\":[[[1,-9999],[2,3]],[[4,5],[-9999,6]]],"
       "\"mask\":[[[0,1],[1,1]],[[1,1],[1,0]]]}",
       "{" BATCH ",\"bias\":[[[1,0],[2,3]],[[4,5],[0,6]]],\"mask\":[[[0,0],[1,1]],[[1,1],[0,0]]]}"},
      {"{" ALONE ",\"bias\":[[-9999,1],[2,3]]}",
       "{" ALONE ",\"bias\":[[0,1],[2,3]],\"mask\":[[0,1],[1,1]]}"},
      {"{" ALONE ",\"bias\":[[-9999,1],[2,3]],\"mask\":[[1,1],[0,1]]}",
       "{" ALONE ",\"bias\":[[0,1],[2,3]],\"mask\":[[0,1],[0,1]]}"},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    struct body_result got = {0}, want = {0};
    accept(&got, all[i].hidden);
    read_body(&want, BODY_JSON, all[i].masked, strlen(all[i].masked));
    assert_int_equal(want.error.status, STATUS_OK);
    body_assert_same(&want.request, &got.request, &equal);
    arena_free(&got.arena);
    arena_free(&want.arena);
  }
}

static void a_mask_for_each_head(void **state) {
  (void)state;
  static const struct {
    const char *text;
    size_t items;
    uint8_t mask[16];
    float bias[16];
  } all[] = {
      {"{" ALONE ",\"bias\":[[[1,-9999],[3,4]],[[5,6],[-9999,8]]]}",
       1,
       {1, 0, 1, 1, 1, 1, 0, 1},
       {1, 0, 3, 4, 5, 6, 0, 8}},
      {"{" ALONE ",\"bias\":[[[1,-9999],[3,4]],[[5,6],[-9999,8]]],\"mask\":[[0,1],[1,1]]}",
       1,
       {0, 0, 1, 1, 0, 1, 0, 1},
       {1, 0, 3, 4, 5, 6, 0, 8}},
      {"{" BATCH ",\"bias\":[[[[1,-9999],[3,4]],[[5,6],[7,8]]],[[[1,2],[3,4]],[[5,6],[7,-9999]]]]}",
       2,
       {1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0},
       {1, 0, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 0}},
      {"{" BATCH ",\"bias\":[[[[1,-9999],[3,4]],[[5,6],[7,8]]],[[[1,2],[3,4]],[[5,6],[7,-9999]]]],"
       "\"mask\":[[1,1],[0,1]]}",
       2,
       {1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 0},
       {1, 0, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 0}},
      {"{" BATCH ",\"bias\":[[[[1,-9999],[3,4]],[[5,6],[7,8]]],[[[1,2],[3,4]],[[5,6],[7,-9999]]]],"
       "\"mask\":[[[1,1],[0,1]],[[0,0],[1,1]]]}",
       2,
       {1, 0, 0, 1, 1, 1, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0},
       {1, 0, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 0}},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    struct body_result r = {0};
    accept(&r, all[i].text);
    const struct layer_run *c = &r.request.asked;
    assert_true(c->geometry.mask_per_head);
    assert_true(c->geometry.bias_per_head);
    assert_memory_equal(c->geometry.mask, all[i].mask, 8 * all[i].items);
    assert_memory_equal(c->geometry.bias, all[i].bias, 8 * all[i].items * sizeof(float));
    for (size_t k = 0; k < all[i].items; k++) assert_int_equal(c->geometry.item[k].mask_at, 8 * k);
    arena_free(&r.arena);
  }
}

static void other_numbers_are_left_as_they_are(void **state) {
  (void)state;
  struct body_result r = {0};
  accept(&r, "{\"queries\":[[9999],[2]],\"keys\":[[-9999],[6]],\"bias\":[[1,9999],[2,3]]}");
  assert_null(r.request.asked.geometry.mask);
  assert_false(r.request.asked.geometry.mask_per_head);
  assert_true(isnan(r.request.asked.geometry.bias[1]));
  assert_true(isnan(r.request.asked.call.queries[0]));
  assert_true(isinf(r.request.asked.call.keys[0]));
  arena_free(&r.arena);
  /* With no items there is nothing that a shared bias could hide. */
  static const char empty[] = "{\"queries\":{\"dtype\":\"F32\",\"shape\":[0,1,1],\"base64\":\"\"},"
                              "\"bias\":{\"dtype\":\"F16\",\"shape\":[1,1],\"base64\":\"APw=\"}}";
  read_body(&r, BODY_JSON, empty, sizeof empty - 1);
  assert_int_equal(r.error.status, STATUS_OK);
  assert_null(r.request.asked.geometry.mask);
  arena_free(&r.arena);
}

static void base64_says_it_too(void **state) {
  (void)state;
  struct body_result r = {0};
  static const char one[] = "{\"queries\":[[1]],"
                            "\"bias\":{\"dtype\":\"F16\",\"shape\":[1,1],\"base64\":\"APw=\"}}";
  read_body(&r, BODY_JSON, one, sizeof one - 1);
  assert_int_equal(r.error.status, STATUS_OK);
  assert_int_equal(r.request.asked.geometry.mask[0], 0);
  assert_true(r.request.asked.geometry.bias[0] == 0);
  arena_free(&r.arena);
  /* A ragged one: 1 and 2 queries, each of which may not see the item's first key. */
  static const char ragged[] =
      "{\"queries\":[[[1]],[[2],[3]]],\"bias\":[{\"dtype\":\"F32\",\"shape\":[1,1],\"base64\":"
      "\"AACA/w==\"},{\"dtype\":\"BF16\",\"shape\":[2,2],\"base64\":\"gP8AAID/AAA=\"}]}";
  const uint8_t mask[] = {0, 0, 1, 0, 1};
  read_body(&r, BODY_JSON, ragged, sizeof ragged - 1);
  assert_int_equal(r.error.status, STATUS_OK);
  assert_memory_equal(r.request.asked.geometry.mask, mask, sizeof mask);
  assert_int_equal(r.request.asked.geometry.item[1].mask_at, 1);
  arena_free(&r.arena);
}

static void a_full_budget_at_every_step(void **state) {
  (void)state;
  struct body_made b =
      with_infinities("{" BATCH ",\"bias\":[[[1,-9999],[2,3]],[[4,5],[-9999,6]]]}");
  size_t refused = 0;
  for (size_t limit = 0;; limit += 100, refused++) {
    struct budget budget;
    struct body_result r = {0};
    budget_init(&budget, limit);
    arena_init(&r.arena, &budget);
    read_body(&r, BODY_SAFETENSORS, b.bytes, b.size);
    arena_free(&r.arena);
    assert_int_equal(atomic_load(&budget.used), 0);
    if (!r.error.status) break;
    assert_string_equal(r.error.limit, "memory_budget_bytes");
  }
  assert_true(refused > 100);
  body_free(&b);
}

/* --- the bytes of the answer --- */

static void the_answer_counts_by_its_form(void **state) {
  (void)state;
  /* 4 queries, 8 pairs, 2 heads, outputs of 3: 12 outputs, 16 weights, 8 pointers. */
#define ALL    BATCH ",\"return_attention\":true,\"return_pointers\":true"
#define RAGGED "\"queries\":[[[1]],[[2],[3]]]"
  static const struct {
    const char *text;
    bool binary, measures;
    size_t bytes;
  } all[] = {
      {"{" ALL "}", false, false, (12 + 16 + 8) * 16},
      {"{" ALL ",\"encoding_format\":\"base64\"}", false, false, (12 + 16) * 6 + 8 * 16},
      {"{" ALL "}", true, false, (12 + 16) * 4 + 8 * 8},
      {"{" ALL ",\"encoding_format\":\"base64\"}", true, false, (12 + 16) * 4 + 8 * 8},
      {"{" RAGGED "}", true, false, 9 * 16},
      {"{" RAGGED ",\"encoding_format\":\"base64\"}", true, false, 9 * 6},
      {"{" RAGGED "}", true, true, 2 * 10 * 16},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    for (size_t less = 0; less < 2; less++) {
      struct body_result r = {0};
      struct body_terms terms =
          body_read_terms(all[i].measures ? ASK_HEADS : ASK_ATTENTION, BODY_JSON);
      struct body_limits limits = body_read_wide;
      terms.wants_binary = all[i].binary;
      limits.max_answer_bytes = all[i].bytes - less;
      body_read(&r, &equal, &terms, &limits, all[i].text, strlen(all[i].text), 0, SIZE_MAX);
      if ((r.error.status == STATUS_TOO_LARGE) != less)
        fail_msg("%s: %d less than %zu: %s", all[i].text, (int)less, all[i].bytes, r.error.detail);
      if (less) assert_string_equal(r.error.limit, "max_answer_bytes");
      arena_free(&r.arena);
    }
}

static void an_output_of_v2_counts_by_its_own_form(void **state) {
  (void)state;
#define V2                                                                                       \
  "{\"inputs\":[{\"name\":\"queries\",\"datatype\":\"FP32\",\"shape\":[1,2,1],\"data\":[1,2]}]," \
  "\"outputs\":[%s%s%s]}"
#define OUTPUT(name, binary) "{\"name\":\"" name "\",\"parameters\":{\"binary_data\":" binary "}}"
  static const char *const outputs[] = {"", OUTPUT("outputs", "true"), OUTPUT("outputs", "false")};
  static const char *const weights[] = {"", OUTPUT("attention_weights", "true"),
                                        OUTPUT("attention_weights", "false")};
  static const size_t each[] = {0, 4, 16};
  for (int form = 1; form < 18; form++) {
    char text[400];
    struct body_result r = {0};
    const struct body_terms terms = body_read_terms(ASK_ATTENTION, BODY_V2);
    struct body_limits limits = body_read_wide;
    const int first = form % 3, second = form / 3 % 3;
    const bool less = form >= 9;
    if (first + second == 0) continue;
    /* 6 outputs, 8 weights */
    limits.max_answer_bytes = each[first] * 6 + each[second] * 8 - less;
    snprintf(text, sizeof text, V2, outputs[first], first && second ? "," : "", weights[second]);
    body_read(&r, &equal, &terms, &limits, text, strlen(text), 0, SIZE_MAX);
    if (less != (r.error.status == STATUS_TOO_LARGE) || (!less && r.error.status))
      fail_msg("%s: %s (%s)", text, r.error.detail, r.error.pointer);
    arena_free(&r.arena);
  }
}

/* The first look goes over many numbers at a time. */
static void hidden_keys_are_found_anywhere(void **state) {
  (void)state;
  enum { KEYS = 150 };
  for (size_t hidden = 0; hidden < KEYS; hidden++) {
    char text[4000] = "{\"queries\":[[1]],\"keys\":[[1]";
    struct body_result r = {0};
    for (size_t i = 1; i < KEYS; i++) strcat(text, ",[1]");
    strcat(text, "],\"bias\":[[");
    for (size_t i = 0; i < KEYS; i++)
      strcat(strcat(text, i ? "," : ""), i == hidden ? "-9999" : "0.5");
    accept(&r, strcat(text, "]]}"));
    for (size_t i = 0; i < KEYS; i++)
      assert_int_equal(r.request.asked.geometry.mask[i], i != hidden);
    arena_free(&r.arena);
  }
}

/* What the layer may overwrite: each array of rows once, wherever it came from. 32 rows are two
 * lines of memory. */
static void rows_may_be_overwritten(void **state) {
  (void)state;
#define Z21    "AAAAAAAAAAAAAAAAAAAAA"
#define HALVES Z21 Z21 Z21 Z21 "AA=="
  static const char text[] =
      "{\"queries\":{\"dtype\":\"F16\",\"shape\":[1,32,1],\"base64\":\"" HALVES "\"},"
      "\"keys\":[{\"dtype\":\"BF16\",\"shape\":[32,1],\"base64\":\"" HALVES "\"}],"
      "\"values\":[[[1]]]}";
  struct body_result r = {0};
  read_body(&r, BODY_JSON, text, sizeof text - 1);
  assert_string_equal(r.error.pointer, "/values/0");
  arena_free(&r.arena);
  static const char two[] =
      "{\"queries\":{\"dtype\":\"F16\",\"shape\":[1,32,1],\"base64\":\"" HALVES "\"},"
      "\"keys\":[{\"dtype\":\"BF16\",\"shape\":[32,1],\"base64\":\"" HALVES "\"}]}";
  read_body(&r, BODY_JSON, two, sizeof two - 1);
  assert_int_equal(r.error.status, STATUS_OK);
  const struct spare *spare = &r.request.asked.call.spare;
  assert_int_equal(spare->count, 2);
  assert_ptr_equal(spare->stretch[0].at, r.request.asked.call.queries);
  assert_ptr_equal(spare->stretch[1].at, r.request.asked.call.keys);
  for (size_t i = 0; i < 2; i++)
    assert_int_equal(spare->stretch[i].end - spare->stretch[i].at, 32 * sizeof(float));
  arena_free(&r.arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_mask_for_all_heads),
      cmocka_unit_test(a_mask_for_each_head),
      cmocka_unit_test(other_numbers_are_left_as_they_are),
      cmocka_unit_test(base64_says_it_too),
      cmocka_unit_test(a_full_budget_at_every_step),
      cmocka_unit_test(the_answer_counts_by_its_form),
      cmocka_unit_test(an_output_of_v2_counts_by_its_own_form),
      cmocka_unit_test(hidden_keys_are_found_anywhere),
      cmocka_unit_test(rows_may_be_overwritten),
  };
  return cmocka_run_group_tests_name("attention_sight", tests, NULL, NULL);
}
