/* bytes_avx2vnni: products of bytes with AVX-VNNI. */
#if defined(__AVX2__)

#define BYTES         bytes_avx2vnni
#define LANES         8
#define VECTORS       2
#define BLOCK_VECTORS 2

#include "core/kernel/loops/vector_avx2.h"

/* Not the intrinsic: compilers copy its sum, which takes half of the speed. */
#define HAVE_FOURS
static inline __attribute__((always_inline)) vec_int fours_of(vec_int sum, vec_int w, vec_int x) {
  __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(w), "x"(x));
  return sum;
}

#include "core/kernel/bytes/bytes_loops.h"

#else
typedef int bytes_avx2vnni_is_not_for_this_processor;
#endif
