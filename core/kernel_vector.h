/* kernel_vector: vectors of LANES floats, and the few operations the kernels are made of.
 *
 * Included by one kernel_<level>.c after it has defined LANES and, where the level has them,
 * vec_fma, vec_max with vec_min and vec_max_int, vec_any, vec_load_some with vec_store_some, and
 * for kernel_math.h vec_inverse (HAVE_FMA, ...). Everything else is the compiler's vector
 * arithmetic, so it reads the same at every width. */
#ifndef LANES
#error "define LANES first"
#endif

#include <float.h>
#include <math.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

typedef float vec __attribute__((vector_size(LANES * 4)));
typedef int32_t ivec __attribute__((vector_size(LANES * 4)));
typedef float vec_anywhere __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

INLINE vec vec_load(const float *p) { return *(const vec_anywhere *)p; }
INLINE void vec_store(float *p, vec v) { *(vec_anywhere *)p = v; }
INLINE vec vec_all(float x) { return x - (vec){0}; }
INLINE ivec ivec_all(int32_t x) { return x - (ivec){0}; }

#ifndef HAVE_FMA
INLINE vec vec_fma(vec a, vec b, vec c) { return a * b + c; }
#endif

/* `mask` is all ones or all zeros per lane, as comparisons give it. */
INLINE vec vec_choose(ivec mask, vec yes, vec no) {
  return (vec)((mask & (ivec)yes) | (~mask & (ivec)no));
}

#ifndef HAVE_MAX
INLINE vec vec_max(vec a, vec b) { return vec_choose(a > b, a, b); }
INLINE vec vec_min(vec a, vec b) { return vec_choose(a < b, a, b); }
INLINE ivec vec_max_int(ivec a, ivec b) { return (a & (a > b)) | (b & ~(a > b)); }
#endif

#ifndef HAVE_ANY
INLINE bool vec_any(ivec mask) {
  int32_t any = 0;
  for (int i = 0; i < LANES; i++) any |= mask[i];
  return any != 0;
}
#endif

/* The first `n` floats at p, zeros behind them; all where n is greater than LANES. */
#ifndef HAVE_SOME
INLINE vec vec_load_some(const float *p, size_t n) {
  if (n >= LANES) return vec_load(p);
  vec v = {0};
  memcpy(&v, p, n * sizeof(float));
  return v;
}

INLINE void vec_store_some(float *p, vec v, size_t n) {
  if (n >= LANES)
    vec_store(p, v);
  else
    memcpy(p, &v, n * sizeof(float));
}
#endif

/* The sum of the lanes, halves first. */
INLINE float vec_sum(vec v) {
#pragma GCC unroll 8
  for (int s = LANES / 2; s > 0; s /= 2) {
    ivec other;
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++) other[i] = i ^ s;
    v += __builtin_shuffle(v, other);
  }
  return v[0];
}

/* Transposes LANES vectors in place: swaps ever larger blocks across the diagonal. */
INLINE void vec_transpose(vec r[LANES]) {
#pragma GCC unroll 8
  for (int s = 1; s < LANES; s *= 2) {
    ivec low, high;
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++) {
      low[i] = (i & s) ? LANES + (i ^ s) : i;
      high[i] = (i & s) ? LANES + i : (i ^ s);
    }
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
      if (!(i & s)) {
        vec a = r[i], b = r[i + s];
        r[i] = __builtin_shuffle(a, b, low);
        r[i + s] = __builtin_shuffle(a, b, high);
      }
  }
}
