/* test_narrow: numbers kept in 16 bits where that loses nothing. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/kernel/gemm.h"
#include "core/kernel/narrow.h"
#include "tests/support/number_draw.h"

static const float both[] = {0, -0.0f, 1, -1.5f, 0x1p-14f, 0x1p-24f, -0x1.8p-16f, 240, 32768};
static const float brain[] = {65536, 0x1.fep127f, 0x1p-126f, 0x1p-133f, -0x1p-25f, 0x1.94p99f};
static const float half[] = {1.0009765625f, 65504, -0x1.ffcp15f, 0x1.ff8p-15f, 0x1.01p-15f};
static const float neither[] = {1.00048828125f, 0x1.001p20f,  0x1.001p-30f, 0.1f,
                                65520,          0x1.808p-16f, 0x1p-134f};

static void check(const float *x, size_t count, bool is_brain, bool is_half) {
  for (size_t i = 0; i < count; i++) {
    if (narrow_has(KERNEL_FLOAT16, x[i]) != is_half) fail_msg("%a as float16", (double)x[i]);
    if (narrow_has(KERNEL_BFLOAT16, x[i]) == is_brain) continue;
    fail_msg("%a as bfloat16", (double)x[i]);
  }
}

#define CHECK(x, is_brain, is_half) check(x, sizeof(x) / sizeof *(x), is_brain, is_half)

static void forms_have_their_numbers(void **unused) {
  (void)unused;
  CHECK(both, true, true);
  CHECK(brain, true, false);
  CHECK(half, false, true);
  CHECK(neither, false, false);
  for (uint32_t i = 0; i < 1 << 16; i++) {
    const float x = narrow_widen(KERNEL_FLOAT16, (uint16_t)i);
    if ((i & 0x7c00) != 0x7c00) assert_int_equal(narrow_number(KERNEL_FLOAT16, x), i);
    if ((i & 0x7c00) != 0x7c00) assert_true(narrow_has(KERNEL_FLOAT16, x));
    assert_int_equal(narrow_number(KERNEL_BFLOAT16, narrow_widen(KERNEL_BFLOAT16, (uint16_t)i)), i);
  }
}

/* Of many numbers, one that is none of a form, wherever it stands. */
static void the_narrowest_form_is_found(void **unused) {
  (void)unused;
  enum { COUNT = 200001 };
  float *x = calloc(COUNT, sizeof *x);
  assert_non_null(x);
  assert_int_equal(narrow_form(x, 0), KERNEL_BFLOAT16);
  static const size_t places[] = {0, 1, 65535, 65536, 131072, COUNT - 1};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    assert_int_equal(narrow_form(x, COUNT), KERNEL_BFLOAT16);
    x[places[i]] = half[0];
    assert_int_equal(narrow_form(x, COUNT), KERNEL_FLOAT16);
    x[COUNT / 2] = brain[0];
    assert_int_equal(narrow_form(x, COUNT), KERNEL_FLOAT32);
    x[COUNT / 2] = 0;
    x[places[i]] = neither[0];
    assert_int_equal(narrow_form(x, COUNT), KERNEL_FLOAT32);
    x[places[i]] = 0;
  }
  free(x);
}

/* The product of a matrix that is kept in 16 bits has the bits of the same matrix kept in 32, and
 * so have parts of the depth, panels that are narrow, and the weights of a column. */
static void check_matrix(enum kernel_form form, size_t out, size_t in, uint64_t *state) {
  enum { ROWS = 40 };
  struct error e = {0};
  float *weight = malloc(out * in * sizeof *weight), *x = malloc(ROWS * in * sizeof *x);
  float *row = malloc(in * sizeof *row);
  for (size_t i = 0; i < out * in; i++)
    weight[i] = narrow_widen(form, narrow_number(form, draw_common(state)));
  for (size_t i = 0; i < ROWS * in; i++) x[i] = draw_common(state);
  struct gemm *narrow = gemm_new(out, in, 1, weight, NULL, GEMM_NARROW, &e);
  struct gemm *wide = gemm_new(out, in, 1, weight, NULL, GEMM_PACKED, &e);
  assert_int_equal(gemm_form(narrow), form);
  assert_int_equal(gemm_form(wide), KERNEL_FLOAT32);
  assert_int_equal(2 * gemm_bytes(narrow), gemm_bytes(wide));
  const size_t stripe = gemm_stripe(wide);
  float *y = malloc(ROWS * stripe * sizeof *y), *right = malloc(ROWS * stripe * sizeof *right);
  for (size_t rows = 1; rows <= ROWS; rows += rows < 8 ? 1 : 16)
    for (size_t first = 0; first < out; first += gemm_columns(wide, first)) {
      const size_t bytes = gemm_columns(wide, first) * sizeof *y, part = in / 3;
      const struct gemm_input input = {.rows = rows, .x = x, .x_stride = in};
      gemm_run(narrow, first, &input, y);
      gemm_run(wide, first, &input, right);
      for (size_t i = 0; i < rows; i++)
        assert_memory_equal(y + i * stripe, right + i * stripe, bytes);
      gemm_add(narrow, first, rows, x, in, part, in - part, y);
      gemm_add(wide, first, rows, x, in, part, in - part, right);
      for (size_t i = 0; i < rows; i++)
        assert_memory_equal(y + i * stripe, right + i * stripe, bytes);
    }
  for (size_t j = 0; j < out; j += 7) {
    gemm_weights_of(narrow, j, row);
    assert_memory_equal(row, weight + j * in, in * sizeof *row);
  }
  gemm_free(narrow);
  gemm_free(wide);
  free(weight), free(x), free(row), free(y), free(right);
}

static void a_matrix_in_16_bits_gives_the_same(void **unused) {
  (void)unused;
  static const size_t sizes[][2] = {{1, 3}, {64, 70}, {130, 200}, {75, 1}, {200, 2500}};
  uint64_t state = 5;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (enum kernel_form form = KERNEL_BFLOAT16; form < KERNEL_FORMS; form++)
      check_matrix(form, sizes[i][0], sizes[i][1], &state);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(forms_have_their_numbers),
                                     cmocka_unit_test(the_narrowest_form_is_found),
                                     cmocka_unit_test(a_matrix_in_16_bits_gives_the_same)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
