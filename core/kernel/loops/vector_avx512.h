/* vector_avx512: the operations of kernel_vector.h that AVX-512 has instructions for. A file
 * defines LANES as 16 and includes it before the template that uses them. */
#include "core/kernel/loops/kernel_x86.h"

#define HAVE_FMA
#define HAVE_MAX
#define HAVE_ANY
#define HAVE_SOME
#define HAVE_FLOAT16
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
#ifndef UNIFORM
#define HAVE_INVERSE
#define HAVE_EXP
/* A reciprocal of 14 bits and one Newton step: a third of the time of a division. */
static inline __attribute__((always_inline)) vec vec_inverse(vec x) {
  const __m512 near = _mm512_rcp14_ps(x);
  return _mm512_fmadd_ps(near, _mm512_fnmadd_ps(x, near, _mm512_set1_ps(1.0f)), near);
}
/* e^x like vec_exp of kernel_math.h: x = n ln 2 + r with n a multiple of 1/16, e^x = 2^n e^r. The
 * fraction of n selects a power of two from a table; e^r is a short polynomial. Below -110 the
 * result is zero, so x is raised to -110, by a minimum of unsigned integers: among the bits of
 * negative numbers the greater mean the lesser number, and those of positive numbers are less than
 * all of them. */
static inline __attribute__((always_inline)) vec vec_exp(vec x) {
  const __m512 root =
      _mm512_setr_ps(0x1p+0f, 0x1.0b5586p+0f, 0x1.172b84p+0f, 0x1.2387a6p+0f, 0x1.306fep+0f,
                     0x1.3dea64p+0f, 0x1.4bfdaep+0f, 0x1.5ab07ep+0f, 0x1.6a09e6p+0f, 0x1.7a1148p+0f,
                     0x1.8ace54p+0f, 0x1.9c4918p+0f, 0x1.ae89fap+0f, 0x1.c199bep+0f, 0x1.d5818ep+0f,
                     0x1.ea4afap+0f);
  const __m512 magic = _mm512_set1_ps(0x1.8p19f); /* adding it rounds to a multiple of 1/16 */
  const __m512i least = _mm512_castps_si512(_mm512_set1_ps(-110.0f));
  const __m512 y = _mm512_castsi512_ps(_mm512_min_epu32(_mm512_castps_si512(x), least));
  const __m512 rounded = _mm512_fmadd_ps(y, _mm512_set1_ps(0x1.715476p0f), magic);
  const __m512 n = _mm512_sub_ps(rounded, magic);
  __m512 r = _mm512_fmadd_ps(n, _mm512_set1_ps(-0x1.63p-1f), y);
  r = _mm512_fmadd_ps(n, _mm512_set1_ps(0x1.bd0106p-13f), r);
  __m512 p = _mm512_fmadd_ps(r, _mm512_set1_ps(0.16666791f), _mm512_set1_ps(0.50001691f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
  const __m512 part = _mm512_permutexvar_ps(_mm512_castps_si512(rounded), root);
  return _mm512_scalef_ps(_mm512_fmadd_ps(_mm512_mul_ps(p, r), part, part), n);
}
#endif
static inline __attribute__((always_inline)) vec_int vec_max_int(vec_int a, vec_int b) {
  return (vec_int)_mm512_max_epi32((__m512i)a, (__m512i)b);
}
static inline __attribute__((always_inline)) _Bool vec_any(vec_int mask) {
  return _mm512_movepi32_mask((__m512i)mask) != 0;
}
static inline __attribute__((always_inline)) vec vec_float16(const unsigned short *p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i_u *)p));
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
