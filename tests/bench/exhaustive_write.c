/* exhaustive_write: writes every finite float32, alone and in rows, and compares with
 * std::to_chars.
 *
 *   exhaustive_write [FIRST [LAST [STEP]]]    bit patterns, default 0 to 0xffffffff by 1
 *
 * ATTEND_CPU chooses the instructions. All patterns take some minutes of one core. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/cpu.h"
#include "server/number/number.h"
#include "tests/support/level_asked.h"
#include "tests/support/text_yardstick.h"

enum { NUMBERS = 4096, WIDTHS = 5, ROOM = NUMBERS * (NUMBER_TEXT_MAX + 4) + NUMBER_WRITE_MARGIN };

/* From the narrowest rows to a single one. */
static const size_t width_of[WIDTHS] = {1, 6, 100, 512, NUMBERS};

static uint64_t wrong; /* numbers, each counted once alone and once in its row */

/* Their text is `theirs`, each with a comma behind it. */
static void check_rows(const float *value, size_t rows, size_t width, const char *theirs) {
  static char ours[ROOM];
  char *end = number_write_rows(ours, value, rows, width);
  const char *at = ours;
  for (size_t i = 0; i < rows; i++) {
    const char *row = theirs;
    for (size_t j = 0; j < width; j++) theirs = strchr(theirs, ',') + 1;
    const size_t length = (size_t)(theirs - row) - 1;
    if (i && *at++ != ',') break;
    if (*at++ != '[' || memcmp(at, row, length) != 0 || at[length] != ']') break;
    at += length + 1;
  }
  if (at == end) return;
  if (wrong++ < 10) printf("rows of %zu, from %a on: %.60s\n", width, (double)*value, at);
}

static void check_one(float value, const char *theirs, size_t length) {
  char ours[NUMBER_TEXT_MAX + NUMBER_WRITE_MARGIN];
  const size_t count = (size_t)(number_write(ours, value) - ours);
  if (count == length && memcmp(ours, theirs, length) == 0) return;
  if (wrong++ < 10) printf("%a: %.*s\n", (double)value, (int)count, ours);
}

static void check(const float *value, size_t count, size_t turn) {
  static char theirs[ROOM];
  char *out = theirs;
  for (size_t i = 0; i < count; i++) {
    char *end = yardstick_write(out, value[i]);
    check_one(value[i], out, (size_t)(end - out));
    *end = ',';
    out = end + 1;
  }
  *out = '\0';
  const size_t width = width_of[turn % WIDTHS];
  if (count == NUMBERS) check_rows(value, NUMBERS / width, width, theirs);
  if (count < NUMBERS || NUMBERS % width) check_rows(value, 1, count, theirs);
}

int main(int argc, char **argv) {
  if (!level_asked_is_here()) return 0;
  static float value[NUMBERS];
  const uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 0;
  const uint64_t last = argc > 2 ? strtoull(argv[2], NULL, 0) : UINT32_MAX;
  const uint64_t step = argc > 3 ? strtoull(argv[3], NULL, 0) : 1;
  uint64_t numbers = 0, turn = 0;
  size_t count = 0;
  for (uint64_t i = first; i <= last && i <= UINT32_MAX && step > 0; i += step) {
    const uint32_t bits = (uint32_t)i;
    if ((bits & INT32_MAX) >= UINT32_C(0x7f800000)) continue;
    memcpy(&value[count++], &bits, sizeof bits);
    numbers++;
    if (count < NUMBERS) continue;
    check(value, count, turn++);
    count = 0;
  }
  if (count > 0) check(value, count, turn);
  printf("%s: %llu floats, %llu times otherwise than by std::to_chars\n",
         cpu_level_name(cpu_text_level()), (unsigned long long)numbers, (unsigned long long)wrong);
  return wrong != 0;
}
