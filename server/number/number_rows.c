/* number_rows: chooses who writes rows of numbers. */
#include "server/number/number_rows.h"

#include "core/base/cpu.h"
#include "server/number/number.h"

static char *write_empty_rows(char *out, size_t rows) {
  for (size_t i = 0; i < rows; i++) {
    if (i) *out++ = ',';
    *out++ = '[';
    *out++ = ']';
  }
  return out;
}

char *number_write_rows(char *out, const float *value, size_t rows, size_t width) {
  if (width == 0) return write_empty_rows(out, rows);
  switch (cpu_text_level()) {
#if defined(__x86_64__)
  case CPU_AVX512:
    return number_rows_avx512(out, value, rows, width);
  case CPU_AVX2:
    return number_rows_avx2(out, value, rows, width);
#endif
  default:
    return number_rows_portable(out, value, rows, width);
  }
}
