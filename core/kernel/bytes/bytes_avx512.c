/* bytes_avx512: products of bytes with AVX-512, in 16-bit integers. */
#if defined(__AVX512F__)

#define BYTES         bytes_avx512
#define LANES         16
#define VECTORS       4
#define BLOCK_VECTORS 2

#include "core/kernel/loops/vector_avx512.h"

#define HAVE_PAIRS
static inline __attribute__((always_inline)) vec_int pairs(vec_int sum, vec_int w, vec_int x) {
  return (vec_int)_mm512_add_epi32((__m512i)sum, _mm512_madd_epi16((__m512i)w, (__m512i)x));
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
