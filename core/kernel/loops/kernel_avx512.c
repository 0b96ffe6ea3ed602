/* kernel_avx512: the kernels in vectors of 16 floats, for processors with AVX-512. */
#if defined(__AVX512F__)

#include "core/kernel/kernel.h"

#ifdef UNIFORM
#define KERNEL kernel_uniform_avx512
#else
#define KERNEL kernel_avx512
#endif
#define LEVEL   CPU_AVX512
#define LANES   16
#define VECTORS 4

#include "core/kernel/loops/vector_avx512.h"

#include "core/kernel/loops/kernel_loops.h"

#else
typedef int kernel_avx512_is_not_for_this_processor;
#endif
