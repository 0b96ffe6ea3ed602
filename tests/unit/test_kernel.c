/* test_kernel: the inner loops of every level that this processor has, each against plain C. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/kernel/kernel.h"
#include "tests/support/random_call.h"

static void for_each_level(void (*check)(const struct kernel *k)) {
  for (int level = 0; level <= (int)cpu_level(); level++) {
    const struct kernel *k = kernel_at((enum cpu_level)level);
    if (k) check(k);
  }
}

static double ulp_of(double x) {
  int exponent;
  frexp(x, &exponent);
  return ldexp(1.0, exponent - 24);
}

/* The greater error of the two; NaN is the worst of all, and stays. */
static double worse(double worst, double error) {
  return error > worst || isnan(error) ? error : worst;
}

/* The worst of all floats from `from` to `to`, both positive, every `step`-th. */
static double worst_exp(const struct kernel *k, float from, float to, float sign, uint32_t step) {
  enum { N = 4096 };
  float x[N], y[N];
  uint32_t bits, end;
  double worst = 0;
  memcpy(&bits, &from, sizeof bits);
  memcpy(&end, &to, sizeof end);
  while (bits <= end) {
    size_t n = 0;
    for (; n < N && bits <= end; bits += step) {
      memcpy(&x[n], &bits, sizeof bits);
      x[n++] *= sign;
    }
    k->exp(n, x, y);
    for (size_t i = 0; i < n; i++) {
      const double right = exp((double)x[i]);
      worst = worse(worst, fabs(y[i] - right) / ulp_of(right));
    }
  }
  return worst;
}

/* Lazily raised maxima leave scores up to 5.5 above them. */
static void check_exp(const struct kernel *k) {
  const double worst =
      worse(worst_exp(k, 0x1p-30f, 86.9f, -1, 211), worst_exp(k, 0x1p-30f, 5.6f, 1, 211));
  if (!(worst <= 2)) fail_msg("%s: exp is off by %.2f ulp", cpu_level_name(k->level), worst);
  const float ends[] = {0, -0.0f, -INFINITY, -3e38f, -1e-40f, -130.0f, -104.0f, -88.0f};
  float y[8];
  const unsigned mode = kernel_enter(); /* denormal numbers end as zero */
  k->exp(8, ends, y);
  kernel_leave(mode);
  assert_true(y[0] == 1 && y[1] == 1 && y[2] == 0 && y[3] == 0 && y[4] == 1);
  assert_true(y[5] == 0 && y[6] == 0 && y[7] == 0);
}

static void exp_is_within_two_ulp(void **unused) {
  (void)unused;
  for_each_level(check_exp);
}

/* Every exponent, and the numbers around one, where the logarithm is small. */
static void check_log(const struct kernel *k) {
  enum { N = 4096 };
  float x[N], y[N];
  double worst = 0;
  for (int exponent = -125; exponent <= 130; exponent++) {
    for (int i = 0; i < N; i++) {
      const double at = (i + 0.5) / N;
      x[i] = exponent > 128 ? (float)(1 + (at - 0.5) / (exponent == 129 ? 1e2 : 1e5))
                            : ldexpf((float)(0.5 + at / 2), exponent);
    }
    k->log(N, x, y);
    for (int i = 0; i < N; i++)
      worst = worse(worst, fabs(y[i] - log((double)x[i])) / ulp_of(log((double)x[i])));
  }
  if (!(worst <= 2)) fail_msg("%s: log is off by %.2f ulp", cpu_level_name(k->level), worst);
  const float ends[] = {1, 0, 0x1p-126f};
  k->log(3, ends, y);
  assert_true(y[0] == 0 && isfinite(y[1]) && fabs(y[2] - log(0x1p-126)) < 1e-5);
}

static void log_is_within_two_ulp(void **unused) {
  (void)unused;
  for_each_level(check_log);
}

static void check_dot(const struct kernel *k) {
  float x[100], y[100];
  uint64_t state = 4;
  for (size_t n = 0; n <= 100; n++) {
    double right = 0;
    for (size_t i = 0; i < n; i++) {
      x[i] = random_float(&state), y[i] = 3e38f * random_float(&state);
      right += (double)x[i] * (double)y[i];
    }
    assert_true(fabs(k->dot(n, x, y) - right) <= 1e-12 * 3e38);
  }
}

static void dots_are_summed_in_double(void **unused) {
  (void)unused;
  for_each_level(check_dot);
}

/* Magnitudes spread over all exponents, and once more where the two formulas meet. */
static void check_tanh(const struct kernel *k) {
  enum { N = 4096 };
  float x[N], y[N];
  double worst = 0;
  uint64_t state = 5;
  for (int part = 0; part < 200; part++) {
    for (int i = 0; i < N; i++) {
      const double near = part % 2 ? 1.3 * random_float(&state) : 0;
      x[i] = (float)(near + exp2(3.5 - 30 * fabs((double)random_float(&state))));
      if (i % 3 == 0) x[i] = -x[i];
    }
    k->tanh(N, x, y);
    for (int i = 0; i < N; i++) {
      const double right = tanh((double)x[i]);
      worst = worse(worst, fabs(y[i] - right) / ulp_of(right));
      assert_true(fabsf(y[i]) <= 1);
    }
  }
  if (!(worst <= 2)) fail_msg("%s: tanh is off by %.2f ulp", cpu_level_name(k->level), worst);
  const float ends[] = {0, 3e38f, -3e38f, INFINITY, -INFINITY};
  k->tanh(5, ends, y);
  assert_true(y[0] == 0 && y[1] == 1 && y[2] == -1 && y[3] == 1 && y[4] == -1);
}

static void tanh_is_within_two_ulp(void **unused) {
  (void)unused;
  for_each_level(check_tanh);
}

enum { DEPTH = 37, ROWS = 45 };

static void check_product(const struct kernel *k) {
  uint64_t state = 3;
  for (size_t vectors = 1; vectors <= k->vectors; vectors++) {
    const size_t width = vectors * k->lanes;
    float a[ROWS * DEPTH], b[DEPTH * KERNEL_PANEL_MAX], start[KERNEL_PANEL_MAX];
    float c[ROWS * KERNEL_PANEL_MAX], one[KERNEL_PANEL_MAX];
    for (size_t i = 0; i < ROWS * DEPTH; i++) a[i] = random_float(&state);
    for (size_t i = 0; i < DEPTH * width; i++) b[i] = random_float(&state);
    for (size_t i = 0; i < width; i++) start[i] = random_float(&state);
    struct kernel_product p = {.depth = DEPTH,
                               .vectors = vectors,
                               .a = a,
                               .a_row = DEPTH,
                               .a_step = 1,
                               .b = b,
                               .b_row = width,
                               .start = start,
                               .c = c,
                               .c_row = width};
    for (p.rows = 0; p.rows <= ROWS; p.rows++) {
      k->product(&p);
      for (size_t i = 0; i < p.rows; i++) {
        struct kernel_product alone = p;
        alone.rows = 1, alone.a = a + i * DEPTH, alone.c = one;
        k->product(&alone);
        assert_memory_equal(one, c + i * width, width * sizeof(float));
        for (size_t j = 0; j < width; j++) {
          double sum = start[j];
          for (size_t x = 0; x < DEPTH; x++) sum += (double)a[i * DEPTH + x] * b[x * width + j];
          assert_true(fabs(sum - one[j]) < 1e-5);
        }
      }
    }
  }
}

/* Panels side by side give what each gives by itself. */
static void check_panels(const struct kernel *k) {
  enum { MOST = 5, FEW = 7 };
  const size_t width = kernel_panel(k);
  static float a[FEW * DEPTH], b[MOST * DEPTH * KERNEL_PANEL_MAX], start[MOST * KERNEL_PANEL_MAX];
  static float c[FEW * MOST * KERNEL_PANEL_MAX], one[FEW * KERNEL_PANEL_MAX];
  uint64_t state = 8;
  for (size_t i = 0; i < FEW * DEPTH; i++) a[i] = random_float(&state);
  for (size_t i = 0; i < MOST * DEPTH * width; i++) b[i] = random_float(&state);
  for (size_t i = 0; i < MOST * width; i++) start[i] = random_float(&state);
  struct kernel_product p = {.depth = DEPTH,
                             .vectors = k->vectors,
                             .a = a,
                             .a_row = DEPTH,
                             .a_step = 1,
                             .b_row = width,
                             .b_panel = DEPTH * width};
  for (p.rows = 1; p.rows <= FEW; p.rows++)
    for (size_t panels = 1; panels <= MOST; panels++) {
      p.panels = panels, p.b = b, p.start = start, p.c = c, p.c_row = panels * width;
      k->product(&p);
      for (size_t i = 0; i < panels; i++) {
        struct kernel_product alone = p;
        alone.panels = 0, alone.b = b + i * p.b_panel, alone.start = start + i * width;
        alone.c = one, alone.c_row = width;
        k->product(&alone);
        for (size_t r = 0; r < p.rows; r++)
          assert_memory_equal(one + r * width, c + r * p.c_row + i * width, width * sizeof(float));
      }
    }
}

static void panels_are_products(void **unused) {
  (void)unused;
  for_each_level(check_panels);
}

static void products_are_right_and_rows_alone_in_their_bits(void **unused) {
  (void)unused;
  for_each_level(check_product);
}

static void check_carry(const struct kernel *k) {
  enum { MOST = 70, ROW = 73, TO_ROW = 75 };
  float from[3 * ROW] = {0}, to[3 * TO_ROW];
  for (size_t n = 0; n <= MOST; n++) {
    for (size_t i = 0; i < 3 * ROW; i++) {
      const float x = i % 3 ? (float)i : -(float)i;
      from[i] = i % ROW < n ? x : INFINITY;
    }
    for (size_t i = 0; i < 3 * TO_ROW; i++) to[i] = 42;
    const float most = n ? (float)(2 * ROW + n - 1) : 0;
    uint32_t bits;
    memcpy(&bits, &most, sizeof bits);
    assert_int_equal(k->carry(3, n, from, ROW, to, TO_ROW), bits);
    for (size_t i = 0; i < 3; i++) {
      assert_memory_equal(from + i * ROW, to + i * TO_ROW, n * sizeof(float));
      for (size_t j = n; j < TO_ROW; j++) assert_true(to[i * TO_ROW + j] == 42);
    }
    for (size_t i = 0; i < n; i++) {
      float *at = &from[i % 3 * ROW + i], kept = *at;
      *at = i % 2 ? NAN : -INFINITY;
      assert_true(k->carry(3, n, from, ROW, to, TO_ROW) >= KERNEL_NOT_FINITE);
      assert_int_equal(k->peak(n, from + i % 3 * ROW) >= KERNEL_NOT_FINITE, true);
      *at = kept;
    }
  }
}

static void carry_copies_and_finds_the_greatest(void **unused) {
  (void)unused;
  for_each_level(check_carry);
}

/* --- rotary positions --- */

/* Right but for rounding to float; a row ends where it ends. */
static void check_angles(const struct kernel *k) {
  enum { MOST = 37 };
  double by[48] = {0};
  float angle[2 * MOST + 1];
  uint64_t state = 40;
  for (size_t i = 0; i < MOST; i++) by[i] = i == 0 ? 1 : pow(10, -6.0 * (double)i / MOST);
  for (int n = 0; n < 3000; n++) {
    const size_t half = (size_t)n % (MOST + 1);
    const double p = n < 500 ? n - 250 : (double)random_float(&state) * 0x1p31;
    angle[2 * half] = 42;
    k->angles(p, half, by, angle);
    assert_true(angle[2 * half] == 42);
    for (size_t i = 0; i < half; i++) {
      const long double x = (long double)(p * by[i]);
      const double off = (double)fmaxl(fabsl(angle[i] - cosl(x)), fabsl(angle[half + i] - sinl(x)));
      if (!(off <= 6.1e-8))
        fail_msg("%s: off by %.3g at %.17g", cpu_level_name(k->level), off, (double)x);
    }
  }
  const double quarter = 1.57079632679489661923;
  for (int n = -4; n <= 4; n++) {
    const int sine[] = {0, 1, 0, -1}, cosine[] = {1, 0, -1, 0};
    by[0] = quarter;
    k->angles(n, 1, by, angle);
    assert_true(fabsf(angle[0] - (float)cosine[n & 3]) < 1e-15f);
    assert_true(fabsf(angle[1] - (float)sine[n & 3]) < 1e-15f);
  }
  by[0] = KERNEL_ANGLE_MAX;
  k->angles(-1, 1, by, angle);
  assert_true(fabs(angle[0] - cos(KERNEL_ANGLE_MAX)) < 6.1e-8);
  assert_true(fabs(angle[1] + sin(KERNEL_ANGLE_MAX)) < 6.1e-8);
}

static void angles_are_right(void **unused) {
  (void)unused;
  for_each_level(check_angles);
}

static void check_rotate(const struct kernel *k) {
  enum { MOST = 35, TURNED = 3, ROW = 2 * MOST + 3 };
  float x[TURNED * ROW], turned[TURNED * ROW], angle[TURNED * 2 * MOST];
  uint64_t state = 41;
  for (size_t half = 0; half <= MOST; half++) {
    float most = 0;
    uint32_t bits;
    for (size_t i = 0; i < TURNED * ROW; i++) x[i] = turned[i] = random_float(&state);
    for (size_t i = 0; i < TURNED * 2 * half; i++) angle[i] = random_float(&state);
    const uint32_t top = k->rotate(TURNED, half, angle, turned, ROW);
    for (size_t r = 0; r < TURNED; r++)
      for (size_t i = 0; i < ROW; i++) {
        const float *row = x + r * ROW, *by = angle + r * 2 * half;
        float right = row[i];
        if (i < half)
          right = row[i] * by[i] - row[half + i] * by[half + i];
        else if (i < 2 * half)
          right = row[i] * by[i - half] + row[i - half] * by[i];
        assert_true(turned[r * ROW + i] == right);
        if (i < 2 * half) most = fmaxf(most, fabsf(right));
      }
    memcpy(&bits, &most, sizeof bits);
    assert_int_equal(top, bits);
    if (half == 0) continue;
    turned[ROW + 2 * half - 1] = NAN;
    assert_true(k->rotate(TURNED, half, angle, turned, ROW) >= KERNEL_NOT_FINITE);
  }
}

static void rotating_turns_pairs(void **unused) {
  (void)unused;
  for_each_level(check_rotate);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(exp_is_within_two_ulp),
      cmocka_unit_test(tanh_is_within_two_ulp),
      cmocka_unit_test(log_is_within_two_ulp),
      cmocka_unit_test(dots_are_summed_in_double),
      cmocka_unit_test(products_are_right_and_rows_alone_in_their_bits),
      cmocka_unit_test(panels_are_products),
      cmocka_unit_test(carry_copies_and_finds_the_greatest),
      cmocka_unit_test(angles_are_right),
      cmocka_unit_test(rotating_turns_pairs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
