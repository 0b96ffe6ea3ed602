/* test_quantized: products of bytes against plain C, bit for bit, at every word of ATTEND_CPU that
 * this processor has; quantized matrices against float64; and the uniform kernels, whose bits are
 * the same at every level. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/size.h"
#include "core/kernel/bytes.h"
#include "core/kernel/gemm.h"
#include "core/kernel/kernel.h"
#include "core/kernel/narrow.h"
#include "core/kernel/quantized.h"
#include "tests/support/random_call.h"
#include "tests/support/rounds.h"

static uint64_t seed = 1;

static float random_number(void) { return random_float(&seed); }

static float *random_numbers(size_t count) {
  float *x = malloc(count * sizeof *x);
  for (size_t i = 0; i < count; i++) x[i] = random_number();
  return x;
}

/* --- what is computed, in plain C --- */

/* Quantizes a block as core/kernel/bytes.h says. */
static float quantize_ref(size_t count, const float *x, int *q) {
  float most = 0;
  bool finite = true;
  for (size_t i = 0; i < count; i++) {
    finite &= isfinite(x[i]) != 0;
    most = fmaxf(most, fabsf(x[i]));
  }
  for (size_t i = 0; i < count; i++)
    q[i] = finite && most >= BYTES_LEAST ? (int)rintf(x[i] * (127.0f / most)) : 0;
  return !finite ? NAN : most >= BYTES_LEAST ? most * (1.0f / 127.0f) : 0;
}

/* The weight q + 128 and its scale, as they lie in the matrix. */
struct ref_weight {
  int u;
  float scale;
};

static struct ref_weight whole_ref(const float *column, size_t in, size_t k) {
  float most = 0;
  for (size_t i = 0; i < in; i++) most = fmaxf(most, fabsf(column[i]));
  const float scale = most >= BYTES_LEAST ? most / 127 : 0;
  return (struct ref_weight){128 + (scale != 0 ? (int)rintf(column[k] * (1 / scale)) : 0), scale};
}

/* The float16 nearest to a number, from all of them. */
static float nearest_float16(float x) {
  float best = 0;
  for (unsigned bits = 0; bits < 0x7c00; bits++) {
    const float y = narrow_widen(KERNEL_FLOAT16, (uint16_t)bits);
    const double here = fabs((double)y - x), least = fabs((double)best - x);
    if (here < least || (here == least && bits % 2 == 0)) best = y;
  }
  return best;
}

static struct ref_weight block_ref(const float *column, size_t in, size_t k) {
  const size_t first = k / BYTES_BLOCK * BYTES_BLOCK, end = size_min(first + BYTES_BLOCK, in);
  float most = 0;
  for (size_t i = first; i < end; i++) most = fmaxf(most, fabsf(column[i]));
  const float scale = most / 127, by = scale != 0 ? 1 / scale : 0;
  return (struct ref_weight){128 + (int)roundf(column[k] * by),
                             narrow_widen(KERNEL_FLOAT16, narrow_nearest_float16(scale))};
}

/* One number of the product. */
static float product_ref(const float *x, const float *column, size_t in, float bias, bool blocks) {
  const size_t block = blocks ? BYTES_BLOCK : in;
  int *q = malloc((in + 1) * sizeof *q);
  float y = bias;
  for (size_t first = 0; first < in; first += block) {
    const size_t count = size_min(block, in - first);
    const float row_scale = quantize_ref(count, x + first, q);
    float scale = 0;
    long sum = 0;
    for (size_t k = 0; k < count; k++) {
      const struct ref_weight w =
          blocks ? block_ref(column, in, first + k) : whole_ref(column, in, k);
      sum += (w.u - 128) * q[k];
      scale = w.scale;
    }
    y = fmaf((float)sum, scale * row_scale, y);
  }
  free(q);
  return y;
}

/* --- products --- */

enum { ROWS = 20 };

/* Numbers of several sizes, with zeros, tiny ones, and rows that are not finite. */
static void fill_rows(float *x, size_t in) {
  for (size_t i = 0; i < ROWS * in; i++) x[i] = random_number() * (i % 97 == 0 ? 30 : 1);
  for (size_t k = 0; k < in; k++) x[3 * in + k] = 0;
  for (size_t k = 0; k < in; k++) x[4 * in + k] = 1e-39f; /* below the normal range */
  for (size_t k = 0; k < in; k++) x[5 * in + k] *= 0x1p-105f;
  x[6 * in] = INFINITY;
  x[7 * in + in - 1] = NAN;
  x[8 * in] = -3.4e38f;
}

/* Whether two numbers have the same bits, or are both NaN. */
static bool is_same(float a, float b) {
  return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

static void check_product(const struct cpu_word *word, const struct byte_kernel *kernel, size_t out,
                          size_t in, bool blocks) {
  float *x = malloc(ROWS * in * sizeof *x), *w = random_numbers(out * in);
  float *bias = calloc(size_round_up(out, 64), sizeof *bias);
  float *y = malloc(ROWS * 64 * sizeof *y);
  struct quantized q;
  struct error e = {0};
  fill_rows(x, in);
  for (size_t j = 0; j < out; j++) bias[j] = random_number();
  for (size_t k = 0; k < in && out > 2; k++) w[2 * in + k] = 0;
  assert_true(quantized_make(&q, kernel, out, in, 1, blocks, w, &e));
  float *memory = aligned_alloc(64, size_round_up(quantized_floats(&q, ROWS) * 4, 64));
  const unsigned mode = kernel_enter();
  for (size_t rows = 1; rows <= ROWS; rows += rows < 14 ? 1 : 6) {
    quantized_rows(&q, rows, x, in, memory);
    for (size_t first = 0; first < out; first += 64) {
      const size_t columns = size_min(64, out - first);
      quantized_run(&q, 0, first, columns, rows, memory, bias + first, y, 64);
      for (size_t i = 0; i<rows; i += rows> 3 ? 3 : 1)
        for (size_t j = 0; j < columns; j += 5) {
          const float right =
              product_ref(x + i * in, w + (first + j) * in, in, bias[first + j], blocks);
          if (!is_same(right, y[i * 64 + j]))
            fail_msg("%s: %zu x %zu%s, row %zu of %zu, column %zu: %a, not %a", word->name, out, in,
                     blocks ? " in blocks" : "", i, rows, first + j, (double)y[i * 64 + j],
                     (double)right);
        }
    }
  }
  kernel_leave(mode);
  quantized_free(&q);
  free(memory), free(x), free(w), free(bias), free(y);
}

static void test_products(void **state) {
  static const size_t sizes[][2] = {{1, 1},    {7, 5},    {64, 64}, {65, 31},
                                    {130, 33}, {96, 128}, {70, 260}};
  (void)state;
  for (size_t i = 0; i < CPU_WORD_COUNT; i++) {
    const struct cpu_word *word = &cpu_words[i];
    const struct byte_kernel *kernel = byte_kernel_at(word);
    if (!kernel || cpu_word_with(cpu_features(), word) != word) continue;
    for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
      check_product(word, kernel, sizes[n][0], sizes[n][1], false);
      check_product(word, kernel, sizes[n][0], sizes[n][1], true);
    }
  }
}

/* The greatest sums that int32 must hold: all weights and numbers have the greatest magnitude. */
static void test_deepest(void **state) {
  enum { IN = 66000 };
  (void)state;
  float *x = malloc(IN * sizeof *x), *w = malloc(IN * sizeof *w), y[64];
  for (size_t i = 0; i < IN; i++) x[i] = 1, w[i] = -1;
  struct error e = {0};
  struct gemm *g = gemm_new(1, IN, 1, w, NULL, GEMM_INT8, &e);
  assert_non_null(g);
  float *memory = aligned_alloc(64, size_round_up(gemm_input_floats(g, 1) * 4, 64));
  const struct gemm_input input = gemm_input(g, 1, x, IN, memory);
  gemm_run(g, 0, &input, y);
  assert_true(fabsf(y[0] + IN) < 0.02f);
  gemm_free(g);
  free(memory), free(x), free(w);
  static const float none[1];
  assert_null(gemm_new(1, IN + 1, 1, none, NULL, GEMM_INT8, &e));
  assert_string_equal(
      e.detail,
      "int8 has at most 66000 inputs of a matrix, and this one has 66001; use int8-block");
}

/* --- numbers --- */

static void test_float16(void **state) {
  static const float x[] = {0,     1,       65504,      65519.9f,   6e-8f,     2.9e-8f,
                            3e-8f, 6.1e-5f, 6.104e-5f,  0.1f,       1e-6f,     1.5f,
                            2049,  2051,    0x1.ffdp0f, 0x1.ffep0f, 0x1.fffp0f};
  (void)state;
  for (size_t i = 0; i < sizeof x / sizeof *x; i++)
    assert_true(narrow_widen(KERNEL_FLOAT16, narrow_nearest_float16(x[i])) ==
                nearest_float16(x[i]));
  for (size_t i = 0; i < rounds(500); i++) {
    const float y = fabsf(random_number()) * exp2f((float)(i % 40) - 30);
    assert_true(narrow_widen(KERNEL_FLOAT16, narrow_nearest_float16(y)) == nearest_float16(y));
  }
  assert_int_equal(narrow_nearest_float16(65520), NARROW_INFINITE);
  struct error e = {0};
  const float large = 127 * 65520.0f;
  assert_null(gemm_new(1, 1, 1, &large, NULL, GEMM_INT8_BLOCK, &e));
  assert_string_equal(e.detail, "a weight of 8.32104e+06 is too large for int8-block; use int8");
}

static void test_weights_of(void **state) {
  enum { OUT = 70, IN = 45 };
  (void)state;
  float *w = random_numbers(OUT * IN), row[IN];
  struct error e = {0};
  struct gemm *g = gemm_new(OUT, IN, 1, w, NULL, GEMM_INT8_BLOCK, &e);
  for (size_t j = 0; j < OUT; j++) {
    gemm_weights_of(g, j, row);
    for (size_t k = 0; k < IN; k++) {
      const struct ref_weight right = block_ref(w + j * IN, IN, k);
      assert_true(row[k] == (float)(right.u - 128) * right.scale);
    }
  }
  gemm_free(g);
  free(w);
}

/* Halves between two integers: whole columns round them to even, blocks away from zero. */
static void test_halves(void **state) {
  enum { IN = 9 * BYTES_BLOCK };
  (void)state;
  float w[IN];
  for (int k = 0; k < IN; k++) w[k] = k % BYTES_BLOCK == 0 ? 127 : (float)(k % 254) - 126.5f;
  for (int blocks = 0; blocks < 2; blocks++) {
    struct error e = {0};
    struct quantized q;
    assert_true(quantized_make(&q, byte_kernel_best(), 1, IN, 1, blocks, w, &e));
    for (size_t k = 0; k < IN; k++) {
      const struct ref_weight right = (blocks ? block_ref : whole_ref)(w, IN, k);
      const size_t block = blocks ? k / BYTES_BLOCK : 0, rest = k - block * BYTES_BLOCK;
      const uint8_t *record = q.weight + block * (q.panel_bytes / q.scales);
      const uint8_t *bytes = record + (blocks ? q.columns * sizeof(uint16_t) : 0);
      assert_true(right.scale == 1);
      assert_int_equal(bytes[rest / BYTES_FOUR * q.columns * BYTES_FOUR + rest % BYTES_FOUR],
                       right.u);
    }
    quantized_free(&q);
  }
}

/* --- matrices --- */

/* The root of the mean square of a quantized product's error, in parts of the product's. */
static double error_of(enum gemm_engine engine, size_t groups) {
  enum { OUT = 120, IN = 192, ROWS_HERE = 24 };
  float *w = random_numbers(OUT * IN / groups), *x = random_numbers(ROWS_HERE * IN), *bias;
  struct error e = {0};
  bias = random_numbers(OUT);
  struct gemm *g = gemm_new(OUT, IN, groups, w, bias, engine, &e);
  float *scratch = aligned_alloc(64, size_round_up(gemm_scratch_floats(g, ROWS_HERE) * 4, 64));
  const struct gemm_input input =
      gemm_input(g, ROWS_HERE, x, IN, scratch + ROWS_HERE * gemm_stripe(g));
  const size_t part = IN / groups;
  double errors = 0, squares = 0;
  for (size_t first = 0; first < OUT; first += gemm_columns(g, first)) {
    gemm_run(g, first, &input, scratch);
    for (size_t i = 0; i < ROWS_HERE; i++)
      for (size_t j = first; j < first + gemm_columns(g, first); j++) {
        const size_t from = j / (OUT / groups) * part;
        double y = (double)bias[j];
        for (size_t k = 0; k < part; k++)
          y += (double)x[i * IN + from + k] * (double)w[j * part + k];
        errors += pow(y - (double)scratch[i * gemm_stripe(g) + j - first], 2);
        squares += y * y;
      }
  }
  gemm_free(g);
  free(scratch), free(w), free(x), free(bias);
  return sqrt(errors / squares);
}

static void test_errors(void **state) {
  (void)state;
  for (size_t groups = 1; groups <= 4; groups *= 2) {
    const double whole = error_of(GEMM_INT8, groups), blocks = error_of(GEMM_INT8_BLOCK, groups);
    assert_true(whole < 0.015 && blocks < 0.01);
    assert_true(whole > 1e-4 && blocks > 1e-4); /* something is quantized */
  }
}

/* --- beside one scale for a whole matrix --- */

enum { WIDTH = 128, INNER = 256, BATCH = 24 };

/* Rounds numbers to bytes with one scale for all, as dynamic quantization of a tensor does. */
static void round_tensor(size_t count, const double *x, double *to) {
  double most = 0;
  for (size_t i = 0; i < count; i++) most = fmax(most, fabs(x[i]));
  for (size_t i = 0; i < count; i++) to[i] = rint(x[i] * 127 / most) * most / 127;
}

/* y = x W^T in double: `rounded` rounds both to bytes first. */
static void multiply_tensor(bool rounded, size_t in, size_t out, const double *x, const float *w,
                            double *y) {
  static double weight[INNER * WIDTH], row[BATCH * INNER];
  for (size_t i = 0; i < out * in; i++) weight[i] = (double)w[i];
  memcpy(row, x, BATCH * in * sizeof *x);
  if (rounded) round_tensor(out * in, weight, weight), round_tensor(BATCH * in, x, row);
  for (size_t i = 0; i < BATCH; i++)
    for (size_t j = 0; j < out; j++) {
      double sum = 0;
      for (size_t k = 0; k < in; k++) sum += row[i * in + k] * weight[j * in + k];
      y[i * out + j] = sum;
    }
}

static void multiply_bytes(enum gemm_engine engine, size_t in, size_t out, const float *x,
                           const float *w, float *y) {
  struct error e = {0};
  struct gemm *g = gemm_new(out, in, 1, w, NULL, engine, &e);
  float *scratch = aligned_alloc(64, size_round_up(gemm_scratch_floats(g, BATCH) * 4, 64));
  const struct gemm_input input = gemm_input(g, BATCH, x, in, scratch + BATCH * gemm_stripe(g));
  for (size_t first = 0; first < out; first += gemm_columns(g, first)) {
    gemm_run(g, first, &input, scratch);
    for (size_t i = 0; i < BATCH; i++)
      memcpy(y + i * out + first, scratch + i * gemm_stripe(g), gemm_columns(g, first) * sizeof *y);
  }
  gemm_free(g);
  free(scratch);
}

/* A feed-forward layer whose input has a few channels that are much larger than the others, as
 * trained models have. Its error is that of the outputs, against double. */
static void test_better_than_one_scale(void **state) {
  static double right[BATCH * WIDTH], rounded[BATCH * WIDTH], inner[BATCH * INNER],
      x[BATCH * WIDTH];
  static float narrow[BATCH * WIDTH], between[BATCH * INNER], y[BATCH * WIDTH];
  (void)state;
  seed = 11;
  float *up = random_numbers(INNER * WIDTH), *down = random_numbers(WIDTH * INNER);
  for (size_t i = 0; i < BATCH * WIDTH; i++)
    x[i] = (double)(narrow[i] = random_number() * (i % WIDTH % 30 == 7 ? 30 : 1));
  for (int mode = 0; mode < 2; mode++) {
    multiply_tensor(mode, WIDTH, INNER, x, up, inner);
    for (size_t i = 0; i < BATCH * INNER; i++) inner[i] = fmax(inner[i], 0);
    multiply_tensor(mode, INNER, WIDTH, inner, down, mode ? rounded : right);
  }
  double of_tensor = 0, of[2] = {0, 0};
  for (size_t i = 0; i < BATCH * WIDTH; i++) of_tensor += pow(rounded[i] - right[i], 2);
  for (int blocks = 0; blocks < 2; blocks++) {
    const enum gemm_engine engine = blocks ? GEMM_INT8_BLOCK : GEMM_INT8;
    multiply_bytes(engine, WIDTH, INNER, narrow, up, between);
    for (size_t i = 0; i < BATCH * INNER; i++) between[i] = fmaxf(between[i], 0);
    multiply_bytes(engine, INNER, WIDTH, between, down, y);
    for (size_t i = 0; i < BATCH * WIDTH; i++) of[blocks] += pow((double)y[i] - right[i], 2);
  }
  if (!(of[0] <= of_tensor && of[1] < of[0]))
    fail_msg("int8 %g, int8-block %g, one scale %g", sqrt(of[0]), sqrt(of[1]), sqrt(of_tensor));
  free(up), free(down);
}

/* --- the uniform kernels --- */

/* One call of each float32 kernel that computes anything; the results are written one after the
 * other. Returns how many floats. */
static size_t compute_all(const struct kernel *k, float *out) {
  enum { D = 68, QUERIES = 9, KEYS = 150, MANY = 1000 };
  static float x[MANY], y[MANY], query[QUERIES * D], key[KEYS * D], value[KEYS * D];
  static int32_t from[QUERIES], to[QUERIES];
  float *at = out;
  seed = 7;
  for (size_t i = 0; i < MANY; i++) x[i] = random_number() * 4, y[i] = random_number();
  for (size_t i = 0; i < QUERIES * D; i++) query[i] = random_number();
  for (size_t i = 0; i < KEYS * D; i++) key[i] = random_number(), value[i] = random_number();
  for (size_t count = 1; count < MANY; count = count * 2 + 1)
    for (int rms = 0; rms < 2; rms++) {
      k->norm(&(struct kernel_norm){.rows = 1,
                                    .count = count,
                                    .rms = rms,
                                    .epsilon = 1e-5f,
                                    .factor = y,
                                    .shift = rms ? NULL : y + 1,
                                    .x = x,
                                    .x_row = count,
                                    .y = at,
                                    .y_row = count});
      at += count;
    }
  for (int kind = 0; kind <= ACTIVATION_QUICK_GELU; kind++, at += MANY) {
    memcpy(at, x, sizeof x);
    k->activate((enum activation)kind, MANY, at, y);
  }
  k->tanh(MANY, x, at), at += MANY;
  for (size_t i = 0; i < MANY; i++) y[i] = -fabsf(x[i]);
  k->exp(MANY, y, at), at += MANY;
  for (size_t i = 0; i < MANY; i++) y[i] = fabsf(x[i]) + 1e-3f;
  k->log(MANY, y, at), at += MANY;
  float *scratch = aligned_alloc(64, size_round_up(k->attend_scratch(D, D) * 4, 64));
  for (size_t queries = 1; queries <= QUERIES; queries += 4) {
    for (size_t i = 0; i < queries; i++) from[i] = 0, to[i] = (int32_t)(KEYS - i);
    for (int sigmoid = 0; sigmoid < 2; sigmoid++) {
      const struct kernel_tile t = {.queries = queries,
                                    .keys = KEYS,
                                    .head_size = D,
                                    .value_head_size = D,
                                    .query = query,
                                    .key = key,
                                    .value = value,
                                    .query_row = D,
                                    .key_row = D,
                                    .value_row = D,
                                    .scale = 0.3f,
                                    .sigmoid = sigmoid,
                                    .from = from,
                                    .to = to,
                                    .context = at,
                                    .context_row = D,
                                    .context_factor = 1,
                                    .weights = at + queries * D,
                                    .weights_row = KEYS,
                                    .weights_factor = 1};
      assert_true(k->attend(1, &t, scratch));
      at += queries * (D + KEYS);
    }
  }
  free(scratch);
  return (size_t)(at - out);
}

static void test_uniform(void **state) {
  enum { MOST = 40000 };
  (void)state;
  float *right = malloc(MOST * sizeof *right), *here = malloc(MOST * sizeof *here);
  const unsigned mode = kernel_enter();
  const size_t count = compute_all(kernel_at(CPU_PORTABLE, KERNEL_UNIFORM), right);
  assert_true(count <= MOST);
  for (int level = CPU_PORTABLE + 1; level <= (int)cpu_level(); level++) {
    const struct kernel *k = kernel_at((enum cpu_level)level, KERNEL_UNIFORM);
    if (!k) continue;
    assert_int_equal(compute_all(k, here), count);
    for (size_t i = 0; i < count; i++)
      if (memcmp(&right[i], &here[i], sizeof *here) != 0)
        fail_msg("%s: number %zu: %a, not %a", cpu_level_name(k->level), i, (double)here[i],
                 (double)right[i]);
  }
  kernel_leave(mode);
  free(right), free(here);
}

/* One multiply-add of each kind of numbers: random ones, some with so few bits that the sum is
 * often halfway between two floats, huge and tiny ones, and such as are not finite. */
static float hard_number(void) {
  static const float special[] = {0,         -0.0f,        1,          0x1p-126f, -0x1p-126f,
                                  0x1p-149f, FLT_MAX,      -FLT_MAX,   INFINITY,  -INFINITY,
                                  NAN,       0x1p-100f,    0x1.8p-24f, 0x1p24f,   0x1p-25f,
                                  -0x1p-25f, 0x1.000002p0f};
  enum { SPECIAL = sizeof special / sizeof *special };
  const uint64_t kind = random_below(&seed, 6);
  if (kind == 0) return special[random_below(&seed, SPECIAL)];
  if (kind == 1) return (float)random_below(&seed, 1 << 13) * 0x1p-6f;
  if (kind == 2) return ldexpf(random_number(), (int)random_below(&seed, 250) - 125);
  if (kind == 3) return ldexpf(1, -(int)random_below(&seed, 50));
  return random_number();
}

/* The portable kernel's multiply-add, which has no instruction, rounds once like the others'. */
static void test_one_rounding(void **state) {
  (void)state;
  const struct kernel *k = kernel_at(CPU_PORTABLE, KERNEL_UNIFORM);
  const size_t columns = k->lanes * k->vectors, times = rounds(100000);
  float b[KERNEL_PANEL_MAX], start[KERNEL_PANEL_MAX], c[KERNEL_PANEL_MAX];
  const unsigned mode = kernel_enter();
  for (size_t i = 0; i < times; i++) {
    const float a = hard_number();
    for (size_t j = 0; j < columns; j++) b[j] = hard_number(), start[j] = hard_number();
    const struct kernel_product p = {.rows = 1,
                                     .depth = 1,
                                     .vectors = k->vectors,
                                     .a = &a,
                                     .a_row = 1,
                                     .a_step = 1,
                                     .b = b,
                                     .b_row = columns,
                                     .start = start,
                                     .c = c};
    k->product(&p);
    for (size_t j = 0; j < columns; j++)
      if (!is_same(c[j], fmaf(a, b[j], start[j])))
        fail_msg("%a times %a plus %a is %a, not %a", (double)a, (double)b[j], (double)start[j],
                 (double)c[j], (double)fmaf(a, b[j], start[j]));
  }
  kernel_leave(mode);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_products),
      cmocka_unit_test(test_deepest),
      cmocka_unit_test(test_float16),
      cmocka_unit_test(test_halves),
      cmocka_unit_test(test_weights_of),
      cmocka_unit_test(test_errors),
      cmocka_unit_test(test_better_than_one_scale),
      cmocka_unit_test(test_one_rounding),
      cmocka_unit_test(test_uniform),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
