/* test_gemm: both engines of the matrix product against plain sums: groups, stripes, parts of the
 * depth; and the bits of the packed one. Runs at the level that ATTEND_CPU allows. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/kernel/gemm.h"
#include "core/kernel/kernel.h"
#include "tests/support/random_call.h"

enum { ROWS = 13 };

struct product {
  size_t out, in, groups;
  float *weight, *bias, *x; /* [out, in / groups], [out], [ROWS, in] */
  struct gemm *g;
};

static float *numbers(uint64_t *state, size_t count) {
  float *x = calloc(count, sizeof *x);
  for (size_t i = 0; i < count; i++) x[i] = random_float(state);
  return x;
}

static struct product product_new(size_t out, size_t in, size_t groups, bool bias,
                                  enum gemm_engine engine) {
  struct error e = {0};
  uint64_t state = out * 1000 + in;
  struct product p = {.out = out, .in = in, .groups = groups};
  p.weight = numbers(&state, out * in / groups);
  p.bias = numbers(&state, out);
  p.x = numbers(&state, ROWS * in);
  for (size_t i = 0; !bias && i < out; i++) p.bias[i] = 0;
  p.g = gemm_new(out, in, groups, p.weight, bias ? p.bias : NULL, engine, &e);
  assert_non_null(p.g);
  return p;
}

static void product_free(struct product *p) {
  gemm_free(p->g);
  free(p->weight);
  free(p->bias);
  free(p->x);
}

/* Inputs from .. to - 1 of the column's group, and what the sum begins with. */
static double plain(const struct product *p, size_t row, size_t column, size_t from, size_t to,
                    double sum) {
  const size_t deep = p->in / p->groups, group = column / (p->out / p->groups);
  for (size_t k = from; k < to; k++)
    sum += (double)p->weight[column * deep + k] * p->x[row * p->in + group * deep + k];
  return sum;
}

typedef void check_fn(const struct product *p, size_t first, size_t columns, float *y);

static void for_each_stripe(const struct product *p, check_fn *check) {
  float *y = malloc(ROWS * gemm_stripe(p->g) * sizeof *y);
  size_t seen = 0;
  for (size_t first = 0, columns; first < p->out; first += columns, seen += columns) {
    columns = gemm_columns(p->g, first);
    assert_true(columns > 0 && columns <= gemm_stripe(p->g));
    /* A stripe does not reach into the next group. */
    assert_int_equal(first / (p->out / p->groups), (first + columns - 1) / (p->out / p->groups));
    check(p, first, columns, y);
  }
  assert_int_equal(seen, p->out);
  free(y);
}

static void check_whole(const struct product *p, size_t first, size_t columns, float *y) {
  gemm_run(p->g, first, &(struct gemm_input){.rows = ROWS, .x = p->x, .x_stride = p->in}, y);
  for (size_t i = 0; i < ROWS; i++)
    for (size_t j = 0; j < columns; j++) {
      const double right = plain(p, i, first + j, 0, p->in / p->groups, p->bias[first + j]);
      assert_true(fabs(y[i * gemm_stripe(p->g) + j] - right) < 1e-5 * (double)(p->in + 1));
    }
}

/* The middle third of the depth is left out, as heads that are not needed are. */
static void check_parts(const struct product *p, size_t first, size_t columns, float *y) {
  const size_t low = p->in / 3, high = p->in - p->in / 3;
  for (int bias = 0; bias < 2; bias++) {
    gemm_start(p->g, first, ROWS, bias, y);
    gemm_add(p->g, first, ROWS, p->x, p->in, 0, low, y);
    gemm_add(p->g, first, ROWS, p->x, p->in, high, p->in - high, y);
    for (size_t i = 0; i < ROWS; i++)
      for (size_t j = 0; j < columns; j++) {
        const double begin = plain(p, i, first + j, 0, low, bias ? p->bias[first + j] : 0);
        const double right = plain(p, i, first + j, high, p->in, begin);
        assert_true(fabs(y[i * gemm_stripe(p->g) + j] - right) < 1e-5 * (double)(p->in + 1));
      }
  }
}

static const enum gemm_engine engines[] = {GEMM_PACKED, GEMM_OPENBLAS};
static const size_t sizes[][3] = {{1, 1, 1},     {64, 64, 1},  {130, 7, 1},
                                  {96, 40, 8},   {20, 100, 5}, {300, 6, 3},
                                  {512, 512, 8}, {66, 33, 33}, {200, 200, 2}};

static void for_each_product(bool grouped, check_fn *check) {
  for (size_t e = 0; e < 2; e++)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      const size_t groups = grouped ? sizes[i][2] : 1;
      struct product p = product_new(sizes[i][0], sizes[i][1], groups, i % 2, engines[e]);
      for_each_stripe(&p, check);
      product_free(&p);
    }
}

static void products_are_right(void **unused) {
  (void)unused;
  for_each_product(false, check_whole);
}

static void groups_see_only_their_own_inputs(void **unused) {
  (void)unused;
  for_each_product(true, check_whole);
}

static void parts_of_the_depth_add_up(void **unused) {
  (void)unused;
  for_each_product(false, check_parts);
}

/* --- bits --- */

enum { MANY = 140 };

/* One chain of multiply-adds over the inputs of the column's group, from the bias on. */
static float chain(const struct product *p, const float *x, size_t row, size_t column) {
  const size_t deep = p->in / p->groups, group = column / (p->out / p->groups);
  float sum = p->bias[column];
  for (size_t k = 0; k < deep; k++) {
    const float w = p->weight[column * deep + k], by = x[row * p->in + group * deep + k];
    sum = cpu_level() == CPU_PORTABLE ? w * by + sum : fmaf(w, by, sum);
  }
  return sum;
}

/* The stripe at `first` in one go; of one group, in two stretches of the depth, too. */
static void check_chains(const struct product *p, const float *x, const float *right, size_t first,
                         size_t rows) {
  const size_t stripe = gemm_stripe(p->g), columns = gemm_columns(p->g, first);
  const size_t cut = rows * 37 % p->in;
  float y[MANY * KERNEL_PANEL_MAX];
  for (int parts = 0; parts < (p->groups == 1 ? 2 : 1); parts++) {
    if (parts) {
      gemm_start(p->g, first, rows, true, y);
      gemm_add(p->g, first, rows, x, p->in, 0, cut, y);
      gemm_add(p->g, first, rows, x, p->in, cut, p->in - cut, y);
    } else {
      gemm_run(p->g, first, &(struct gemm_input){.rows = rows, .x = x, .x_stride = p->in}, y);
    }
    for (size_t i = 0; i < rows; i++)
      assert_memory_equal(y + i * stripe, right + i * p->out + first, columns * sizeof(float));
  }
}

/* Matrices that lie in cache, and that are read from memory; with and without a narrow last panel;
 * of depths that no chunk divides. */
static void every_number_is_one_chain_whatever_the_rows(void **unused) {
  (void)unused;
  static const size_t shapes[][3] = {{100, 100, 1}, {330, 1001, 1}, {1152, 260, 1}, {1280, 512, 2}};
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
    struct product p = product_new(shapes[s][0], shapes[s][1], shapes[s][2], true, GEMM_PACKED);
    uint64_t state = s;
    float *x = numbers(&state, MANY * p.in), *right = malloc(MANY * p.out * sizeof *right);
    for (size_t i = 0; i < MANY * p.out; i++) right[i] = chain(&p, x, i / p.out, i % p.out);
    for (size_t rows = 1; rows <= MANY; rows += rows < 42 ? 1 : 14)
      for (size_t first = 0; first < p.out; first += gemm_columns(p.g, first))
        check_chains(&p, x, right, first, rows);
    free(x), free(right);
    product_free(&p);
  }
}

static void a_weight_beyond_memory_is_an_error(void **unused) {
  (void)unused;
  struct error e = {0};
  const float nothing = 0;
  assert_null(gemm_new(SIZE_MAX / 2, 64, 1, &nothing, NULL, GEMM_PACKED, &e));
  assert_int_equal(e.status, STATUS_OUT_OF_MEMORY);
}

int main(void) {
  gemm_blas_init();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_are_right),
      cmocka_unit_test(groups_see_only_their_own_inputs),
      cmocka_unit_test(parts_of_the_depth_add_up),
      cmocka_unit_test(every_number_is_one_chain_whatever_the_rows),
      cmocka_unit_test(a_weight_beyond_memory_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
