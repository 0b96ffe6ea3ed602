/* kernel_vector: vectors of LANES floats, and the operations that the kernels consist of.
 *
 * A part of kernel_loops.h, which lists the operations that a level may define. All others are the
 * compiler's vector arithmetic, the same at every width. */

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

/* --- 16-bit numbers --- */

typedef uint16_t narrow_anywhere __attribute__((vector_size(LANES * 2), aligned(2), may_alias));
typedef uint32_t wide_integers __attribute__((vector_size(LANES * 4)));

INLINE wide_integers vec_integers(const uint16_t *p) {
  return __builtin_convertvector(*(const narrow_anywhere *)p, wide_integers);
}

/* Like narrow_widen of narrow.h, without intermediate numbers below float32's normal range. */
#ifndef HAVE_FLOAT16
INLINE vec vec_float16(const uint16_t *p) {
  const wide_integers bits = vec_integers(p), size = (bits & 0x7fff) << 13;
  const vec tiny = (vec)(size + (113u << 23)) - 0x1p-14f, other = (vec)(size + (112u << 23));
  const ivec is_tiny = (ivec)(size < 1u << 23);
  return (vec)((wide_integers)((is_tiny & (ivec)tiny) | (~is_tiny & (ivec)other)) | (bits & 0x8000)
                                                                                        << 16);
}
#endif

/* LANES numbers of a panel in this form (a constant for the compiler) from number `at` on, a
 * multiple of LANES. In the order of kernel_place, a shift and a mask widen bfloat16: moving halves
 * across a vector would take three times as long. */
INLINE vec vec_load_form(const int form, const void *p, size_t at) {
  if (form == KERNEL_FLOAT32) return vec_load((const float *)p + at);
  if (form == KERNEL_FLOAT16) return vec_float16((const uint16_t *)p + at);
  const size_t pair = at / (2 * LANES);
  const wide_integers both = (wide_integers)vec_load((const float *)p + pair * LANES);
  return (vec)(at / LANES % 2 ? both & 0xffff0000 : both << 16);
}

#if !defined HAVE_FMA && !defined UNIFORM
INLINE vec vec_fma(vec a, vec b, vec c) { return a * b + c; }
#endif

/* Rounds a b + c once. In double the product is exact, and the sum is rounded; rounding it again,
 * to float, is wrong only if it then lies halfway between two floats: such lanes are rare, and for
 * them fmaf is called. Not inline: it is so long that the loops would become ten times as large. */
#if !defined HAVE_FMA && defined UNIFORM
typedef double vec_double __attribute__((vector_size(LANES * 8)));
typedef uint64_t vec_bits __attribute__((vector_size(LANES * 8)));

static __attribute__((noinline)) vec vec_fma(vec a, vec b, vec c) {
#define DOUBLE(x) __builtin_convertvector(x, vec_double)
  const vec_double sum = DOUBLE(a) * DOUBLE(b) + DOUBLE(c);
  vec y = __builtin_convertvector(sum, vec);
#undef DOUBLE
  const vec_bits beyond =
      ((vec_bits)sum & 0x1fffffff) ^ 0x10000000; /* what a float has no room for */
  bool halfway = false;
  for (int i = 0; i < LANES; i++) halfway |= beyond[i] == 0;
  if (__builtin_expect(halfway, 0))
    for (int i = 0; i < LANES; i++) y[i] = fmaf(a[i], b[i], c[i]);
  return y;
}
#endif

/* `mask` is all ones or all zeros per lane, the result of a comparison. */
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

/* The first `n` floats at p, then zeros; all floats if n is greater than LANES. */
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

/* --- across the lanes --- */

/* One number per lane, as a constant for a shuffle: gcc would fill a loop's result at run time. */
#define LANES_4(f, i, s) f(i, s), f(i + 1, s), f(i + 2, s), f(i + 3, s)
#if LANES == 16
#define LANES_OF(f, s) \
  { LANES_4(f, 0, s), LANES_4(f, 4, s), LANES_4(f, 8, s), LANES_4(f, 12, s) }
#elif LANES == 8
#define LANES_OF(f, s) \
  { LANES_4(f, 0, s), LANES_4(f, 4, s) }
#else
#define LANES_OF(f, s) \
  { LANES_4(f, 0, s) }
#endif
#define LANE_NUMBER(i, s) (i)
#define LANE_BACK(i, s)   (LANES - 1 - (i))
#define LANE_ACROSS(i, s) ((i) ^ (s))
#define LANE_LOW(i, s)    ((i) & (s) ? LANES + ((i) ^ (s)) : (i))
#define LANE_HIGH(i, s)   ((i) & (s) ? LANES + (i) : ((i) ^ (s)))

/* Permutations of blocks of `s` lanes, s < LANES a power of two: neighbors of one vector are
 * swapped; the even blocks of two vectors; their odd blocks. */
#define ACROSS(s) \
  case s:         \
    return __builtin_shuffle(v, (ivec)LANES_OF(LANE_ACROSS, s))
#define BOTH(which, s) \
  case s:              \
    return __builtin_shuffle(a, b, (ivec)LANES_OF(which, s))

INLINE vec vec_across(vec v, const int s) {
  switch (s) {
    ACROSS(1);
    ACROSS(2);
#if LANES >= 8
    ACROSS(4);
#endif
#if LANES == 16
    ACROSS(8);
#endif
  default:
    __builtin_unreachable();
  }
}

INLINE vec vec_evens(vec a, vec b, const int s) {
  switch (s) {
    BOTH(LANE_LOW, 1);
    BOTH(LANE_LOW, 2);
#if LANES >= 8
    BOTH(LANE_LOW, 4);
#endif
#if LANES == 16
    BOTH(LANE_LOW, 8);
#endif
  default:
    __builtin_unreachable();
  }
}

INLINE vec vec_odds(vec a, vec b, const int s) {
  switch (s) {
    BOTH(LANE_HIGH, 1);
    BOTH(LANE_HIGH, 2);
#if LANES >= 8
    BOTH(LANE_HIGH, 4);
#endif
#if LANES == 16
    BOTH(LANE_HIGH, 8);
#endif
  default:
    __builtin_unreachable();
  }
}

INLINE vec vec_backwards(vec v) { return __builtin_shuffle(v, (ivec)LANES_OF(LANE_BACK, 0)); }

INLINE ivec lane_numbers(void) { return (ivec)LANES_OF(LANE_NUMBER, 0); }

#undef LANES_4
#undef LANES_OF
#undef LANE_NUMBER
#undef LANE_BACK
#undef LANE_ACROSS
#undef LANE_LOW
#undef LANE_HIGH
#undef ACROSS
#undef BOTH

/* The sum of the lanes, neighbors last. */
INLINE float vec_sum(vec v) {
#pragma GCC unroll 8
  for (int s = LANES / 2; s > 0; s /= 2) v += vec_across(v, s);
  return v[0];
}

/* The greatest lane. */
INLINE float vec_greatest(vec v) {
#pragma GCC unroll 8
  for (int s = LANES / 2; s > 0; s /= 2) v = vec_max(v, vec_across(v, s));
  return v[0];
}

INLINE int32_t vec_greatest_int(ivec v) {
#pragma GCC unroll 8
  for (int s = LANES / 2; s > 0; s /= 2) v = vec_max_int(v, (ivec)vec_across((vec)v, s));
  return v[0];
}

/* Transposes LANES vectors in place: swaps ever larger blocks across the diagonal. */
INLINE void vec_transpose(vec r[LANES]) {
#pragma GCC unroll 8
  for (int s = 1; s < LANES; s *= 2)
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
      if (!(i & s)) {
        const vec a = r[i], b = r[i + s];
        r[i] = vec_evens(a, b, s);
        r[i + s] = vec_odds(a, b, s);
      }
}

enum { QUARTER = 4 }; /* vectors, at every width */

/* The same if only the first QUARTER vectors are used: the others may hold anything. */
INLINE void vec_transpose_quarter(vec r[LANES]) {
#pragma GCC unroll 8
  for (int s = 1; s < LANES; s *= 2)
#pragma GCC unroll 16
    for (int i = 0; i < (s < QUARTER ? QUARTER : s); i++)
      if (!(i & s)) {
        const vec a = r[i], b = s < QUARTER ? r[i + s] : vec_all(0);
        r[i] = vec_evens(a, b, s);
        r[i + s] = vec_odds(a, b, s);
      }
}

/* The same if only the first QUARTER vectors of the result are needed. */
INLINE void vec_transpose_to_quarter(vec r[LANES]) {
#pragma GCC unroll 8
  for (int s = LANES / 2; s > 0; s /= 2)
#pragma GCC unroll 16
    for (int i = 0; i < (s < QUARTER ? QUARTER : s); i++)
      if (!(i & s)) {
        const vec a = r[i], b = r[i + s];
        r[i] = vec_evens(a, b, s);
        if (s < QUARTER) r[i + s] = vec_odds(a, b, s);
      }
}

/* to[c][i] = from[i][c] for HAVE_TURN rows, which divides LANES, and 4 columns. */
#ifndef HAVE_TURN
#define HAVE_TURN LANES
INLINE void turn_fours(const float *from, size_t from_row, float *to, size_t to_row) {
  vec r[LANES];
#pragma GCC unroll 16
  for (size_t i = 0; i < LANES; i++) r[i] = vec_load_some(from + i * from_row, 4);
  vec_transpose(r);
#pragma GCC unroll 4
  for (size_t i = 0; i < 4; i++) vec_store(to + i * to_row, r[i]);
}
#endif
