/* number_stretch: chooses who reads stretches of numbers. */
#include "server/number/number_stretch.h"

#include "core/base/cpu.h"
#include "server/number/number.h"

enum {
  FEW = 6
}; /* numbers: vectors need more to pay for what a stretch costs at its start and end */

size_t number_read_stretch(const char *text, const char *end, float *out, size_t room,
                           const char **stop) {
  switch (room < FEW ? CPU_PORTABLE : cpu_text_level()) {
#if defined(__x86_64__)
  case CPU_AVX512:
    return number_stretch_avx512(text, end, out, room, stop);
  case CPU_AVX2:
    return number_stretch_avx2(text, end, out, room, stop);
#endif
  default:
    return number_stretch_portable(text, end, out, room, stop);
  }
}
