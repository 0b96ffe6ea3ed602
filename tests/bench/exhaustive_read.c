/* exhaustive_read: reads every finite float32's shortest text back in stretches, and hard numbers.
 *
 *   exhaustive_read [FIRST [LAST [STEP [HARD]]]]    bit patterns, default 0 to 0xffffffff by 1;
 *                                                   how many hard numbers, default 2^22, others for
 * another FIRST
 *
 * At the level of instructions that the processor and ATTEND_CPU give. Hard numbers are ties, exact
 * and cut, near ties, 17 digits, denormals, integers, all compared with strtof. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/cpu.h"
#include "server/number/number.h"
#include "tests/support/level_asked.h"
#include "tests/support/number_draw.h"

enum { BATCH = 4096, ROOM = BATCH * 256 };

/* Numbers as text, and what they should read as. */
struct batch {
  char text[ROOM + NUMBER_READ_MARGIN], *end;
  float wanted[BATCH];
  size_t count;
};

static struct batch batch;
static uint64_t numbers, alone, wrong;

static void report(size_t i, const char *at, float got) {
  if (wrong++ < 10)
    printf("%.*s reads as %a, not %a\n", (int)strcspn(at, ",]"), at, (double)got,
           (double)batch.wanted[i]);
}

/* Reads the batch as a row, where a stretch stops one number alone. */
static void read_batch(void) {
  static float got[BATCH];
  if (batch.count == 0) return;
  batch.end[-1] = ']';
  memset(batch.end, 0, NUMBER_READ_MARGIN);
  const char *p = batch.text;
  for (size_t i = 0; i < batch.count; p++) {
    const char *stop = p;
    size_t taken = number_read_stretch(p, batch.end, got + i, batch.count - i, &stop);
    i += taken;
    if (i < batch.count) {
      const char *next = taken ? stop + 1 : p;
      if (number_read(next, &stop, got + i) != NUMBER_OK) report(i, next, NAN);
      alone++;
      i++;
    }
    p = stop;
  }
  p = batch.text;
  for (size_t i = 0; i < batch.count; i++) {
    if (memcmp(&got[i], &batch.wanted[i], sizeof *got) != 0) report(i, p, got[i]);
    p += strcspn(p, ",]") + 1;
  }
  numbers += batch.count;
  batch.count = 0;
  batch.end = batch.text;
}

static void add(char *end, float wanted) {
  *end = ',';
  batch.end = end + 1;
  batch.wanted[batch.count++] = wanted;
  if (batch.count == BATCH) read_batch();
}

/* The middle between a float and the next one away from zero. */
static double halfway(float value) {
  return ((double)value + (double)nextafterf(value, copysignf(INFINITY, value))) / 2;
}

/* Halfway between two floats of 2^-60 to 2, with 46 or up to 83 decimals: exact, cut, or one more
 * or less in the last place. */
static int write_long_tie(char *out, uint64_t x, uint32_t bits) {
  float small = float_of((bits & 0x807fffff) | (uint32_t)(67 + (x >> 32) % 61) << 23);
  int length = sprintf(out, "%.*f", x & 2 ? 46 : 20 + (int)(x >> 58), halfway(small));
  char *last = out + length - 1;
  if (x & 4) *last = (char)(*last == '0' || (x & 8 && *last < '9') ? *last + 1 : *last - 1);
  return length;
}

static int write_hard(char *out, unsigned kind, uint64_t x, uint64_t y) {
  uint32_t bits = (uint32_t)y;
  float common = float_of((bits & 0x807fffff) | (uint32_t)(117 + (x >> 32) % 12) << 23);
  float tiny = float_of(bits & 0x80ffffff);
  int digits = (int)(x >> 60);
  switch (kind) {
  case 0:
    return sprintf(out, "%.17g", (double)common * (1 + (double)(x >> 40) * 0x1p-50));
  case 1:
    return sprintf(out, x & 1 ? "%.40f" : "%.25f", halfway(common));
  case 2:
    return sprintf(out, "%.*g", 9 + digits % 9, halfway(common));
  case 3:
    return sprintf(out, "%.*f", 9 + digits % 9, halfway(common));
  case 4:
    return sprintf(out, "%lld", (long long)(x >> (x >> 3) % 60));
  case 5:
    if (x & 1) return write_long_tie(out, x, bits);
    return sprintf(out, "%.*e", 15 + digits * 3, halfway(tiny));
  case 6:
    return sprintf(out, "%.*e", digits, (double)tiny);
  default:
    return sprintf(out, "%s%u.%0*llu", x & 1 ? "-" : "", (unsigned)(x >> 8) % 1000, 1 + digits,
                   (unsigned long long)(y % 10000000000) >> (y >> 59));
  }
}

static void add_hard(uint64_t *seed) {
  uint64_t x = draw(seed), y = draw(seed);
  unsigned kind = (unsigned)(numbers / BATCH + (numbers >> 20)) % 8;
  char *from = batch.end, *end = from + write_hard(from, kind, x, y);
  bool ties = kind == 1 && strchr(from, '.');
  while (ties && end[-1] == '0') end--;
  if (ties && end[-1] == '.') end--;
  *end = '\0';
  add(end, strtof(from, NULL));
}

int main(int argc, char **argv) {
  if (!level_asked_is_here()) return 0;
  uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 0;
  uint64_t last = argc > 2 ? strtoull(argv[2], NULL, 0) : UINT32_MAX;
  uint64_t step = argc > 3 ? strtoull(argv[3], NULL, 0) : 1;
  uint64_t hard = argc > 4 ? strtoull(argv[4], NULL, 0) : UINT64_C(1) << 22;
  batch.end = batch.text;
  for (uint64_t i = first; i <= last && i <= UINT32_MAX && step > 0; i += step) {
    float value = float_of((uint32_t)i);
    if (isfinite(value)) add(number_write(batch.end, value), value);
  }
  read_batch();
  uint64_t shortest = numbers, seed = first;
  for (uint64_t i = 0; i < hard; i++) add_hard(&seed);
  read_batch();
  printf(
      "level %s: %llu shortest texts and %llu hard numbers, %llu of them read alone, %llu wrong\n",
      cpu_level_name(cpu_text_level()), (unsigned long long)shortest,
      (unsigned long long)(numbers - shortest), (unsigned long long)alone,
      (unsigned long long)wrong);
  return wrong != 0;
}
