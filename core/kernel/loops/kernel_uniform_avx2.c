/* kernel_uniform_avx2: kernel_avx2.c once more, with the bits that all levels have in common. */
#define UNIFORM
#include "core/kernel/loops/kernel_avx2.c"
