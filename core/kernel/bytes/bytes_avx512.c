/* bytes_avx512: products of bytes with AVX-512, in 16-bit integers. */
#if defined(__AVX512F__)

#define BYTES         bytes_avx512
#define LANES         16
#define VECTORS       4
#define BLOCK_VECTORS 2

#include "core/kernel/loops/vector_avx512.h"

/* Not intrinsics, as in bytes_avx2.c. */
#define HAVE_PAIRS
static inline __attribute__((always_inline)) vec_int pairs(vec_int sum, vec_int w, vec_int x) {
  vec_int product;
  __asm__("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0" : "+v"(sum), "=&v"(product) : "v"(w), "v"(x));
  return sum;
}
static inline __attribute__((always_inline)) vec_int lower_bytes(vec_int w) {
  return (vec_int)_mm512_and_si512((__m512i)w, _mm512_set1_epi16(255));
}
static inline __attribute__((always_inline)) vec_int upper_bytes(vec_int w) {
  return (vec_int)_mm512_srli_epi16((__m512i)w, 8);
}

#include "core/kernel/bytes/bytes_loops.h"

#else
typedef int bytes_avx512_is_not_for_this_processor;
#endif
