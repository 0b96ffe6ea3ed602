/* kernel_math: the functions of the softmax and of the scores, one vector at a time.
 *
 * A part of kernel_loops.h. All are polynomials without branches, so that each lane's bits depend
 * on that lane alone. */

/* e^x for x <= 80 or so, within 2 ulp if that is a normal number; exactly zero below -88 and for
 * -infinity, so that a masked key has no weight. x = n ln 2 + r, e^x = 2^n e^r, with a polynomial
 * for e^r that is best on |r| <= ln 2 / 2. ln 2 is subtracted in two parts, the first so short that
 * n times it is exact. */
#ifndef HAVE_EXP
INLINE vec vec_exp(vec x) {
  const vec magic = vec_all(0x1.8p23f); /* adding it rounds to an integer, kept in the low bits */
  const vec y = vec_max(x, vec_all(-87.0f));
  const vec rounded = vec_fma(y, vec_all(0x1.715476p0f), magic);
  const vec n = rounded - magic;
  vec r = vec_fma(n, vec_all(-0x1.63p-1f), y);
  r = vec_fma(n, vec_all(0x1.bd0106p-13f), r);
  vec p = vec_all(1.3814584e-3f);
  p = vec_fma(p, r, vec_all(8.3687239e-3f));
  p = vec_fma(p, r, vec_all(4.1668389e-2f));
  p = vec_fma(p, r, vec_all(1.6666521e-1f));
  p = vec_fma(p, r, vec_all(4.9999993e-1f));
  p = vec_fma(p, r, vec_all(1.0f));
  p = vec_fma(p, r, vec_all(1.0f));
  const ivec e = (ivec)p + ((ivec)rounded << 23);
  return (vec)(e & (x > vec_all(-87.0f)));
}
#endif

/* 1 / x, within about 1 ulp if a level has an instruction faster than a division. */
#ifndef HAVE_INVERSE
INLINE vec vec_inverse(vec x) { return vec_all(1.0f) / x; }
#endif

/* tanh x within 2 ulp, for any x except NaN. Near zero an odd polynomial; above 0.625, where
 * rounding of the exponential and the quotient hardly matters, 1 - 2 / (e^2|x| + 1), with e^2|x| =
 * 2^n 2^f.
 */
INLINE vec vec_tanh(vec x) {
  const ivec sign = ivec_all(INT32_MIN);
  const vec square = x * x;
  vec p = vec_all(-5.70498872745e-3f);
  p = vec_fma(p, square, vec_all(2.06390887954e-2f));
  p = vec_fma(p, square, vec_all(-5.37397155531e-2f));
  p = vec_fma(p, square, vec_all(1.33314422036e-1f));
  p = vec_fma(p, square, vec_all(-3.33332819422e-1f));
  const vec near = vec_fma(p * square, x, x);

  const vec size = (vec)((ivec)x & ~sign);
  const vec y = vec_min(size, vec_all(9.1f)); /* above it tanh is 1 */
  const vec magic = vec_all(0x1.8p23f);       /* adding it rounds to an integer */
  const vec twice_log2_e = vec_all(2.88539008178f);
  const vec rounded = vec_fma(y, twice_log2_e, magic);
  const vec f = vec_fma(y, twice_log2_e, magic - rounded);
  vec e = vec_all(1.5453162945e-4f);
  e = vec_fma(e, f, vec_all(1.3390863365e-3f));
  e = vec_fma(e, f, vec_all(9.6180825573e-3f));
  e = vec_fma(e, f, vec_all(5.5503571142e-2f));
  e = vec_fma(e, f, vec_all(2.4022650761e-1f));
  e = vec_fma(e, f, vec_all(6.9314718803e-1f));
  e = vec_fma(e, f, vec_all(1.0f));
  e = (vec)((ivec)e + ((ivec)rounded << 23));
  const vec far = vec_fma(vec_all(-2.0f), vec_inverse(e + vec_all(1.0f)), vec_all(1.0f));
  return vec_choose(size < vec_all(0.625f), near, (vec)(((ivec)x & sign) | (ivec)far));
}

/* cap tanh(x / cap), with `by` = 1 / cap. A number that is not finite stays what it is. */
INLINE vec vec_cap(vec x, vec cap, vec by) {
  return vec_choose((x - x) == vec_all(0), cap * vec_tanh(x * by), x);
}

/* 1 / (1 + e^-x); exactly zero for -infinity. The exponential is always of a negative number. */
INLINE vec vec_sigmoid(vec x) {
  const ivec below = x < vec_all(0);
  const vec e = vec_exp(vec_choose(below, x, -x));
  return vec_choose(below, e, vec_all(1.0f)) / (vec_all(1.0f) + e);
}

/* ln x for normal x > 0, within 2 ulp: x = 2^n (1 + f) with |f| <= 1/3, ln x = n ln 2 + ln (1 + f),
 * and ln (1 + f) = f + f^2 p(f) with the polynomial of least relative error there. For zero it is a
 * finite number, so that x ln x is zero. */
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
