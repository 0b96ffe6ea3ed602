/* vector_avx2: the operations of kernel_vector.h that AVX2 and FMA have instructions for. A file
 * defines LANES as 8 and includes it before the template that uses them. */
#include "core/kernel/loops/kernel_x86.h"

#define HAVE_FMA
#define HAVE_MAX
#define HAVE_ANY
#define HAVE_SOME
#define HAVE_FLOAT16
typedef float vec __attribute__((vector_size(32)));
typedef int vec_int __attribute__((vector_size(32)));
static inline __attribute__((always_inline)) vec vec_fma(vec a, vec b, vec c) {
  return _mm256_fmadd_ps(a, b, c);
}
static inline __attribute__((always_inline)) vec vec_max(vec a, vec b) {
  return _mm256_max_ps(a, b);
}
static inline __attribute__((always_inline)) vec vec_min(vec a, vec b) {
  return _mm256_min_ps(a, b);
}
static inline __attribute__((always_inline)) vec_int vec_max_int(vec_int a, vec_int b) {
  return (vec_int)_mm256_max_epi32((__m256i)a, (__m256i)b);
}
static inline __attribute__((always_inline)) _Bool vec_any(vec_int mask) {
  return _mm256_movemask_ps((__m256)mask) != 0;
}
static inline __attribute__((always_inline)) vec vec_float16(const unsigned short *p) {
  return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i_u *)p));
}
static inline __attribute__((always_inline)) __m256i first_lanes(size_t n) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n < LANES ? (int)n : LANES), lane);
}
static inline __attribute__((always_inline)) vec vec_load_some(const float *p, size_t n) {
  return _mm256_maskload_ps(p, first_lanes(n));
}
static inline __attribute__((always_inline)) void vec_store_some(float *p, vec v, size_t n) {
  if (n >= LANES) /* masked stores are slow on some processors */
    _mm256_storeu_ps(p, v);
  else
    _mm256_maskstore_ps(p, first_lanes(n), v);
}
