/* test_forward: what stands between attentions, at every level beside the slow twin: norms and
 * activations. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/kernel/kernel.h"
#include "core/reference/ref_math.h"
#include "tests/support/levels.h"
#include "tests/support/random_call.h"

/* --- activations --- */

static const char *const names[] = {[ACTIVATION_RELU] = "relu",
                                    [ACTIVATION_GELU] = "gelu",
                                    [ACTIVATION_GELU_NEW] = "gelu_new",
                                    [ACTIVATION_SILU] = "silu",
                                    [ACTIVATION_QUICK_GELU] = "quick_gelu"};
enum { KINDS = sizeof names / sizeof *names };

/* How far a result is off, where 1 is allowed: 2 ulp, or 1e-7. */
static double fault_of(double right, float found) {
  int exponent;
  frexp(right, &exponent);
  return fabs(found - right) / fmax(2 * ldexp(1.0, exponent - 24), 1e-7);
}

static void check_activations(const struct kernel *k) {
  enum { N = 4099 };
  static float z[N], y[N];
  uint64_t state = 3;
  for (unsigned kind = 0; kind < KINDS; kind++) {
    double worst = 0;
    for (int part = 0; part < 100; part++) {
      for (size_t i = 0; i < N; i++)
        z[i] = part % 2 ? 12 * random_float(&state)
                        : ldexpf(random_float(&state), (int)random_below(&state, 60) - 40);
      memcpy(y, z, sizeof y);
      k->activate((enum activation)kind, N, y, NULL);
      for (size_t i = 0; i < N; i++) {
        const double fault = fault_of(ref_activate((enum activation)kind, z[i]), y[i]);
        if (!(fault <= worst)) worst = fault;
      }
    }
    if (!(worst <= 1))
      fail_msg("%s: %s is off by %.2f of what is allowed", cpu_level_name(k->level), names[kind],
               worst);
  }
}

static void activations_are_right(void **unused) {
  (void)unused;
  for_each_level(check_activations);
}

static void check_ends(const struct kernel *k) {
  for (unsigned kind = 0; kind < KINDS; kind++) {
    float z[] = {0, -0.0f, 1e30f, FLT_MAX, -1e30f, -FLT_MAX, -100, 100};
    k->activate((enum activation)kind, 8, z, NULL);
    assert_true(z[0] == 0 && z[1] == 0 && z[2] == 1e30f && z[3] == FLT_MAX);
    assert_true(z[4] == 0 && z[5] == 0 && fabsf(z[6]) < 1e-37f && z[7] == 100);
  }
}

static void the_ends_are_finite(void **unused) {
  (void)unused;
  for_each_level(check_ends);
}

/* Otherwise the loss would go unnoticed. */
static void check_not_finite(const struct kernel *k) {
  for (unsigned kind = 0; kind < KINDS; kind++) {
    float z[] = {INFINITY, -INFINITY, NAN, -1}, gated[] = {INFINITY, -INFINITY, NAN, -1};
    const float times[] = {0, 1, 0, INFINITY};
    k->activate((enum activation)kind, 4, z, NULL);
    k->activate((enum activation)kind, 4, gated, times);
    for (int i = 0; i < 4; i++) {
      assert_true(isfinite(z[i]) == (i == 3));
      assert_false(isfinite(gated[i]));
    }
  }
}

static void what_is_not_finite_stays_so(void **unused) {
  (void)unused;
  for_each_level(check_not_finite);
}

/* A number's bits depend on the number alone; what a gate multiplies is the ungated result. */
static void check_company(const struct kernel *k) {
  enum { N = 70 };
  float z[N], all[N], times[N], gated[N];
  uint64_t state = 4;
  for (size_t i = 0; i < N; i++) z[i] = 5 * random_float(&state), times[i] = random_float(&state);
  for (unsigned kind = 0; kind < KINDS; kind++) {
    memcpy(all, z, sizeof all);
    memcpy(gated, z, sizeof gated);
    k->activate((enum activation)kind, N, all, NULL);
    k->activate((enum activation)kind, N, gated, times);
    for (size_t i = 0; i < N; i++) {
      float one[2] = {z[i], 77};
      k->activate((enum activation)kind, 1, one, NULL);
      assert_memory_equal(&one[0], &all[i], sizeof *one);
      assert_true(one[1] == 77);
      assert_true(gated[i] == all[i] * times[i]);
    }
  }
}

static void bits_depend_on_the_number_alone(void **unused) {
  (void)unused;
  for_each_level(check_company);
}

/* --- norms --- */

enum { COUNT_MAX = 1030, ROWS = 3, GAP = 7 };

struct norm_case {
  struct kernel_norm norm;
  float x[ROWS * (COUNT_MAX + GAP)], y[ROWS * (COUNT_MAX + GAP)];
  float factor[COUNT_MAX], shift[COUNT_MAX];
};

/* Rows about `mean`, as wide as `size`. */
static void draw(struct norm_case *c, size_t count, bool rms, bool shift, double mean, double size,
                 uint64_t *state) {
  for (size_t i = 0; i < ROWS * (COUNT_MAX + GAP); i++) {
    c->x[i] = (float)(mean + size * (double)random_float(state));
    c->y[i] = 77;
  }
  for (size_t i = 0; i < COUNT_MAX; i++)
    c->factor[i] = random_float(state), c->shift[i] = random_float(state);
  c->norm = (struct kernel_norm){.rows = ROWS,
                                 .count = count,
                                 .rms = rms,
                                 .epsilon = 1e-5f,
                                 .factor = c->factor,
                                 .shift = shift ? c->shift : NULL,
                                 .x = c->x,
                                 .x_row = count + GAP,
                                 .y = c->y,
                                 .y_row = count + GAP};
}

/* Beside the twin, as far as float32 tells numbers about the mean apart. */
static void compare_norm(const struct kernel *k, struct norm_case *c, double allowed) {
  static double x[COUNT_MAX], right[COUNT_MAX];
  const struct kernel_norm *n = &c->norm;
  const uint32_t told = k->norm(n);
  float most = 0;
  for (size_t r = 0; r < ROWS; r++) {
    for (size_t i = 0; i < n->count; i++) x[i] = n->x[r * n->x_row + i];
    ref_norm(x, n->count, n->rms, n->epsilon, n->factor, n->shift, right);
    for (size_t i = 0; i < n->count; i++) {
      const float y = n->y[r * n->y_row + i];
      if (!(fabs(y - right[i]) <= allowed))
        fail_msg("%s: %zu of %zu: %g, not %g", cpu_level_name(k->level), i, n->count, y, right[i]);
      most = fmaxf(most, fabsf(y));
    }
    for (size_t i = n->count; r + 1 < ROWS && i < n->y_row; i++)
      assert_true(n->y[r * n->y_row + i] == 77);
  }
  assert_memory_equal(&most, &told, sizeof most);
}

static void check_norms(const struct kernel *k) {
  static struct norm_case c;
  uint64_t state = 9;
  for (size_t count = 1; count <= COUNT_MAX; count += count < 140 ? 1 : 89)
    for (unsigned kind = 0; kind < 4; kind++) {
      draw(&c, count, kind & 1, kind & 2, 0.3, 2, &state);
      compare_norm(k, &c, 3e-6);
    }
  draw(&c, 768, false, true, 100, 1, &state);
  compare_norm(k, &c, 1e-4);
  draw(&c, 768, false, true, 0, 1e-8, &state); /* epsilon is most of it */
  compare_norm(k, &c, 3e-6);
}

static void norms_are_right(void **unused) {
  (void)unused;
  for_each_level(check_norms);
}

/* Squares, and even sums, that float32 does not hold. */
static void check_large(const struct kernel *k) {
  static struct norm_case c;
  uint64_t state = 10;
  for (unsigned kind = 0; kind < 4; kind++) {
    draw(&c, 100, kind & 1, kind & 2, 0, 1e30, &state);
    compare_norm(k, &c, 3e-6);
    draw(&c, 100, kind & 1, kind & 2, 2e38, 1e38, &state);
    compare_norm(k, &c, 3e-6);
  }
  for (size_t i = 0; i < ROWS * (100 + GAP); i++) c.x[i] = i % 2 ? FLT_MAX : -FLT_MAX;
  compare_norm(k, &c, 3e-6);
}

static void large_rows_are_right(void **unused) {
  (void)unused;
  for_each_level(check_large);
}

/* The bits of a row depend on the row alone, also where it takes its own place. */
static void check_rows(const struct kernel *k) {
  static struct norm_case c, d;
  uint64_t state = 11;
  for (size_t count = 1; count < 200; count += 17) {
    draw(&c, count, count & 1, true, 1, 1, &state);
    k->norm(&c.norm);
    memcpy(d.x, c.x, sizeof d.x);
    for (size_t r = 0; r < ROWS; r++) {
      struct kernel_norm one = c.norm;
      one.rows = 1;
      one.x = one.y = d.x + r * one.x_row;
      k->norm(&one);
      assert_memory_equal(one.y, c.y + r * one.y_row, count * sizeof(float));
    }
  }
}

static void rows_do_not_know_each_other(void **unused) {
  (void)unused;
  for_each_level(check_rows);
}

/* A branch is added before the norm: the bits are those of the sum's norm, wherever the sum and the
 * result go; without a norm it is the sum alone. */
static void check_branches(const struct kernel *k) {
  static struct norm_case c, d;
  static float sum[ROWS * (COUNT_MAX + GAP)];
  uint64_t state = 13;
  for (size_t count = 1; count < 200; count += 11) {
    const size_t row = count + GAP;
    draw(&c, count, count & 1, true, 1, 1, &state);
    memcpy(&d, &c, sizeof d);
    for (size_t i = 0; i < ROWS * row; i++) d.y[i] = random_float(&state), sum[i] = c.x[i] + d.y[i];
    d.norm = c.norm;
    d.norm.x = d.x, d.norm.branch = d.y, d.norm.sum = d.x, d.norm.y = d.y;
    c.norm.x = sum;
    assert_int_equal(k->norm(&c.norm) <= k->norm(&d.norm), 1); /* the sum may be greater */
    for (size_t r = 0; r < ROWS; r++) {
      assert_memory_equal(d.x + r * row, sum + r * row, count * sizeof(float));
      assert_memory_equal(d.y + r * row, c.y + r * row, count * sizeof(float));
    }
    memcpy(d.x, c.x, sizeof d.x);
    d.norm.factor = NULL, d.norm.sum = d.y;
    for (size_t i = 0; i < ROWS * row; i++) d.y[i] = sum[i] - c.x[i];
    const uint32_t told = k->norm(&d.norm);
    float most = 0;
    for (size_t i = 0; i < ROWS * row; i++)
      if (i % row < count) most = fmaxf(most, fabsf(d.y[i]));
    assert_memory_equal(&most, &told, sizeof most);
  }
}

static void branches_are_added_before_norms(void **unused) {
  (void)unused;
  for_each_level(check_branches);
}

static void check_faults(const struct kernel *k) {
  static struct norm_case c;
  uint64_t state = 12;
  draw(&c, 33, false, true, 0, 1, &state);
  for (size_t i = 0; i < 33; i++) c.factor[i] = 3e38f;
  assert_true(k->norm(&c.norm) >= KERNEL_NOT_FINITE);
  for (size_t i = 0; i < 33; i++) c.factor[i] = 0;
  assert_true(k->norm(&c.norm) < KERNEL_NOT_FINITE);
  for (int norms = 0; norms < 2; norms++) {
    static struct norm_case d;
    memcpy(&d, &c, sizeof d);
    d.norm.factor = norms ? c.factor : NULL;
    d.norm.x = d.norm.branch = d.x, d.norm.sum = d.norm.y = d.y;
    d.x[32] = FLT_MAX; /* a sum beyond float32 shows, whatever the norm makes of it */
    assert_true(k->norm(&d.norm) >= KERNEL_NOT_FINITE);
  }
}

static void what_is_beyond_float32_is_told(void **unused) {
  (void)unused;
  for_each_level(check_faults);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(activations_are_right),
      cmocka_unit_test(the_ends_are_finite),
      cmocka_unit_test(what_is_not_finite_stays_so),
      cmocka_unit_test(bits_depend_on_the_number_alone),
      cmocka_unit_test(norms_are_right),
      cmocka_unit_test(large_rows_are_right),
      cmocka_unit_test(rows_do_not_know_each_other),
      cmocka_unit_test(branches_are_added_before_norms),
      cmocka_unit_test(what_is_beyond_float32_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
