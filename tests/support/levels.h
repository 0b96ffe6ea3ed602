/* levels: a check of the kernels, of all bits, at every level that this processor has. */
#ifndef TESTS_LEVELS_H
#define TESTS_LEVELS_H

#include "core/kernel/kernel.h"

static inline void for_each_level(void (*check)(const struct kernel *k)) {
  for (int level = 0; level <= (int)cpu_level(); level++) {
    for (int bits = 0; bits < KERNEL_BITS; bits++) {
      const struct kernel *k = kernel_at((enum cpu_level)level, (enum kernel_bits)bits);
      if (k) check(k);
    }
  }
}

#endif
