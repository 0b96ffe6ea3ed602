/* kernel_vector: vectors of LANES floats, and the few operations the kernels are made of.
 *
 * Included by one kernel_<level>.c after it has defined LANES and, where the level has them,
 * vec_fma, vec_max and vec_any (HAVE_FMA, ...). Everything else is the compiler's vector
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
#endif

#ifndef HAVE_ANY
INLINE bool vec_any(ivec mask) {
  int32_t any = 0;
  for (int i = 0; i < LANES; i++) any |= mask[i];
  return any != 0;
}
#endif

/* The first `n` floats at p, zeros behind them. */
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

/* e^x for x <= about 80, within 2 ulp: x = n ln 2 + r, e^x = 2^n e^r, and for e^r a polynomial that
 * is best on |r| <= ln 2 / 2. ln 2 is taken in two parts, the first so short that n times it is
 * exact. Exactly zero below -86 and for -infinity: a hidden key weighs nothing. */
INLINE vec vec_exp(vec x) {
  const vec magic = vec_all(0x1.8p23f); /* adding it rounds to an integer, kept in the low bits */
  ivec zero = x < vec_all(-86.0f);
  vec rounded = vec_choose(zero, vec_all(0), x) * vec_all(0x1.715476p0f) + magic;
  vec n = rounded - magic;
  vec r = vec_fma(n, vec_all(-0x1.63p-1f), x);
  r = vec_fma(n, vec_all(0x1.bd0106p-13f), r);
  vec p = vec_all(1.9875691500e-4f);
  p = vec_fma(p, r, vec_all(1.3981999507e-3f));
  p = vec_fma(p, r, vec_all(8.3334519073e-3f));
  p = vec_fma(p, r, vec_all(4.1665795894e-2f));
  p = vec_fma(p, r, vec_all(1.6666665459e-1f));
  p = vec_fma(p, r, vec_all(5.0000001201e-1f));
  vec e = vec_fma(p, r * r, r) + vec_all(1.0f);
  ivec bits = (ivec)e + ((ivec)rounded << 23);
  return (vec)(bits & ~zero);
}

/* ln x for normal x > 0, within 2 ulp: x = 2^n (1 + f) with |f| <= 1/3, ln x = n ln 2 + ln (1 + f),
 * and for ln (1 + f) = f + f^2 p(f) the polynomial whose relative error is least there. For zero it
 * is a finite number, so that x ln x is zero as it should be. */
INLINE vec vec_log(vec x) {
  const ivec exponent = ((ivec)x - ivec_all(0x3f2aaaab)) & ivec_all(-0x800000);
  const vec f = (vec)((ivec)x - exponent) - vec_all(1.0f);
  vec p = vec_all(1.402625090e-1f);
  p = vec_fma(p, f, vec_all(-1.538855855e-1f));
  p = vec_fma(p, f, vec_all(1.399582813e-1f));
  p = vec_fma(p, f, vec_all(-1.641595708e-1f));
  p = vec_fma(p, f, vec_all(2.001116751e-1f));
  p = vec_fma(p, f, vec_all(-2.500781910e-1f));
  p = vec_fma(p, f, vec_all(3.333319815e-1f));
  p = vec_fma(p, f, vec_all(-4.999993608e-1f));
  const vec part = vec_fma(p, f * f, f);
  /* The exponent is still shifted: 2^23 n. */
  return vec_fma(__builtin_convertvector(exponent, vec), vec_all(0x1.62e430p-24f), part);
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
