/* kernel_portable: the kernels in vectors of 4 floats, for any processor. */
#include "core/kernel/kernel.h"

#ifdef UNIFORM
#define KERNEL kernel_uniform_portable
#else
#define KERNEL kernel_portable
#endif
#define LEVEL   CPU_PORTABLE
#define LANES   4
#define VECTORS 2

#include "core/kernel/loops/kernel_loops.h"
