/* test_kernel: the inner loops of every level that this processor has, each against plain C. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/kernel/kernel.h"
#include "core/kernel/narrow.h"
#include "tests/support/levels.h"
#include "tests/support/random_call.h"
#include "tests/support/rounds.h"

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
  for (size_t part = 0; part < rounds(200); part++) {
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

/* Numbers of every size, in rows of every length. What is not finite is a fault that a cap must not
 * cover. */
static void check_cap(const struct kernel *k) {
  enum { N = 67 };
  const float caps[] = {0.5f, 1, 7.3f, 30, 1e-30f, 1e30f};
  for (size_t i = 0; i < sizeof caps / sizeof *caps; i++)
    for (size_t n = 0; n <= N; n++) {
      const float cap = caps[i];
      float x[N + 1], y[N + 1];
      uint64_t state = 8 + n;
      for (size_t j = 0; j <= N; j++)
        x[j] = y[j] = cap * random_float(&state) * powf(10, 3 * random_float(&state));
      k->cap(cap, n, y);
      for (size_t j = 0; j < n; j++) {
        const double right = cap * tanh((double)x[j] / (double)cap);
        assert_true(fabs(y[j] - right) <= 5e-7 * fabs(right) && fabsf(y[j]) <= cap);
      }
      assert_true(y[n] == x[n]);
    }
  float ends[] = {INFINITY, -INFINITY, NAN, 3e38f, -3e38f, 0};
  k->cap(0.25f, 6, ends);
  assert_true(ends[0] == INFINITY && ends[1] == -INFINITY && isnan(ends[2]));
  assert_true(ends[3] == 0.25f && ends[4] == -0.25f && ends[5] == 0);
}

static void caps_are_right(void **unused) {
  (void)unused;
  for_each_level(check_cap);
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

/* --- weights --- */

enum { WEIGHT_ROWS = 140, WEIGHT_DEPTH = 150, WEIGHT_PANELS = 5 };

/* Chunks of a line of A, of some, and of more than there is. */
static const struct kernel_plan some_plans[] = {
    {.pass = 1, .ahead = 256},  {.pass = 4, .ahead = 4 << 10},   {.pass = 4, .ahead = 8 << 10},
    {.pass = 6, .ahead = 5000}, {.pass = 5, .ahead = 192 << 10}, {.pass = 2, .ahead = 2 << 10}};

struct weights_case {
  const struct kernel *k;
  float *a, *b, *start, *c, *right; /* right: [WEIGHT_ROWS, all columns] */
  enum kernel_form form;
  const void *kept; /* b in this form */
};

/* One chain of multiply-adds over the depth, from the start on. */
static float chain(const struct weights_case *t, size_t depth, size_t row, size_t column) {
  const size_t width = kernel_panel(t->k);
  const float *b = t->b + column / width * WEIGHT_DEPTH * width + column % width;
  float sum = t->start[column];
  for (size_t i = 0; i < depth; i++) {
    const float x = t->a[row * WEIGHT_DEPTH + i];
    sum = t->k->level == CPU_PORTABLE && t->k->bits == KERNEL_FASTEST ? x * b[i * width] + sum
                                                                      : fmaf(x, b[i * width], sum);
  }
  return sum;
}

static void check_plan(const struct weights_case *t, const struct kernel_plan *plan, size_t depth,
                       size_t panels) {
  const size_t width = kernel_panel(t->k), all = WEIGHT_PANELS * width;
  struct kernel_weights w = {.panels = panels,
                             .panel_step = WEIGHT_DEPTH * width,
                             .more = panels < WEIGHT_PANELS,
                             .plan = plan,
                             .first = {.depth = depth,
                                       .vectors = t->k->vectors,
                                       .a = t->a,
                                       .a_row = WEIGHT_DEPTH,
                                       .a_step = 1,
                                       .b = t->kept,
                                       .form = t->form,
                                       .b_row = width,
                                       .start = t->start,
                                       .c = t->c,
                                       .c_row = all}};
  for (size_t rows = 0; rows <= WEIGHT_ROWS; rows += rows < 14 ? 1 : 7) {
    w.first.rows = rows;
    for (size_t i = 0; i < WEIGHT_ROWS * all; i++) t->c[i] = 42;
    t->k->weights(&w);
    for (size_t i = 0; i < rows; i++)
      if (memcmp(t->c + i * all, t->right + i * all, panels * width * sizeof(float)))
        fail_msg("%s, %zu rows a pass, %zu bytes ahead: row %zu of %zu, depth %zu",
                 cpu_level_name(t->k->level), plan ? plan->pass : 0, plan ? plan->ahead : 0, i,
                 rows, depth);
    size_t changed = 0; /* beside what was asked for */
    for (size_t i = 0; i < WEIGHT_ROWS; i++)
      for (size_t j = i < rows ? panels * width : 0; j < all; j++)
        changed += t->c[i * all + j] != 42;
    assert_int_equal(changed, 0);
  }
}

static void check_form(const struct kernel *k, enum kernel_form form) {
  const size_t width = kernel_panel(k);
  static float a[WEIGHT_ROWS * WEIGHT_DEPTH];
  static float b[WEIGHT_PANELS * WEIGHT_DEPTH * KERNEL_PANEL_MAX];
  static float start[WEIGHT_PANELS * KERNEL_PANEL_MAX];
  static float c[WEIGHT_ROWS * WEIGHT_PANELS * KERNEL_PANEL_MAX];
  static float right[WEIGHT_ROWS * WEIGHT_PANELS * KERNEL_PANEL_MAX];
  static const size_t depths[] = {0, 17, WEIGHT_DEPTH};
  const size_t all = WEIGHT_PANELS * kernel_panel(k);
  uint64_t state = 8;
  for (size_t i = 0; i < sizeof a / sizeof *a; i++) a[i] = random_float(&state);
  static uint16_t narrow[sizeof b / sizeof *b];
  for (size_t i = 0; i < sizeof b / sizeof *b; i++) {
    b[i] = random_float(&state);
    if (form == KERNEL_FLOAT32) continue;
    const uint16_t x = narrow_number(form, b[i]);
    narrow[i / width * width + kernel_place(k, form, i % width)] = x;
    b[i] = narrow_widen(form, x);
  }
  const struct weights_case t = {k, a,     b,    start,
                                 c, right, form, form == KERNEL_FLOAT32 ? (const void *)b : narrow};
  for (size_t i = 0; i < sizeof start / sizeof *start; i++) start[i] = random_float(&state);
  for (size_t d = 0; d < sizeof depths / sizeof *depths; d++) {
    for (size_t i = 0; i < WEIGHT_ROWS * all; i++)
      right[i] = chain(&t, depths[d], i / all, i % all);
    for (size_t panels = 1; panels <= WEIGHT_PANELS; panels += panels < 4 ? 3 : 1) {
      check_plan(&t, NULL, depths[d], panels);
      for (size_t i = 0; i < sizeof some_plans / sizeof *some_plans; i++)
        check_plan(&t, &some_plans[i], depths[d], panels);
    }
  }
}

static void check_weights(const struct kernel *k) {
  for (enum kernel_form form = 0; form < KERNEL_FORMS; form++) check_form(k, form);
}

static void weights_are_one_chain_whatever_the_plan(void **unused) {
  (void)unused;
  for_each_level(check_weights);
}

/* All numbers of 16 bits, and stretches of any length. */
static void check_widen(const struct kernel *k) {
  enum { ALL = 1 << 16 };
  static uint16_t narrow[ALL];
  static float wide[ALL];
  for (size_t i = 0; i < ALL; i++) narrow[i] = (uint16_t)i;
  for (enum kernel_form form = KERNEL_BFLOAT16; form < KERNEL_FORMS; form++) {
    const unsigned mode = kernel_enter();
    k->widen(form, ALL, narrow, wide);
    kernel_leave(mode);
    for (size_t i = 0; i < ALL; i++) {
      const float x = narrow_widen(form, narrow[i]);
      if (form == KERNEL_FLOAT16 && (i & 0x7c00) == 0x7c00) continue; /* no finite number */
      if (memcmp(&x, &wide[i], sizeof x))
        fail_msg("%zx: %a, not %a", i, (double)wide[i], (double)x);
    }
    for (size_t n = 0; n < 40; n++) {
      for (size_t i = 0; i < 40; i++) wide[i] = 42;
      k->widen(form, n, narrow + 0x3c00, wide);
      for (size_t i = 0; i < 40; i++)
        assert_true(wide[i] == (i < n ? narrow_widen(form, (uint16_t)(0x3c00 + i)) : 42));
    }
  }
}

static void numbers_of_16_bits_are_widened(void **unused) {
  (void)unused;
  for_each_level(check_widen);
}

static void check_plans(const struct kernel *k) {
  for (size_t rows = 1; rows <= 2000; rows++) {
    const struct kernel_plan *plan = kernel_plan(k, rows, SIZE_MAX);
    assert_null(kernel_plan(k, rows, 1));
    assert_true(plan->rows >= rows && plan->pass >= 1 && plan->pass <= KERNEL_PASS_MAX);
    assert_true(plan->ahead >= kernel_panel(k) * sizeof(float));
  }
}

static void there_is_a_plan_for_any_number_of_rows(void **unused) {
  (void)unused;
  for_each_level(check_plans);
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

/* --- attention of any queries of a tile --- */

enum { QUERIES = 140, KEYS = 200, SIZE = 80, BLOCKS = (KEYS + KERNEL_KEYS - 1) / KERNEL_KEYS };
enum {
  REACH = 90,
  PLACES = 2 * REACH + 1,
  PLACES_ROW = PLACES + KERNEL_PANEL_MAX + 2 * KERNEL_LANES_MAX
};

/* What a tile is made of; rows are a little longer than what is in them. */
static struct {
  float query[QUERIES * (SIZE + 3)], key[KEYS * (SIZE + 3)], value[KEYS * (SIZE + 3)];
  float vector[SIZE], turned[BLOCKS * KERNEL_KEYS * SIZE], bias[QUERIES * KEYS];
  float relative[KERNEL_LANES_MAX + QUERIES + KEYS];
  float position_key[PLACES * SIZE], position_query[PLACES_ROW * SIZE];
  int32_t row[2 * (REACH + KERNEL_LANES_MAX) + 1]; /* of each distance */
  int32_t from[QUERIES], to[QUERIES];
  uint8_t mask[QUERIES * KEYS];
} given;

struct found {
  float context[QUERIES * SIZE], weights[QUERIES * KEYS];
  float top[QUERIES], factor[QUERIES], greatest[QUERIES];
  int32_t pointers[QUERIES];
};

static void fill(float *x, size_t count, float size, uint64_t *state) {
  for (size_t i = 0; i < count; i++) x[i] = size * random_float(state);
}

static bool one_of(size_t n, uint64_t *state) { return random_below(state, n) == 0; }

/* So many keys in turned blocks, and those behind them row by row, with NaN behind the last key. */
static void turn_keys(const struct kernel *k, struct kernel_tile *t, size_t turned) {
  const size_t d = t->head_size;
  for (size_t i = 0; i < BLOCKS * KERNEL_KEYS * SIZE; i++) given.turned[i] = NAN;
  for (size_t j = turned; j < t->keys; j++)
    memcpy(given.turned + j * d, t->key + j * t->key_row, d * sizeof(float));
  for (size_t j = 0; j < turned; j += KERNEL_KEYS) {
    float rows[KERNEL_KEYS * SIZE], *block = given.turned + j * d;
    for (size_t i = 0; i < KERNEL_KEYS; i++)
      memcpy(rows + i * d, t->key + (j + i) * t->key_row, d * sizeof(float));
    k->turn_keys(d, rows, block);
    for (size_t i = 0; i < KERNEL_KEYS; i++)
      for (size_t x = 0; x < d; x++)
        assert_memory_equal(&block[x * KERNEL_KEYS + i], &rows[i * d + x], sizeof(float));
  }
  t->turned = turned, t->key = given.turned, t->key_row = d;
}

static void draw_given(const struct kernel_tile *t, uint64_t *state) {
  static const float spread[] = {0.3f, 1, 1, 4, 20};
  const float size = spread[random_below(state, 5)];
  fill(given.query, QUERIES * (SIZE + 3), size, state);
  fill(given.key, KEYS * (SIZE + 3), 1, state);
  fill(given.value, KEYS * (SIZE + 3), one_of(4, state) ? 1e-37f : 1, state);
  for (size_t i = 0; t->huge && i < KEYS * (SIZE + 3); i++)
    given.value[i] =
        ldexpf(given.value[i], one_of(2, state) ? 127 : (int)random_below(state, 120) - 20);
  const bool repeated = one_of(3, state); /* scores are the same again and again */
  for (size_t j = 0; repeated && j < KEYS * (SIZE + 3); j++)
    given.key[j] = given.key[j % (9 * (SIZE + 3))];
  fill(given.vector, SIZE, size, state);
  fill(given.bias, QUERIES * KEYS, size, state);
  fill(given.relative, KERNEL_LANES_MAX + QUERIES + KEYS, size, state);
  fill(given.position_key, PLACES * SIZE, size, state);
  fill(given.position_query, PLACES_ROW * SIZE, size, state);
  const bool all = one_of(2, state), causal = one_of(2, state);
  for (size_t i = 0; i < QUERIES; i++) {
    given.from[i] = all || causal ? 0 : (int32_t)random_below(state, t->keys + 1);
    given.to[i] = (int32_t)(all ? t->keys : random_below(state, t->keys + 1));
    if (causal) given.to[i] = (int32_t)(i + 1 < t->keys ? i + 1 : t->keys);
  }
  for (size_t i = 0; i < QUERIES * KEYS; i++) given.mask[i] = !one_of(3, state);
}

/* Distances have a row each, or share some. */
static struct kernel_disentangled draw_disentangled(uint64_t *state) {
  struct kernel_disentangled d = {.query_row = PLACES_ROW,
                                  .row = given.row + REACH + KERNEL_LANES_MAX,
                                  .reach = REACH,
                                  .first = (int64_t)random_below(state, 400) - 200};
  const size_t shared = 1 + random_below(state, 3);
  int32_t row = 0;
  for (int32_t r = -REACH - KERNEL_LANES_MAX; r <= REACH + KERNEL_LANES_MAX; r++) {
    row += r > -REACH && r <= REACH && one_of(shared, state);
    given.row[r + REACH + KERNEL_LANES_MAX] = row;
  }
  if (!one_of(3, state)) d.key = given.position_key;
  if (!d.key || one_of(2, state)) d.query = given.position_query;
  return d;
}

static struct kernel_tile draw_tile(uint64_t *state) {
  struct kernel_tile t = {.queries = 1 + random_below(state, one_of(2, state) ? 12 : QUERIES),
                          .keys = 1 + random_below(state, KEYS),
                          .head_size = 1 + random_below(state, SIZE),
                          .value_head_size = random_below(state, SIZE + 1),
                          .query = given.query,
                          .key = given.key,
                          .value = given.value,
                          .query_row = SIZE + 3,
                          .key_row = SIZE + 3,
                          .value_row = SIZE + 3,
                          .scale = 1,
                          .sigmoid = one_of(5, state),
                          .careful = one_of(2, state),
                          .huge = one_of(3, state),
                          .context_row = SIZE,
                          .context_factor = one_of(3, state) ? -0.7f : 1,
                          .weights_row = KEYS,
                          .weights_factor = one_of(2, state) ? 1 / 3.0f : 1,
                          .mask_row = KEYS,
                          .bias_row = KEYS};
  if (one_of(3, state)) t.vector = given.vector;
  if (!t.vector) t.scale = 0.3f;
  if (one_of(3, state)) t.mask = given.mask;
  if (one_of(3, state)) t.bias = given.bias;
  if (one_of(3, state)) t.relative = given.relative + KERNEL_LANES_MAX + QUERIES;
  if (!t.vector && one_of(3, state)) t.disentangled = draw_disentangled(state);
  if (one_of(5, state)) t.select = SELECT_HARD;
  t.weights_add = t.weights_factor != 1;
  if (!t.vector && one_of(3, state)) t.cap = 0.5f + (float)random_below(state, 12);
  return t;
}

static void attend_rows(const struct kernel *k, const struct kernel_tile *whole, size_t first,
                        size_t count, struct found *f) {
  struct kernel_tile t = *whole;
  const size_t floats = (k->attend_scratch(t.head_size, t.value_head_size) + 15) / 16 * 16;
  float *scratch = aligned_alloc(64, floats * sizeof *scratch);
  for (size_t i = 0; i < floats; i++) scratch[i] = NAN;
  t.queries = count;
  t.query += first * t.query_row;
  t.from = given.from + first, t.to = given.to + first;
  if (t.mask) t.mask += first * t.mask_row;
  if (t.bias) t.bias += first * t.bias_row;
  if (t.relative) t.relative -= first;
  t.disentangled.first += (int64_t)first;
  t.context = f->context + first * t.context_row;
  t.weights = f->weights + first * t.weights_row;
  t.top = f->top + first, t.factor = f->factor + first;
  t.greatest = f->greatest + first, t.pointers = f->pointers + first;
  assert_true(k->attend(1, &t, scratch));
  free(scratch);
}

/* In tiles of up to `most` queries each. */
static void attend_in_tiles(const struct kernel *k, const struct kernel_tile *t, size_t most,
                            uint64_t *state, struct found *f) {
  const unsigned mode = kernel_enter();
  memset(f, 0, sizeof *f);
  for (size_t first = 0, count; first < t->queries; first += count) {
    count = state ? 1 + random_below(state, most) : most;
    if (count > t->queries - first) count = t->queries - first;
    attend_rows(k, t, first, count, f);
  }
  kernel_leave(mode);
}

/* A `top` may be either zero: no score differs from it by more than itself. */
static void same_found(const char *level, const struct kernel_tile *t, const struct found *x,
                       const struct found *y) {
  for (size_t i = 0; i < t->queries && t->select == SELECT_SOFT; i++)
    assert_true(x->top[i] == y->top[i]);
  if (memcmp(x->context, y->context, sizeof x->context))
    fail_msg("%s: contexts of q %zu k %zu d %zu, %zu differ", level, t->queries, t->keys,
             t->head_size, t->value_head_size);
  assert_memory_equal(x->weights, y->weights, sizeof x->weights);
  if (t->select == SELECT_SOFT) assert_memory_equal(x->factor, y->factor, sizeof x->factor);
  assert_memory_equal(x->greatest, y->greatest, sizeof x->greatest);
  assert_memory_equal(x->pointers, y->pointers, sizeof x->pointers);
}

static void check_company(const struct kernel *k) {
  static struct found whole, cut;
  const char *level = cpu_level_name(k->level);
  for (uint64_t round = 0; round < rounds(300); round++) {
    uint64_t state = 600 + round;
    struct kernel_tile t = draw_tile(&state);
    draw_given(&t, &state);
    const size_t most = k->attend_queries(t.head_size, t.value_head_size);
    attend_in_tiles(k, &t, most, NULL, &whole);
    for (size_t i = 0; i < t.queries * SIZE; i++)
      assert_true(isfinite(whole.context[i]) || t.sigmoid); /* no mean, but a sum */
    attend_in_tiles(k, &t, one_of(2, &state) ? 4 : 20, &state, &cut);
    same_found(level, &t, &whole, &cut);
    const size_t blocks = t.keys / KERNEL_KEYS;
    turn_keys(k, &t, (blocks - random_below(&state, blocks + 1) / 2) * KERNEL_KEYS);
    attend_in_tiles(k, &t, most, NULL, &cut);
    same_found(level, &t, &whole, &cut);
    attend_in_tiles(k, &t, one_of(2, &state) ? 4 : 20, &state, &cut);
    same_found(level, &t, &whole, &cut);
  }
}

enum { HEADS = 6 };

/* Heads of a few columns of what is given, whose weights are added up if the tile says so. One may
 * be without a context. */
static void make_heads(const struct kernel_tile *t, struct kernel_tile head[HEADS],
                       struct found found[HEADS], bool one_is_masked) {
  memset(found, 0, HEADS * sizeof *found);
  for (size_t h = 0; h < HEADS; h++) {
    struct found *f = &found[h];
    head[h] = *t;
    head[h].query += h % 4, head[h].key += h % 4, head[h].value += h % 4; /* rows have 3 more */
    head[h].from = given.from, head[h].to = given.to;
    head[h].context = f->context;
    head[h].weights = t->weights_add ? found[0].weights : f->weights;
    head[h].top = f->top, head[h].factor = f->factor;
    head[h].greatest = f->greatest, head[h].pointers = f->pointers;
    if (one_is_masked && h == 2) head[h].value_head_size = 0;
  }
}

/* Whether heads go through the keys side by side or one after the other changes no bit. */
static void check_heads(const struct kernel *k) {
  static struct found alone[HEADS], together[HEADS];
  struct kernel_tile head[HEADS];
  for (uint64_t round = 0; round < rounds(200); round++) {
    uint64_t state = 1600 + round;
    struct kernel_tile t = draw_tile(&state);
    draw_given(&t, &state);
    const size_t most = k->attend_queries(t.head_size, t.value_head_size);
    t.queries = 1 + random_below(&state, most < 12 ? most : 12);
    const size_t floats = (k->attend_scratch(t.head_size, t.value_head_size) + 15) / 16 * 16;
    float *scratch = aligned_alloc(64, floats * sizeof *scratch);
    for (size_t i = 0; i < floats; i++) scratch[i] = NAN;
    const bool one_is_masked = one_of(3, &state);
    const unsigned mode = kernel_enter();
    make_heads(&t, head, alone, one_is_masked);
    for (size_t h = 0; h < HEADS; h++) assert_true(k->attend(1, &head[h], scratch));
    make_heads(&t, head, together, one_is_masked);
    for (size_t h = 0, n; h < HEADS; h += n) {
      n = 1 + random_below(&state, HEADS - h);
      assert_true(k->attend(n, &head[h], scratch));
    }
    kernel_leave(mode);
    for (size_t h = 0; h < HEADS; h++)
      same_found(cpu_level_name(k->level), &t, &alone[h], &together[h]);
    free(scratch);
  }
}

/* Heads without contexts of their own are small, so that more of them could go side by side: but
 * there is scratch for heads that have one. */
static void check_scratch(const struct kernel *k) {
  const size_t panel = kernel_panel(k), keys = k->lanes;
  const size_t size = 32768 / panel - 7; /* with one number of a value a panel takes a little more
                                            than half of what all panels may */
  const size_t floats = k->attend_scratch(size, 1), behind = panel;
  float *rows = calloc(keys * size, sizeof *rows);
  float *scratch = aligned_alloc(64, (floats + behind + 15) / 16 * 16 * sizeof *scratch);
  const int32_t from = 0, to = (int32_t)keys;
  struct kernel_tile head[2] = {{.queries = 1,
                                 .keys = keys,
                                 .head_size = size,
                                 .query = rows,
                                 .key = rows,
                                 .value = rows,
                                 .query_row = size,
                                 .key_row = size,
                                 .value_row = size,
                                 .scale = 1,
                                 .from = &from,
                                 .to = &to}};
  head[1] = head[0];
  for (size_t i = 0; i < behind; i++) scratch[floats + i] = 7;
  assert_true(k->attend(2, head, scratch));
  for (size_t i = 0; i < behind; i++) assert_true(scratch[floats + i] == 7);
  free(rows);
  free(scratch);
}

/* Where a context leaves float32 its weights are shrunk, by as much as its own keys ask for:
 * weights that are nearly lost, of values that are all there is in their column, are not lost where
 * a neighbour sees more, nor where only a neighbour's context leaves float32. */
static void check_shrinking(const struct kernel *k) {
  static struct found together, alone;
  struct kernel_tile t = {.queries = 3, .keys = KEYS, .head_size = 1, .value_head_size = 2};
  t.query = given.query, t.key = given.key, t.value = given.value;
  t.query_row = t.key_row = 1, t.value_row = 2;
  t.scale = 1, t.huge = true, t.context_row = SIZE, t.context_factor = 1;
  t.weights_row = KEYS, t.weights_factor = 1;
  for (size_t i = 0; i < 3; i++) given.query[i] = 1;
  given.from[0] = given.from[1] = 0, given.to[0] = 5, given.to[1] = KEYS;
  given.from[2] = 5, given.to[2] = 7;
  for (size_t j = 0; j < KEYS; j++) {
    const bool light = j == 4 || j == 5;
    given.key[j] = j == 4 ? -76.5f : j == 5 ? -86.5f : 0;
    given.value[2 * j] = light ? 0 : 3e38f, given.value[2 * j + 1] = light ? 3e38f : 0;
  }
  attend_in_tiles(k, &t, 3, NULL, &together);
  attend_in_tiles(k, &t, 1, NULL, &alone);
  assert_memory_equal(&together, &alone, sizeof together);
  const float *first = together.context, *last = together.context + 2 * SIZE;
  assert_true(fabs(first[0] / 3e38 - 1) < 1e-6 && last[0] == 3e38f);
  assert_true(fabs(first[1] / (exp(-76.5) * 3e38 / 4) - 1) < 1e-6);
  assert_true(fabs(last[1] / (exp(-86.5) * 3e38) - 1) < 1e-6);
  given.to[0] = KEYS, t.mask = given.mask, t.mask_row = KEYS; /* hidden by the mask instead */
  for (size_t j = 0; j < 3 * KEYS; j++) given.mask[j] = j < 5 || j >= KEYS;
  attend_in_tiles(k, &t, 3, NULL, &alone);
  assert_memory_equal(&together, &alone, sizeof together);
  t.sigmoid = true, t.context_factor = 0x1p-10f; /* which brings a sum back */
  attend_in_tiles(k, &t, 3, NULL, &together);
  assert_true(fabs(together.context[SIZE] / (99 * 3e38 / 1024) - 1) < 1e-5);
}

/* Of two segments the first has keys whose sum leaves float32: its mean is right, and the sum of
 * the other's is not shrunk. */
static void check_huge_means(const struct kernel *k) {
  static struct found found;
  const int32_t ends[] = {10, 13};
  struct kernel_tile t = {.queries = 1, .keys = 13, .head_size = 1, .value_head_size = 1};
  t.query = given.query, t.key = given.key, t.value = given.value;
  t.query_row = t.key_row = t.value_row = 1, t.scale = 1, t.huge = true;
  t.context_row = SIZE, t.context_factor = 1, t.weights_row = KEYS, t.weights_factor = 1;
  t.segments = 2, t.segment_end = ends;
  given.query[0] = 2e-38f, given.from[0] = 0, given.to[0] = 13;
  for (size_t j = 0; j < 13; j++)
    given.key[j] = j < 10 ? 3e38f : 1e38f, given.value[j] = j < 10 ? 1 : 0;
  attend_in_tiles(k, &t, 1, NULL, &found);
  assert_true(fabs(found.context[0] - 1 / (1 + exp(-4))) < 1e-6);
}

static void a_huge_mean_key_shrinks_no_other_segment(void **unused) {
  (void)unused;
  for_each_level(check_huge_means);
}

static void a_neighbour_s_keys_shrink_no_weight(void **unused) {
  (void)unused;
  for_each_level(check_shrinking);
}

/* Alone, beside others, by keys that are turned and by others: the same bits. */
static void company_changes_no_bit(void **unused) {
  (void)unused;
  for_each_level(check_company);
}

static void heads_beside_each_other_change_no_bit(void **unused) {
  (void)unused;
  for_each_level(check_heads);
}

static void heads_beside_each_other_stay_in_their_scratch(void **unused) {
  (void)unused;
  for_each_level(check_scratch);
}

/* --- measures --- */

struct measured {
  double entropy, distance;
};

/* Of one head, in stretches of so many keys. */
static struct measured measure_head(const struct kernel *k, const struct kernel_tile *t,
                                    size_t stretch) {
  const size_t floats = (k->measure_scratch(t->head_size, 1) + 15) / 16 * 16;
  float *scratch = aligned_alloc(64, floats * sizeof *scratch);
  struct measured found = {0};
  double no_pairs = 0;
  struct kernel_measure m = {.heads = 1,
                             .head = t,
                             .entropy = &found.entropy,
                             .distance = &found.distance,
                             .divergence = t->sigmoid ? NULL : &no_pairs};
  for (size_t i = 0; i < floats; i++) scratch[i] = NAN;
  for (; m.from < t->keys; m.from = m.to) {
    m.to = m.from + stretch < t->keys ? m.from + stretch : t->keys;
    k->measure(&m, scratch);
  }
  free(scratch);
  return found;
}

/* Keys that are turned lie in blocks, but stretches begin anywhere. */
static void check_measures(const struct kernel *k) {
  static struct found found;
  for (uint64_t round = 0; round < rounds(60); round++) {
    uint64_t state = 7000 + round;
    struct kernel_tile t = draw_tile(&state);
    const size_t most = k->measure_queries(t.head_size, 1), stretch = 1 + random_below(&state, 90);
    t.queries = t.queries < most ? t.queries : most;
    t.select = SELECT_SOFT;
    draw_given(&t, &state);
    for (size_t i = 0; i < t.queries; i++)
      if (given.from[i] >= given.to[i]) given.from[i] = given.to[i] = 0;
    const unsigned mode = kernel_enter();
    attend_in_tiles(k, &t, k->attend_queries(t.head_size, t.value_head_size), NULL, &found);
    t.from = given.from, t.to = given.to, t.top = found.top, t.factor = found.factor;
    const struct measured right = measure_head(k, &t, stretch);
    const size_t blocks = t.keys / KERNEL_KEYS;
    turn_keys(k, &t, (blocks - random_below(&state, blocks + 1) / 2) * KERNEL_KEYS);
    const struct measured turned = measure_head(k, &t, stretch);
    kernel_leave(mode);
    assert_true(isfinite(right.distance) && isfinite(right.entropy));
    assert_memory_equal(&right, &turned, sizeof right);
  }
}

static void measures_are_the_same_of_keys_that_are_turned(void **unused) {
  (void)unused;
  for_each_level(check_measures);
}

/* --- rotary positions --- */

/* Right but for rounding to float; a row ends where it ends. */
static void check_angles(const struct kernel *k) {
  enum { MOST = 37 };
  double by[48] = {0};
  float angle[2 * MOST + 1];
  uint64_t state = 40;
  for (size_t i = 0; i < MOST; i++) by[i] = i == 0 ? 1 : pow(10, -6.0 * (double)i / MOST);
  for (int n = 0; n < 500 + (int)rounds(2500); n++) {
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
      cmocka_unit_test(caps_are_right),
      cmocka_unit_test(log_is_within_two_ulp),
      cmocka_unit_test(dots_are_summed_in_double),
      cmocka_unit_test(products_are_right_and_rows_alone_in_their_bits),
      cmocka_unit_test(weights_are_one_chain_whatever_the_plan),
      cmocka_unit_test(numbers_of_16_bits_are_widened),
      cmocka_unit_test(there_is_a_plan_for_any_number_of_rows),
      cmocka_unit_test(carry_copies_and_finds_the_greatest),
      cmocka_unit_test(company_changes_no_bit),
      cmocka_unit_test(heads_beside_each_other_change_no_bit),
      cmocka_unit_test(heads_beside_each_other_stay_in_their_scratch),
      cmocka_unit_test(a_neighbour_s_keys_shrink_no_weight),
      cmocka_unit_test(a_huge_mean_key_shrinks_no_other_segment),
      cmocka_unit_test(measures_are_the_same_of_keys_that_are_turned),
      cmocka_unit_test(angles_are_right),
      cmocka_unit_test(rotating_turns_pairs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
