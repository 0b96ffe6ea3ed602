/* kernel_rotary: rotary positions: heads are rotated by their positions.
 *
 * A part of kernel_loops.h. Angles are double: their remainder modulo a quarter turn is exact to
 * 1e-15. */

typedef int64_t long_vec __attribute__((vector_size(LANES * 4)));

INLINE double_vec double_all(double x) { return x - (double_vec){0}; }

INLINE double_vec double_choose(long_vec mask, double_vec yes, double_vec no) {
  return (double_vec)((mask & (long_vec)yes) | (~mask & (long_vec)no));
}

/* Sine and cosine of |r| <= pi/4: Taylor polynomials with an error below 1e-11. */
INLINE void short_angle(double_vec r, double_vec *sine, double_vec *cosine) {
  static const double s[] = {-1.0 / 39916800, 1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6};
  static const double c[] = {1.0 / 479001600, -1.0 / 3628800, 1.0 / 40320, -1.0 / 720, 1.0 / 24};
  const double_vec square = r * r;
  double_vec p = double_all(s[0]), q = double_all(c[0]);
#pragma GCC unroll 4
  for (int i = 1; i < 5; i++) {
    p = p * square + double_all(s[i]);
    q = q * square + double_all(c[i]);
  }
  *sine = r + r * (square * p);
  *cosine = double_all(1) + square * (square * q - double_all(0.5));
}

/* The same for any |x| <= 2^32: x = n pi/2 + r, with pi/2 in three parts; n times each of the first
 * two is exact. */
INLINE void any_angle(double_vec x, double_vec *sine, double_vec *cosine) {
  const double_vec magic = double_all(0x1.8p52); /* adding it rounds to a whole number */
  const double_vec shifted = x * double_all(0x1.45f306dc9c883p-1) + magic;
  const double_vec n = shifted - magic;
  double_vec r = x - n * double_all(0x1.921fbp+0);
  r -= n * double_all(0x1.5110bp-22);
  r -= n * double_all(0x1.18469898cc517p-44);
  double_vec s, c;
  short_angle(r, &s, &c);
  const long_vec quarter = (long_vec)shifted, one = (long_vec){0} + 1;
  const long_vec odd = (quarter & one) != 0;
  const long_vec sine_sign = (quarter & 2) << 62, cosine_sign = ((quarter + one) & 2) << 62;
  *sine = (double_vec)((long_vec)double_choose(odd, c, s) ^ sine_sign);
  *cosine = (double_vec)((long_vec)double_choose(odd, s, c) ^ cosine_sign);
}

static void angles(double p, size_t half, const double *by, float *angle) {
  enum { STEP = LANES / 2 };
  for (size_t i = 0; i < half; i += STEP) {
    const size_t n = half - i < STEP ? half - i : STEP;
    double_vec w, sine, cosine;
    memcpy(&w, by + i, sizeof w);
    any_angle(double_all(p) * w, &sine, &cosine);
    const half_vec s = __builtin_convertvector(sine, half_vec);
    const half_vec c = __builtin_convertvector(cosine, half_vec);
    memcpy(angle + i, &c, n * sizeof(float));
    memcpy(angle + half + i, &s, n * sizeof(float));
  }
}

/* The second half of a row follows its first half: an incomplete vector must not write there. */
static uint32_t rotate(size_t rows, size_t half, const float *angle, float *x, size_t x_row) {
  ivec most = {0};
  for (size_t r = 0; r < rows; r++, angle += 2 * half, x += x_row)
    for (size_t i = 0; i < half; i += LANES) {
      const size_t n = half - i;
      const vec cosine = vec_load_some(angle + i, n), sine = vec_load_some(angle + half + i, n);
      const vec a = vec_load_some(x + i, n), b = vec_load_some(x + half + i, n);
      const vec first = a * cosine - b * sine, second = b * cosine + a * sine;
      vec_store_some(x + i, first, n);
      vec_store_some(x + half + i, second, n);
      most = vec_max_int(magnitude(first), vec_max_int(magnitude(second), most));
    }
  return (uint32_t)vec_greatest_int(most);
}
