/* kernel: the choice of the table of inner loops, and the processor's mode while they run. */
#include "core/kernel/kernel.h"

#include "core/base/status.h"

extern const struct kernel kernel_portable, kernel_uniform_portable;

#if defined(__x86_64__)
#include <immintrin.h>

extern const struct kernel kernel_avx2, kernel_uniform_avx2, kernel_avx512, kernel_uniform_avx512;

const struct kernel *kernel_at(enum cpu_level level, enum kernel_bits bits) {
  static const struct kernel *const all[CPU_LEVEL_COUNT][KERNEL_BITS] = {
      [CPU_PORTABLE] = {&kernel_portable, &kernel_uniform_portable},
      [CPU_AVX2] = {&kernel_avx2, &kernel_uniform_avx2},
      [CPU_AVX512] = {&kernel_avx512, &kernel_uniform_avx512}};
  return all[level][bits];
}

enum { FLUSH_TO_ZERO = 0x8000, DENORMALS_ARE_ZERO = 0x0040 };

unsigned kernel_enter(void) {
  unsigned mode = _mm_getcsr();
  _mm_setcsr(mode | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO);
  return mode;
}

void kernel_leave(unsigned mode) { _mm_setcsr(mode); }

#else

const struct kernel *kernel_at(enum cpu_level level, enum kernel_bits bits) {
  if (level != CPU_PORTABLE) return NULL;
  return bits == KERNEL_UNIFORM ? &kernel_uniform_portable : &kernel_portable;
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

const struct kernel *kernel_best(enum kernel_bits bits) {
  const struct kernel *k = kernel_at(cpu_level(), bits);
  must(k != NULL);
  return k;
}
