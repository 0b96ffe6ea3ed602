/* test_number_write: numbers are written as std::to_chars writes them, one or rows of them, at
 * every level of instructions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "core/base/cpu.h"
#include "server/number/number.h"
#include "server/number/number_level.h"
#include "tests/support/number_draw.h"
#include "tests/support/rounds.h"
#include "tests/support/text_yardstick.h"

#ifdef __SSE__
#include <xmmintrin.h>
#endif

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

enum { SAMPLES = 400 * 1000 };

enum { GUARD = 64 };

typedef char *rows_function(char *out, const float *value, size_t rows, size_t width);

static rows_function *const LEVEL[CPU_LEVEL_COUNT] = {
    [CPU_PORTABLE] = number_rows_portable,
#if defined(__x86_64__)
    [CPU_AVX2] = number_rows_avx2,
    [CPU_AVX512] = number_rows_avx512,
#endif
};

/* --- rows against the yardstick --- */

static char *write_expected(char *out, const float *value, size_t rows, size_t width) {
  for (size_t i = 0; i < rows; i++) {
    if (i) *out++ = ',';
    *out++ = '[';
    for (size_t j = 0; j < width; j++) {
      if (j) *out++ = ',';
      out = yardstick_write(out, value[i * width + j]);
    }
    *out++ = ']';
  }
  return out;
}

static void check_untouched(const char *from, const char *to, const char *what) {
  for (; from < to; from++)
    if (*from != '#') fail_msg("a byte %s was touched", what);
}

static void fail_at_difference(const char *ours, const char *theirs, size_t rows, size_t width) {
  size_t at = 0;
  while (ours[at] == theirs[at]) at++;
  at -= at < 20 ? at : 20;
  fail_msg("%zu rows of %zu: %.40s instead of %.40s", rows, width, ours + at, theirs + at);
}

/* The numbers once more, the last of them at the end of the memory there is. */
static const float *copy_to_the_end(const float *value, size_t numbers) {
  static char *memory;
  enum { SIZE = 1 << 16, UNREADABLE = 1 << 16 };
  if (!memory) {
    memory =
        mmap(NULL, SIZE + UNREADABLE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    assert_int_equal(mprotect(memory + SIZE, UNREADABLE, PROT_NONE), 0);
  }
  const size_t bytes = numbers * sizeof *value;
  assert_in_range(bytes, 0, SIZE);
  if (bytes) memcpy(memory + SIZE - bytes, value, bytes);
  return (const float *)(memory + SIZE - bytes);
}

/* Writes from memory that ends with the numbers, into memory that is watched on both sides. The
 * floating-point mode is that of a thread that `flushes` denormals, or the usual one. */
static void check_writer(rows_function *write, const float *value, size_t rows, size_t width,
                         bool flushes) {
  const size_t numbers = rows * width, room = numbers * (NUMBER_TEXT_MAX + 1) + rows * 3 + 1;
  const float *copy = copy_to_the_end(value, numbers);
  char *theirs = malloc(room + 16), *ours = malloc(GUARD + room + 2 * NUMBER_WRITE_MARGIN);
  assert_true(theirs && ours);
  memset(ours, '#', GUARD + room + 2 * NUMBER_WRITE_MARGIN);
  char *begin = ours + GUARD, *their_end = write_expected(theirs, value, rows, width);
#ifdef __SSE__
  const unsigned mode = _mm_getcsr();
  if (flushes) _mm_setcsr(mode | 0x8040); /* flush results, take denormals as zero */
#endif
  char *end = write(begin, copy, rows, width);
#ifdef __SSE__
  _mm_setcsr(mode);
#endif
  const size_t length = (size_t)(their_end - theirs);
  check_untouched(ours, begin, "in front");
  if ((size_t)(end - begin) > length + NUMBER_WRITE_MARGIN) fail_msg("far too much was written");
  check_untouched(begin + length + NUMBER_WRITE_MARGIN, begin + room + 2 * NUMBER_WRITE_MARGIN,
                  "behind the margin");
  *their_end = begin[length] = '\0';
  if ((size_t)(end - begin) != length || memcmp(begin, theirs, length) != 0)
    fail_at_difference(begin, theirs, rows, width);
  free(theirs);
  free(ours);
}

/* Every level, and what chooses one of them. */
static void check_rows_in_mode(const float *value, size_t rows, size_t width, bool flushes) {
  for (size_t level = 0; width > 0 && level <= cpu_text_level(); level++)
    check_writer(LEVEL[level], value, rows, width, flushes);
  check_writer(number_write_rows, value, rows, width, flushes);
}

static void check_rows(const float *value, size_t rows, size_t width) {
  check_rows_in_mode(value, rows, width, false);
}

static void check_one(float value) {
  char ours[NUMBER_TEXT_MAX + NUMBER_WRITE_MARGIN], theirs[32];
  *number_write(ours, value) = '\0';
  *yardstick_write(theirs, value) = '\0';
  if (strcmp(ours, theirs) != 0) fail_msg("%a is written %s, not %s", (double)value, ours, theirs);
}

/* Numbers to be checked, many at a time, each alone and all in a row. */
struct numbers {
  size_t count;
  float value[1500];
};

static void check_numbers(struct numbers *n) {
  for (size_t i = 0; i < n->count; i++) check_one(n->value[i]);
  check_rows(n->value, 1, n->count);
  n->count = 0;
}

static void add(struct numbers *n, float value) {
  n->value[n->count++] = value;
  if (n->count == LENGTH(n->value)) check_numbers(n);
}

static void add_bits(struct numbers *n, uint32_t bits) {
  if ((bits & 0x7f800000) != 0x7f800000) add(n, float_of(bits));
}

/* --- numbers of all kinds --- */

static void test_writes_random_bits_and_reads_them_back(void **state) {
  (void)state;
  struct numbers n = {0};
  uint64_t seed = 6;
  for (size_t i = 0; i < rounds(2 * SAMPLES); i++) {
    float value = i % 2 ? draw_float(&seed) : draw_common(&seed), back = 0;
    add(&n, value);
    char text[NUMBER_TEXT_MAX + NUMBER_READ_MARGIN + NUMBER_WRITE_MARGIN] = {0};
    const char *end;
    char *written = number_write(text, value);
    *written = ',';
    assert_in_range(written - text, 1, NUMBER_TEXT_MAX);
    assert_int_equal(number_read(text, &end, &back), NUMBER_OK);
    assert_ptr_equal(end, written);
    assert_int_equal(bits_of(back), bits_of(value));
  }
  check_numbers(&n);
}

/* All sizes in one row, and rows of one size: what is common and what is not go different ways. */
static void test_writes_every_magnitude(void **state) {
  (void)state;
  struct numbers n = {0};
  uint64_t seed = 7;
  for (uint32_t field = 0; field < 255; field++) {
    for (size_t i = 0; i < rounds(SAMPLES / 1000); i++)
      add_bits(&n, ((uint32_t)draw(&seed) & 0x807fffff) | field << 23);
    check_numbers(&n);
  }
  for (size_t i = 0; i < rounds(SAMPLES); i++) { /* as attention weights are */
    const uint64_t x = draw(&seed);
    add_bits(&n, ((uint32_t)x & 0x7fffff) | (uint32_t)(80 + (x >> 32) % 47) << 23);
  }
  check_numbers(&n);
}

static void test_writes_powers_and_their_neighbours(void **state) {
  (void)state;
  struct numbers n = {0};
  for (uint32_t sign = 0; sign <= 1; sign++) {
    for (uint32_t field = 0; field < 255; field++)
      for (int by = -3; by <= 3; by++)
        if (field > 0 || by >= 0) add_bits(&n, (sign << 31 | field << 23) + (uint32_t)by);
    for (int k = -45; k <= 38; k++) {
      for (int digit = 1; digit <= 9; digit++) {
        char text[16];
        sprintf(text, "%s%de%d", sign ? "-" : "", digit, k);
        uint32_t bits = bits_of(strtof(text, NULL));
        for (int by = -50; by <= 50; by++)
          if ((bits & 0x7fffffff) > 50) add_bits(&n, bits + (uint32_t)by);
      }
    }
  }
  check_numbers(&n);
}

static void test_writes_zeros_denormals_and_the_extremes(void **state) {
  (void)state;
  struct numbers n = {0};
  uint64_t seed = 7;
  for (size_t i = 0; i < 100; i++) add(&n, i % 2 ? -0.0f : 0.0f);
  check_numbers(&n);
  for (uint32_t bits = 0; bits < 3000; bits++) add_bits(&n, bits);
  for (size_t i = 0; i < rounds(SAMPLES / 8); i++) add_bits(&n, (uint32_t)draw(&seed) & 0x807fffff);
  for (uint32_t bits = 0x7f7ff000; bits < 0x7f800000; bits++) add_bits(&n, bits);
  check_numbers(&n);
}

static void test_writes_integers(void **state) {
  (void)state;
  struct numbers n = {0};
  for (uint32_t i = 0; i < 130 * 1000; i++) add(&n, (float)i);
  for (uint32_t i = (1 << 24) - 2000; i < (1 << 24) + 2000; i++) add(&n, (float)i);
  for (uint32_t i = 0; i < 3000; i++) add(&n, (float)((1 << 25) - 3000 + 2 * i));
  for (uint32_t i = 0; i < 3000; i++) add(&n, (float)((1 << 26) - 6000 + 4 * i));
  /* Where the scientific notation begins to be shorter. */
  for (double unit = 1e3; unit <= 1e12; unit *= 10)
    for (int i = 1; i < 1200; i++) add(&n, (float)(i * unit));
  uint64_t seed = 8;
  for (size_t i = 0; i < rounds(SAMPLES / 2); i++)
    add(&n, (float)(draw(&seed) >> (draw(&seed) % 64)));
  check_numbers(&n);
}

static void test_writes_short_decimals(void **state) {
  (void)state;
  struct numbers n = {0};
  uint64_t seed = 9;
  static const double unit[] = {1, 10, 100, 1000, 1e4, 1e5, 1e6, 1e7, 16, 1024};
  for (size_t i = 0; i < rounds(SAMPLES); i++) {
    uint64_t x = draw(&seed);
    double whole = (double)(x >> (32 + x % 31));
    add(&n, (float)((x >> 8 & 1 ? -whole : whole) / unit[(x >> 16) % LENGTH(unit)]));
  }
  /* One to nine digits, any exponent. */
  for (int k = -45; k <= 29; k++) {
    for (uint64_t limit = 10; limit <= 1000 * 1000 * 1000; limit *= 10) {
      for (size_t i = 0; i < rounds(SAMPLES / 20000); i++) {
        char text[32];
        sprintf(text, "%llue%d", (unsigned long long)(1 + draw(&seed) % (limit - 1)), k);
        add(&n, strtof(text, NULL));
      }
    }
  }
  check_numbers(&n);
}

/* Half a unit of the last digit, exactly: 2097152.25 is as close to .2 as to .3. */
static void test_writes_ties(void **state) {
  (void)state;
  struct numbers n = {0};
  for (uint32_t i = 0; i < 20 * 1000; i++) add(&n, 2097152.25f + 0.5f * (float)i);
  for (uint32_t i = 0; i < 20 * 1000; i++) add(&n, -(8388608.0f / 2 - 0.25f - 0.25f * (float)i));
  uint64_t seed = 10;
  for (uint32_t field = 110; field < 160; field++) /* few bits: many are exact in few digits */
    for (size_t i = 0; i < rounds(SAMPLES / 400); i++)
      add_bits(&n, field << 23 | ((uint32_t)draw(&seed) << draw(&seed) % 24 & 0x7fffff));
  check_numbers(&n);
}

/* Large floats that a boundary goes through, of whose power of ten a double has too few bits. */
static void test_writes_what_doubles_cannot_decide(void **state) {
  (void)state;
  struct numbers n = {0};
  for (uint32_t field = 150; field < 255; field++)
    for (uint32_t i = 0; i < 17; i++) add_bits(&n, field << 23 | (0x400bd1 + 31250 * i));
  check_numbers(&n);
}

static void test_writes_integers_of_64_bits(void **state) {
  (void)state;
  uint64_t seed = 11, power = 1;
  for (size_t i = 0; i < 2000; i++) {
    int64_t value = (int64_t)draw(&seed) >> draw(&seed) % 64;
    if (i < 60) value = (int64_t)(power - 1 + i % 3), power *= i % 3 == 2 ? 10 : 1;
    if (i == 60) value = INT64_MIN;
    if (i == 61) value = INT64_MAX;
    char ours[24 + NUMBER_WRITE_MARGIN], theirs[24];
    sprintf(theirs, "%lld", (long long)value);
    *number_write_integer(ours, value) = '\0';
    assert_string_equal(ours, theirs);
  }
}

/* --- rows of all kinds --- */

/* Mostly common numbers, some of which vectors do not write. */
static void draw_mixed(float *value, size_t count, uint64_t seed) {
  for (size_t i = 0; i < count; i++) {
    const uint64_t kind = draw(&seed) % 64;
    value[i] = kind > 8 ? draw_common(&seed) : kind > 2 ? draw_float(&seed) : float_of(1 << 23);
  }
}

static void test_writes_rows(void **state) {
  (void)state;
  static const float row[] = {0, -0.0f, 1, -2.5f, 1e-5f, 1e5f, 16777216, 0.0001f, 100000};
  char text[512];
  *number_write_rows(text, row, 1, LENGTH(row)) = '\0';
  assert_string_equal(text, "[0,-0,1,-2.5,1e-05,1e+05,16777216,1e-04,1e+05]");
  *number_write_rows(text, row, 3, 3) = '\0';
  assert_string_equal(text, "[0,-0,1],[-2.5,1e-05,1e+05],[16777216,1e-04,1e+05]");
  *number_write_rows(text, NULL, 2, 0) = '\0';
  assert_string_equal(text, "[],[]");
  assert_ptr_equal(number_write_rows(text, row, 0, 3), text);
  assert_ptr_equal(number_write_rows(text, NULL, 0, 0), text);
}

static void test_writes_rows_of_every_width(void **state) {
  (void)state;
  static float value[70 * 40];
  for (size_t width = 0; width <= 70; width++) {
    draw_mixed(value, LENGTH(value), width);
    for (size_t rows = 0; rows <= 40; rows += rows < 9 ? 1 : 31) check_rows(value, rows, width);
  }
  static float wide[3 * 4097];
  static const size_t width[] = {100, 127, 128, 255, 256, 257, 511, 512, 513, 1000, 4096, 4097};
  for (size_t i = 0; i < LENGTH(width); i++) {
    draw_mixed(wide, LENGTH(wide), i);
    for (size_t rows = 1; rows <= 3; rows++) check_rows(wide, rows, width[i]);
  }
}

static void test_writes_rows_of_every_count(void **state) {
  (void)state;
  static float value[600];
  for (size_t count = 1; count <= LENGTH(value); count++) {
    draw_mixed(value, count, count);
    check_rows(value, 1, count);
    check_rows(value, count, 1);
  }
}

/* The longest texts fill what is promised for each number. */
static void test_writes_the_longest_rows(void **state) {
  (void)state;
  static float value[600];
  for (size_t i = 0; i < LENGTH(value); i++) value[i] = -1.17549435e-38f;
  for (size_t width = 1; width <= 20; width++) check_rows(value, LENGTH(value) / width, width);
  for (size_t i = 0; i < LENGTH(value); i++) value[i] = -1.23456794e-05f;
  for (size_t width = 1; width <= 20; width++) check_rows(value, LENGTH(value) / width, width);
}

static void test_writes_no_further_than_the_margin(void **state) {
  (void)state;
  uint64_t seed = 9;
  for (size_t i = 0; i < rounds(SAMPLES / 8); i++) {
    char text[NUMBER_TEXT_MAX + 2 * NUMBER_WRITE_MARGIN];
    memset(text, '#', sizeof text);
    char *end = number_write(text, i % 2 ? draw_float(&seed) : draw_common(&seed));
    check_untouched(end + NUMBER_WRITE_MARGIN, text + sizeof text, "behind the margin");
  }
}

/* Workers may flush denormals to zero; text must not change with that. */
static void test_does_not_depend_on_the_floating_point_mode(void **state) {
  (void)state;
#ifdef __SSE__
  char text[NUMBER_TEXT_MAX + NUMBER_WRITE_MARGIN];
  static float value[3000];
  uint64_t seed = 12;
  unsigned mode = _mm_getcsr();
  _mm_setcsr(mode | 0x8040); /* flush results, take denormals as zero */
  char *end = number_write(text, float_of(1));
  _mm_setcsr(mode);
  *end = '\0';
  assert_string_equal(text, "1e-45");
  for (size_t turn = 0; turn < 3; turn++) {
    for (size_t i = 0; i < LENGTH(value); i++) {
      const uint32_t denormal = (uint32_t)draw(&seed) & 0x807fffff;
      value[i] = turn == 0   ? float_of(denormal)
                 : turn == 1 ? draw_float(&seed)
                             : draw_common(&seed);
      if (i % 50 == 7) value[i] = float_of(denormal);
    }
    for (size_t width = 1; width <= 1000; width *= 10)
      check_rows_in_mode(value, LENGTH(value) / width, width, true);
  }
#else
  skip();
#endif
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_writes_random_bits_and_reads_them_back),
      cmocka_unit_test(test_writes_every_magnitude),
      cmocka_unit_test(test_writes_powers_and_their_neighbours),
      cmocka_unit_test(test_writes_zeros_denormals_and_the_extremes),
      cmocka_unit_test(test_writes_integers),
      cmocka_unit_test(test_writes_short_decimals),
      cmocka_unit_test(test_writes_ties),
      cmocka_unit_test(test_writes_what_doubles_cannot_decide),
      cmocka_unit_test(test_writes_integers_of_64_bits),
      cmocka_unit_test(test_writes_rows),
      cmocka_unit_test(test_writes_rows_of_every_width),
      cmocka_unit_test(test_writes_rows_of_every_count),
      cmocka_unit_test(test_writes_the_longest_rows),
      cmocka_unit_test(test_writes_no_further_than_the_margin),
      cmocka_unit_test(test_does_not_depend_on_the_floating_point_mode),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
