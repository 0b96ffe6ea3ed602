/* bytes_avx2: products of bytes with AVX2, in 16-bit integers. */
#if defined(__AVX2__)

#define BYTES         bytes_avx2
#define LANES         8
#define VECTORS       2
#define BLOCK_VECTORS 2

#include "core/kernel/loops/vector_avx2.h"

/* Not intrinsics: gcc would compute many products before it adds them, and there are only as many
 * registers as sums, factors and one product need. */
#define HAVE_PAIRS
static inline __attribute__((always_inline)) vec_int pairs(vec_int sum, vec_int w, vec_int x) {
  vec_int product;
  __asm__("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0" : "+x"(sum), "=&x"(product) : "x"(w), "x"(x));
  return sum;
}
static inline __attribute__((always_inline)) vec_int lower_bytes(vec_int w) {
  return (vec_int)_mm256_and_si256((__m256i)w, _mm256_set1_epi16(255));
}
static inline __attribute__((always_inline)) vec_int upper_bytes(vec_int w) {
  return (vec_int)_mm256_srli_epi16((__m256i)w, 8);
}

#include "core/kernel/bytes/bytes_loops.h"

#else
typedef int bytes_avx2_is_not_for_this_processor;
#endif
