/* exhaustive_number: writes every finite float32, compares with std::to_chars, and reads it back.
 *
 *   exhaustive_number [FIRST [LAST [STEP]]]    bit patterns, default 0 to 0xffffffff by 1
 *
 * All of them take some minutes of one core. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/text/number.h"
#include "tests/support/text_yardstick.h"

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

int main(int argc, char **argv) {
  uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 0;
  uint64_t last = argc > 2 ? strtoull(argv[2], NULL, 0) : UINT32_MAX;
  uint64_t step = argc > 3 ? strtoull(argv[3], NULL, 0) : 1;
  uint64_t count = 0, written_wrong = 0, read_wrong = 0;
  for (uint64_t i = first; i <= last && i <= UINT32_MAX && step > 0; i += step) {
    uint32_t bits = (uint32_t)i;
    if ((bits & INT32_MAX) >= UINT32_C(0x7f800000)) continue;
    char ours[64 + NUMBER_READ_MARGIN] = {0}, theirs[64];
    char *end = number_write(ours, float_of(bits)),
         *their_end = yardstick_write(theirs, float_of(bits));
    size_t length = (size_t)(end - ours);
    *their_end = '\0';
    memcpy(end, ",", 2);
    if (length != (size_t)(their_end - theirs) || memcmp(ours, theirs, length) != 0) {
      if (written_wrong++ < 10) printf("%08x: %.*s, not %s\n", bits, (int)length, ours, theirs);
    }
    float back = -1;
    const char *read_end;
    uint32_t back_bits;
    enum number_verdict verdict = number_read(ours, &read_end, &back);
    memcpy(&back_bits, &back, sizeof back_bits);
    if (verdict != NUMBER_OK || read_end != end || back_bits != bits) {
      if (read_wrong++ < 10) printf("%08x: %s reads as %08x\n", bits, ours, back_bits);
    }
    count++;
  }
  printf("%llu floats, %llu written otherwise than by std::to_chars, %llu read back wrongly\n",
         (unsigned long long)count, (unsigned long long)written_wrong,
         (unsigned long long)read_wrong);
  return written_wrong || read_wrong;
}
