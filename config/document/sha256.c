/* sha256: the table of the levels. */
#include "config/document/sha256.h"

#if defined(__x86_64__)
extern const struct sha256_level sha256_portable, sha256_avx2, sha256_avx512;
#endif

const struct sha256_level *sha256_level(enum cpu_level level) {
  switch (level) {
#if defined(__x86_64__)
  case CPU_PORTABLE:
    return &sha256_portable;
  case CPU_AVX2:
    return &sha256_avx2;
  case CPU_AVX512:
    return &sha256_avx512;
#endif
  default:
    return NULL;
  }
}
