/* test_text_level: text is read and written by the level that the processor and ATTEND_CPU give.
 *
 * What the levels read and write is the same, so they are told apart by what a contract leaves
 * open: where a run of numbers stops, and which bytes behind a text are touched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/cpu.h"
#include "server/number/number.h"
#include "server/number/number_level.h"
#include "tests/support/number_draw.h"

typedef size_t run_function(const char *text, const char *end, float *out, size_t room,
                            const char **stop);
typedef char *rows_function(char *out, const float *value, size_t rows, size_t width);

static const struct {
  run_function *run;
  rows_function *rows;
} LEVEL[CPU_LEVEL_COUNT] = {
    [CPU_PORTABLE] = {number_stretch_portable, number_rows_portable},
#if defined(__x86_64__)
    [CPU_AVX2] = {number_stretch_avx2, number_rows_avx2},
    [CPU_AVX512] = {number_stretch_avx512, number_rows_avx512},
#endif
};

enum {
  NUMBERS = 400,
  LONGEST = 70, /* digits behind the point: some blocks of 64 characters have no comma */
  ROOM = NUMBERS * (LONGEST + 3) + NUMBER_READ_MARGIN
};

/* Short numbers and some long ones; returns their end. */
static char *draw_text(char text[ROOM], uint64_t *seed) {
  char *out = text;
  for (size_t i = 0; i < NUMBERS; i++) {
    const size_t places = 1 + draw(seed) % (draw(seed) % 16 ? 8 : LONGEST);
    memcpy(out, "1.", 2);
    memset(out + 2, '1', places);
    out += 2 + places;
    *out++ = ',';
  }
  out[-1] = ']';
  memset(out, ' ', NUMBER_READ_MARGIN);
  return out;
}

static void runs_are_read_by_the_level(void **state) {
  (void)state;
  static char text[ROOM];
  static float out[NUMBERS];
  const enum cpu_level ours = cpu_text_level(), most = cpu_text_level_with(cpu_features());
  bool told_apart[CPU_LEVEL_COUNT] = {[CPU_PORTABLE] = false};
  uint64_t seed = 1;
  for (size_t i = 0; i < 2000; i++) {
    const char *end = draw_text(text, &seed), *stop;
    const size_t count = number_read_stretch(text, end, out, NUMBERS, &stop);
    assert_int_equal(count, LEVEL[ours].run(text, end, out, NUMBERS, &stop));
    for (enum cpu_level level = CPU_PORTABLE; level <= most; level++)
      told_apart[level] |= LEVEL[level].run(text, end, out, NUMBERS, &stop) != count;
  }
  for (enum cpu_level level = CPU_PORTABLE; level <= most; level++)
    assert_int_equal(told_apart[level], level != ours);
}

static void rows_are_written_by_the_level(void **state) {
  (void)state;
  enum { WIDTH = 3, ROWS = 2, BYTES = WIDTH * ROWS * (NUMBER_TEXT_MAX + 2) + NUMBER_WRITE_MARGIN };
  static const float value[ROWS * WIDTH] = {1, 2, 0.5f, -1.25f, 3, 0.75f};
  const enum cpu_level ours = cpu_text_level(), most = cpu_text_level_with(cpu_features());
  char text[BYTES], other[BYTES];
  memset(text, '#', BYTES);
  number_write_rows(text, value, ROWS, WIDTH);
  for (enum cpu_level level = CPU_PORTABLE; level <= most; level++) {
    memset(other, '#', BYTES);
    LEVEL[level].rows(other, value, ROWS, WIDTH);
    assert_int_equal(memcmp(text, other, BYTES) == 0, level == ours);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(runs_are_read_by_the_level),
      cmocka_unit_test(rows_are_written_by_the_level),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
