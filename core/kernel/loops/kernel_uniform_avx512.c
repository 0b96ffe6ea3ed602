/* kernel_uniform_avx512: kernel_avx512.c once more, with the bits that all levels have in common.
 */
#define UNIFORM
#include "core/kernel/loops/kernel_avx512.c"
