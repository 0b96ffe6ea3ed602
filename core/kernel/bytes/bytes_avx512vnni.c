/* bytes_avx512vnni: products of bytes with AVX-512 and its VNNI. */
#if defined(__AVX512F__)

#define BYTES         bytes_avx512vnni
#define LANES         16
#define VECTORS       4
#define BLOCK_VECTORS 2

#include "core/kernel/loops/vector_avx512.h"

/* Not the intrinsic: compilers copy its sum, which takes half of the speed. */
#define HAVE_FOURS
static inline __attribute__((always_inline)) vec_int fours_of(vec_int sum, vec_int w, vec_int x) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(w), "v"(x));
  return sum;
}

#include "core/kernel/bytes/bytes_loops.h"

#else
typedef int bytes_avx512vnni_is_not_for_this_processor;
#endif
