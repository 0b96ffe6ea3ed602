/* kernel_avx2: the kernels in vectors of 8 floats, for processors with AVX2 and FMA. */
#if defined(__AVX2__)

#include "core/kernel/kernel.h"

#ifdef UNIFORM
#define KERNEL kernel_uniform_avx2
#else
#define KERNEL kernel_avx2
#endif
#define LEVEL   CPU_AVX2
#define LANES   8
#define VECTORS 2

#include "core/kernel/loops/vector_avx2.h"

#include "core/kernel/loops/kernel_loops.h"

#else
typedef int kernel_avx2_is_not_for_this_processor;
#endif
