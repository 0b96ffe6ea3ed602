/* test_tensor_bytes: arrays that come as bytes, of every type, in pieces of every size. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/json/tensor_bytes.h"

static const struct tensor_rule floats = {.field = "keys",
                                          .type = TENSOR_FLOAT,
                                          .depth_min = 2,
                                          .depth_max = 3,
                                          .ragged_depth = 3,
                                          .width = 4,
                                          .width_name = "key_size",
                                          .max_elements = 5};
static const struct tensor_rule flags = {
    .field = "mask", .type = TENSOR_FLAG, .depth_min = 2, .depth_max = 3, .ragged_depth = 3};
static const struct tensor_rule integers = {
    .field = "valid_lens", .type = TENSOR_INTEGER, .depth_max = 2, .ragged_depth = 2};
static const struct tensor_rule one = {
    .field = "head_mask", .type = TENSOR_FLOAT, .depth_min = 1, .depth_max = 1, .ragged_depth = 3};

static void dtypes_by_name(void **state) {
  (void)state;
  static const struct {
    const char *name;
    enum tensor_dtype dtype;
    size_t size;
  } all[] = {{"F32", DTYPE_F32, 4},   {"F16", DTYPE_F16, 2}, {"BF16", DTYPE_BF16, 2},
             {"F64", DTYPE_F64, 8},   {"I32", DTYPE_I32, 4}, {"I64", DTYPE_I64, 8},
             {"BOOL", DTYPE_BOOL, 1}, {"U8", DTYPE_U8, 1}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    assert_int_equal(tensor_dtype_of(all[i].name, strlen(all[i].name)), all[i].dtype);
    assert_int_equal(tensor_dtype_size(all[i].dtype), all[i].size);
  }
  assert_int_equal(tensor_dtype_of("F32 ", 4), DTYPE_NONE);
  assert_int_equal(tensor_dtype_of("F3", 2), DTYPE_NONE);
  assert_int_equal(tensor_dtype_of("f32", 3), DTYPE_NONE);
  assert_int_equal(tensor_dtype_of("", 0), DTYPE_NONE);
}

static void forms_against_rules(void **state) {
  (void)state;
  const struct {
    const struct tensor_rule *rule;
    struct tensor_form form;
    size_t bytes;
    const char *pointer, *why; /* why it is refused, or NULL */
  } all[] = {
      {&floats, {DTYPE_F32, 3, {2, 3, 4}}, 96, "", NULL},
      {&floats, {DTYPE_BF16, 2, {9, 4}}, 72, "", NULL},
      {&floats, {DTYPE_F64, 3, {0, 3, 4}}, 0, "", NULL},
      {&floats, {DTYPE_F16, 3, {5, 0, 4}}, 0, "", NULL},
      {&integers, {DTYPE_I64, 0, {0}}, 8, "", NULL},
      {&flags, {DTYPE_U8, 2, {3, 5}}, 15, "", NULL},
      {&floats, {DTYPE_I32, 3, {2, 3, 4}}, 0, "/keys", "the type must be F32, F16, BF16 or F64"},
      {&floats, {DTYPE_NONE, 3, {2, 3, 4}}, 0, "/keys", "the type must be F32, F16, BF16 or F64"},
      {&flags, {DTYPE_I32, 2, {3, 5}}, 0, "/mask", "the type must be BOOL or U8"},
      {&integers, {DTYPE_F32, 0, {0}}, 0, "/valid_lens", "the type must be I32 or I64"},
      {&floats, {DTYPE_F32, 1, {4}}, 0, "/keys", "the shape has 1 dimensions, expected 2 or 3"},
      {&floats,
       {DTYPE_F32, 8, {1, 1, 1, 1}},
       0,
       "/keys",
       "the shape has 8 dimensions, expected 2 or 3"},
      {&integers,
       {DTYPE_I32, 3, {1, 1, 1}},
       0,
       "/valid_lens",
       "the shape has 3 dimensions, expected 0 to 2"},
      {&one, {DTYPE_F32, 2, {1, 1}}, 0, "/head_mask", "the shape has 2 dimensions, expected 1"},
      {&floats,
       {DTYPE_F32, 2, {9, 5}},
       0,
       "/keys",
       "the last dimension is 5, expected 4 (the model's key_size)"},
      {&floats,
       {DTYPE_F32, 3, {3, SIZE_MAX / 2, 4}},
       0,
       "/keys",
       "the shape is too large for the address space"},
      {&floats,
       {DTYPE_F64, 2, {SIZE_MAX / 8, 4}},
       0,
       "/keys",
       "the shape is too large for the address space"},
      {&floats, {DTYPE_F32, 3, {6, 1, 4}}, 0, "", "6 items exceed the limit of 5"},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    struct error e = {0};
    size_t bytes = 0;
    tensor_form_check(&all[i].form, all[i].rule, &bytes, &e);
    assert_string_equal(e.detail, all[i].why ? all[i].why : "");
    assert_string_equal(e.pointer, all[i].pointer);
    if (!all[i].why) assert_int_equal(bytes, all[i].bytes);
    if (all[i].why && !all[i].pointer[0]) assert_string_equal(e.limit, "max_items");
  }
}

/* --- bytes to numbers --- */

struct made {
  struct arena arena;
  struct tensor tensor;
  struct error error;
};

/* In pieces of `piece` bytes, each in memory of its own size; more is offered than is expected. */
static void make(struct made *m, const struct tensor_rule *rule, const struct tensor_form *form,
                 const void *bytes, size_t size, size_t piece) {
  memset(m, 0, sizeof *m);
  size_t expected = 0;
  struct tensor_bytes t;
  assert_int_equal(tensor_form_check(form, rule, &expected, &m->error), STATUS_OK);
  assert_int_equal(expected, size);
  tensor_bytes_init(&t, form->dtype, expected, &m->arena);
  for (size_t at = 0, taken; at < size; at += taken) {
    char *copy = malloc(piece);
    assert_non_null(copy);
    memset(copy, 0x7f, piece);
    memcpy(copy, (const char *)bytes + at, size - at < piece ? size - at : piece);
    taken = tensor_bytes_feed(&t, copy, piece, &m->error);
    free(copy);
    assert_int_equal(taken, size - at < piece ? size - at : piece);
  }
  assert_int_equal(tensor_bytes_feed(&t, "more", 4, &m->error), 0);
  assert_int_equal(m->error.status, STATUS_OK);
  tensor_bytes_finish(&t, form, rule, &m->tensor, &m->error);
}

static void check_shape(const struct tensor *t, const struct tensor_form *form, size_t count) {
  assert_int_equal(t->depth, form->rank);
  assert_int_equal(t->elements, form->rank ? form->dim[0] : 0);
  assert_int_equal(t->count, count);
  assert_true(t->shaped);
  assert_null(t->ragged);
  assert_false(t->null);
  for (unsigned i = 0; i + 1 < TENSOR_DEPTH_MAX; i++)
    assert_int_equal(t->common.dim[i], i + 1 < form->rank ? form->dim[i + 1] : 0);
}

static void floats_of_every_type(void **state) {
  (void)state;
  const float want[8] = {1, -2, 0.5f, 65504, -0.0f, 0.25f, 3, 0x1p-14f};
  const double f64[8] = {1, -2, 0.5, 65504, -0.0, 0.25, 3, 0x1p-14};
  const uint16_t f16[8] = {0x3c00, 0xc000, 0x3800, 0x7bff, 0x8000, 0x3400, 0x4200, 0x0400};
  const uint16_t bf16[8] = {0x3f80, 0xc000, 0x3f00, 0x4780, 0x8000, 0x3e80, 0x4040, 0x3880};
  const struct {
    enum tensor_dtype dtype;
    const void *bytes;
    size_t size;
  } all[] = {{DTYPE_F32, want, sizeof want},
             {DTYPE_F64, f64, sizeof f64},
             {DTYPE_F16, f16, sizeof f16},
             {DTYPE_BF16, bf16, sizeof bf16}};
  for (size_t i = 0; i < 4; i++)
    for (size_t piece = 1; piece <= all[i].size + 3; piece++) {
      struct made m;
      const struct tensor_form form = {all[i].dtype, 3, {2, 1, 4}};
      make(&m, &floats, &form, all[i].bytes, all[i].size, piece);
      assert_int_equal(m.error.status, STATUS_OK);
      check_shape(&m.tensor, &form, 8);
      assert_int_equal((uintptr_t)m.tensor.data % 64, 0);
      float expected[8];
      memcpy(expected, want, sizeof want);
      if (all[i].dtype == DTYPE_BF16) expected[3] = 65536;
      assert_memory_equal(m.tensor.data, expected, sizeof expected);
      assert_int_equal(m.tensor.unjudged, all[i].dtype == DTYPE_F32);
      arena_free(&m.arena);
    }
}

/* Pieces cut numbers anywhere. */
static void many_numbers_are_converted(void **state) {
  (void)state;
  enum { MOST = 1100 };
  static uint16_t half[MOST];
  static double wide[MOST];
  static int64_t whole[MOST];
  for (size_t i = 0; i < MOST; i++) {
    half[i] = (uint16_t)(0x3f80 + i); /* as bfloat16 */
    uint32_t bits = (uint32_t)half[i] << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    wide[i] = value;
    whole[i] = (int64_t)i - 500;
  }
  const struct tensor_rule any = {
      .field = "x", .type = TENSOR_FLOAT, .depth_min = 1, .depth_max = 1, .ragged_depth = 2};
  struct tensor_rule integer = any;
  integer.type = TENSOR_INTEGER;
  for (size_t count = 0; count <= MOST; count += count < 520 ? 13 : 97) {
    struct made m[3];
    make(&m[0], &any, &(struct tensor_form){DTYPE_BF16, 1, {count}}, half, count * 2, 64);
    make(&m[1], &any, &(struct tensor_form){DTYPE_F64, 1, {count}}, wide, count * 8, 999);
    make(&m[2], &integer, &(struct tensor_form){DTYPE_I64, 1, {count}}, whole, count * 8, 100);
    for (size_t i = 0; i < count; i++) {
      assert_true(((float *)m[0].tensor.data)[i] == (float)wide[i]);
      assert_true(((float *)m[1].tensor.data)[i] == (float)wide[i]);
      assert_int_equal(((int32_t *)m[2].tensor.data)[i], whole[i]);
    }
    for (size_t i = 0; i < 3; i++) {
      assert_int_equal(m[i].error.status, STATUS_OK);
      arena_free(&m[i].arena);
    }
  }
}

static void numbers_that_are_not_finite_are_kept_and_told(void **state) {
  (void)state;
  const float single[4] = {1, -INFINITY, 2, NAN};
  const double wide[4] = {1, 1e39, 2, 3};
  const uint16_t half[4] = {0, 0, 0, 0xfc00};
  struct made m;
  make(&m, &floats, &(struct tensor_form){DTYPE_F32, 2, {1, 4}}, single, sizeof single, 5);
  assert_true(m.tensor.unjudged);
  assert_memory_equal(m.tensor.data, single, sizeof single);
  arena_free(&m.arena);
  make(&m, &floats, &(struct tensor_form){DTYPE_F64, 2, {1, 4}}, wide, sizeof wide, 5);
  assert_true(m.tensor.unjudged);
  assert_true(isinf(((float *)m.tensor.data)[1]));
  arena_free(&m.arena);
  make(&m, &floats, &(struct tensor_form){DTYPE_F16, 2, {1, 4}}, half, sizeof half, 5);
  assert_true(m.tensor.unjudged);
  assert_true(((float *)m.tensor.data)[3] == -INFINITY);
  arena_free(&m.arena);
}

static void flags_and_integers(void **state) {
  (void)state;
  const unsigned char flag[6] = {0, 1, 1, 0, 1, 0}, bad[6] = {0, 1, 1, 0, 2, 3};
  const int32_t narrow[2] = {-7, INT32_MAX};
  const int64_t wide[4] = {INT32_MIN, 3, INT32_MAX, 0};
  int64_t beyond[4] = {0, 1, 2, (int64_t)INT32_MAX + 1};
  struct tensor_form form = {DTYPE_BOOL, 3, {1, 2, 3}};
  struct made m;
  make(&m, &flags, &form, flag, sizeof flag, 4);
  assert_int_equal(m.error.status, STATUS_OK);
  check_shape(&m.tensor, &form, 6);
  assert_memory_equal(m.tensor.data, flag, sizeof flag);
  assert_false(m.tensor.unjudged);
  arena_free(&m.arena);
  form.dtype = DTYPE_U8;
  make(&m, &flags, &form, bad, sizeof bad, 4);
  assert_string_equal(m.error.pointer, "/mask/0/1/1");
  assert_string_equal(m.error.detail, "the byte of a flag must be 0 or 1");
  arena_free(&m.arena);

  form = (struct tensor_form){DTYPE_I32, 1, {2}};
  make(&m, &integers, &form, narrow, sizeof narrow, 3);
  check_shape(&m.tensor, &form, 2);
  assert_memory_equal(m.tensor.data, narrow, sizeof narrow);
  arena_free(&m.arena);
  form = (struct tensor_form){DTYPE_I64, 2, {2, 2}};
  make(&m, &integers, &form, wide, sizeof wide, 3);
  const int32_t want[4] = {INT32_MIN, 3, INT32_MAX, 0};
  check_shape(&m.tensor, &form, 4);
  assert_memory_equal(m.tensor.data, want, sizeof want);
  arena_free(&m.arena);
  make(&m, &integers, &form, beyond, sizeof beyond, 3);
  assert_string_equal(m.error.pointer, "/valid_lens/1/1");
  assert_string_equal(m.error.detail, "the number exceeds the 32-bit integer range");
  arena_free(&m.arena);
  form = (struct tensor_form){DTYPE_I64, 0, {0}};
  make(&m, &integers, &form, beyond + 3, 8, 3);
  assert_string_equal(m.error.pointer, "/valid_lens");
  arena_free(&m.arena);
  make(&m, &integers, &form, wide + 1, 8, 9);
  check_shape(&m.tensor, &form, 1);
  assert_int_equal(*(int32_t *)m.tensor.data, 3);
  arena_free(&m.arena);
}

/* --- memory --- */

static void memory_grows_with_what_is_there(void **state) {
  (void)state;
  enum { MIB = 1 << 20 };
  struct error e = {0};
  struct arena a = {0};
  struct tensor_bytes t;
  tensor_bytes_init(&t, DTYPE_F32, 64u * MIB, &a);
  assert_int_equal(a.bytes, 0);
  tensor_bytes_feed(&t, "x", 1, &e);
  assert_in_range(a.bytes, MIB, MIB + 4096);
  char *much = calloc(3, MIB);
  assert_non_null(much);
  tensor_bytes_feed(&t, much, 3u * MIB, &e);
  assert_in_range(a.bytes, 3 * MIB, 4 * MIB);
  free(much);
  arena_free(&a);
  tensor_bytes_init(&t, DTYPE_F32, 100, &a);
  tensor_bytes_feed(&t, "x", 1, &e);
  assert_in_range(a.bytes, 100, 1000);
  arena_free(&a);
  tensor_bytes_init(&t, DTYPE_NONE, SIZE_MAX, &a);
  tensor_bytes_feed(&t, "x", 1, &e);
  assert_in_range(a.bytes, 1, 8192);
  arena_free(&a);
}

static void a_full_budget_at_every_step(void **state) {
  (void)state;
  static const uint16_t half[4096];
  const struct tensor_form form = {DTYPE_F16, 3, {4, 256, 4}};
  size_t refused = 0;
  for (size_t limit = 0;; limit += 1500) {
    struct budget budget;
    struct arena a;
    struct error e = {0};
    struct tensor_bytes t;
    struct tensor out;
    budget_init(&budget, limit);
    arena_init(&a, &budget);
    tensor_bytes_init(&t, form.dtype, sizeof half, &a);
    if (tensor_bytes_feed(&t, half, sizeof half, &e) == sizeof half)
      tensor_bytes_finish(&t, &form, &floats, &out, &e);
    arena_free(&a);
    assert_int_equal(atomic_load(&budget.used), 0);
    if (!e.status) break;
    assert_string_equal(e.limit, "memory_budget_bytes");
    refused++;
  }
  assert_in_range(refused, 8, 16); /* once for the bytes, once for the floats */
  struct error e = {0};
  struct arena a = {0};
  struct tensor_bytes t;
  tensor_bytes_init(&t, DTYPE_NONE, SIZE_MAX, &a);
  assert_null(tensor_bytes_room(&t, SIZE_MAX / 4, &e));
  assert_int_equal(e.status, STATUS_TOO_LARGE);
  arena_free(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(dtypes_by_name),
      cmocka_unit_test(forms_against_rules),
      cmocka_unit_test(floats_of_every_type),
      cmocka_unit_test(many_numbers_are_converted),
      cmocka_unit_test(numbers_that_are_not_finite_are_kept_and_told),
      cmocka_unit_test(flags_and_integers),
      cmocka_unit_test(memory_grows_with_what_is_there),
      cmocka_unit_test(a_full_budget_at_every_step),
  };
  return cmocka_run_group_tests_name("tensor_bytes", tests, NULL, NULL);
}
