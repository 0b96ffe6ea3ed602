/* kernel: the choice of the table of inner loops, and the processor's mode while they run. */
#include "core/kernel/kernel.h"

#include "core/base/status.h"

extern const struct kernel kernel_portable;

#if defined(__x86_64__)
#include <immintrin.h>

extern const struct kernel kernel_avx2, kernel_avx512;

const struct kernel *kernel_at(enum cpu_level level) {
  switch (level) {
  case CPU_PORTABLE:
    return &kernel_portable;
  case CPU_AVX2:
    return &kernel_avx2;
  case CPU_AVX512:
    return &kernel_avx512;
  default:
    return NULL;
  }
}

enum { FLUSH_TO_ZERO = 0x8000, DENORMALS_ARE_ZERO = 0x0040 };

unsigned kernel_enter(void) {
  unsigned mode = _mm_getcsr();
  _mm_setcsr(mode | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO);
  return mode;
}

void kernel_leave(unsigned mode) { _mm_setcsr(mode); }

#else

const struct kernel *kernel_at(enum cpu_level level) {
  return level == CPU_PORTABLE ? &kernel_portable : NULL;
}

#if defined(__aarch64__)
enum { FLUSH_TO_ZERO = 1 << 24 };

unsigned kernel_enter(void) {
  unsigned long mode;
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
  __asm__ volatile("msr fpcr, %0" : : "r"(mode | FLUSH_TO_ZERO));
  return (unsigned)mode;
}

void kernel_leave(unsigned mode) { __asm__ volatile("msr fpcr, %0" : : "r"((unsigned long)mode)); }
#else
unsigned kernel_enter(void) { return 0; }
void kernel_leave(unsigned mode) { (void)mode; }
#endif
#endif

const struct kernel *kernel_best(void) {
  const struct kernel *k = kernel_at(cpu_level());
  must(k != NULL);
  return k;
}
