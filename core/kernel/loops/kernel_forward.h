/* kernel_forward: the activations of a feed-forward layer.
 *
 * A part of kernel_loops.h. Each is within 2 ulp or 1e-7, whichever is more. */

/* z f(z) for a function f that rises from 0 to 1, given `lacking` = 1 - f(|z|): neither small nor
 * large results lose digits, and none overflows. */
INLINE vec vec_gated(vec z, vec lacking) {
  const vec tail = (vec)magnitude(z) * lacking;
  return vec_choose(z > vec_all(0), z - tail, -tail);
}

/* 1 - P(|z|): e^(-z^2 / 2) times a slowly falling function, a polynomial in t = 1 / (1 + 0.3 |z|)
 * with a relative error of at most 5e-8. */
INLINE vec vec_beyond(vec z) {
  const vec size = (vec)magnitude(z);
  const vec t = vec_inverse(vec_fma(vec_all(0.3f), size, vec_all(1.0f)));
  vec p = vec_all(3.754821622e-2f);
  p = vec_fma(p, t, vec_all(-1.650782916e-1f));
  p = vec_fma(p, t, vec_all(2.200865820e-1f));
  p = vec_fma(p, t, vec_all(-6.652574502e-2f));
  p = vec_fma(p, t, vec_all(1.354971451e-1f));
  p = vec_fma(p, t, vec_all(9.775583852e-2f));
  p = vec_fma(p, t, vec_all(1.211112422e-1f));
  p = vec_fma(p, t, vec_all(1.196050374e-1f));
  return p * t * vec_exp(vec_all(-0.5f) * size * size);
}

/* 1 - s(|x|) */
INLINE vec vec_short(vec x) {
  const vec e = vec_exp((vec)((ivec)x | ivec_all(INT32_MIN)));
  return e / (vec_all(1.0f) + e);
}

INLINE vec vec_activate(const enum activation kind, vec z) {
  switch (kind) {
  case ACTIVATION_RELU: /* z - z is 0, or NaN if z is not finite, which must not be lost */
    return vec_choose(z > vec_all(0), z, z - z);
  case ACTIVATION_GELU:
    return vec_gated(z, vec_beyond(z));
  case ACTIVATION_GELU_NEW:
    return vec_gated(z,
                     vec_short(z * vec_fma(z * z, vec_all(7.13548163e-2f), vec_all(1.59576912f))));
  case ACTIVATION_SILU:
    return vec_gated(z, vec_short(z));
  default:
    return vec_gated(z, vec_short(vec_all(1.702f) * z));
  }
}

INLINE void activate_as(const enum activation kind, size_t count, float *z, const float *times) {
  for (size_t i = 0; i < count; i += LANES) {
    vec y = vec_activate(kind, vec_load_some(z + i, count - i));
    if (times) y *= vec_load_some(times + i, count - i);
    vec_store_some(z + i, y, count - i);
  }
}

static void activate(enum activation kind, size_t count, float *z, const float *times) {
  switch (kind) {
  case ACTIVATION_RELU:
    return activate_as(ACTIVATION_RELU, count, z, times);
  case ACTIVATION_GELU:
    return activate_as(ACTIVATION_GELU, count, z, times);
  case ACTIVATION_GELU_NEW:
    return activate_as(ACTIVATION_GELU_NEW, count, z, times);
  case ACTIVATION_SILU:
    return activate_as(ACTIVATION_SILU, count, z, times);
  case ACTIVATION_QUICK_GELU:
    return activate_as(ACTIVATION_QUICK_GELU, count, z, times);
  }
}
