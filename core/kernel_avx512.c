/* kernel_avx512: the kernels in vectors of 16 floats, for processors with AVX-512. */
#if defined(__AVX512F__)

#include "core/kernel.h"

#include <immintrin.h>

#define LANES   16
#define VECTORS 4
#define HAVE_FMA
#define HAVE_MAX
#define HAVE_ANY
#define HAVE_SOME
#define HAVE_INVERSE
typedef float vec __attribute__((vector_size(64)));
typedef int vec_int __attribute__((vector_size(64)));
static inline __attribute__((always_inline)) vec vec_fma(vec a, vec b, vec c) {
  return _mm512_fmadd_ps(a, b, c);
}
static inline __attribute__((always_inline)) vec vec_max(vec a, vec b) {
  return _mm512_max_ps(a, b);
}
static inline __attribute__((always_inline)) vec vec_min(vec a, vec b) {
  return _mm512_min_ps(a, b);
}
/* A reciprocal to 14 bits and one step of Newton's: a third of the time of a division. */
static inline __attribute__((always_inline)) vec vec_inverse(vec x) {
  const __m512 near = _mm512_rcp14_ps(x);
  return _mm512_fmadd_ps(near, _mm512_fnmadd_ps(x, near, _mm512_set1_ps(1.0f)), near);
}
static inline __attribute__((always_inline)) vec_int vec_max_int(vec_int a, vec_int b) {
  return (vec_int)_mm512_max_epi32((__m512i)a, (__m512i)b);
}
static inline __attribute__((always_inline)) _Bool vec_any(vec_int mask) {
  return _mm512_movepi32_mask((__m512i)mask) != 0;
}
static inline __attribute__((always_inline)) __mmask16 first_lanes(size_t n) {
  return (__mmask16)(n >= LANES ? 0xffff : (1u << n) - 1);
}
static inline __attribute__((always_inline)) vec vec_load_some(const float *p, size_t n) {
  return _mm512_maskz_loadu_ps(first_lanes(n), p);
}
static inline __attribute__((always_inline)) void vec_store_some(float *p, vec v, size_t n) {
  _mm512_mask_storeu_ps(p, first_lanes(n), v);
}

#include "core/kernel_vector.h"

#include "core/kernel_math.h"

#include "core/kernel_product.h"

#include "core/kernel_panel.h"

#include "core/kernel_score.h"

#include "core/kernel_soft.h"

#include "core/kernel_choose.h"

#include "core/kernel_levels.h"

#include "core/kernel_few.h"

#include "core/kernel_attend.h"

#include "core/kernel_measure.h"

extern const struct kernel kernel_avx512;
KERNEL_TABLE(kernel_avx512, CPU_AVX512);

#else
typedef int kernel_avx512_is_not_for_this_processor;
#endif
