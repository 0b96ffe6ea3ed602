/* bytes: the choice of the table of products of bytes. */
#include "core/kernel/bytes.h"

#include "core/base/status.h"

extern const struct byte_kernel bytes_portable, bytes_avx2, bytes_avx2vnni, bytes_avx512,
    bytes_avx512vnni;

const struct byte_kernel *byte_kernel_at(const struct cpu_word *word) {
#if defined(__x86_64__)
  static const struct byte_kernel *const all[CPU_LEVEL_COUNT][2] = {
      [CPU_PORTABLE] = {&bytes_portable, NULL},
      [CPU_AVX2] = {&bytes_avx2, &bytes_avx2vnni},
      [CPU_AVX512] = {&bytes_avx512, &bytes_avx512vnni}};
  return all[word->level][word->vnni != 0];
#else
  return word->level == CPU_PORTABLE ? &bytes_portable : NULL;
#endif
}

const struct byte_kernel *byte_kernel_best(void) {
  const struct byte_kernel *k = byte_kernel_at(cpu_word());
  must(k != NULL);
  return k;
}
