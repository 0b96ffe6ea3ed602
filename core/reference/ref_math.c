/* ref_math: row functions of the reference implementations, each formula as it is defined. */
#include "core/reference/ref_math.h"

#include <float.h>
#include <math.h>

#include "core/kernel/philox.h"

/* --- rows --- */

bool ref_is_float(double x) { return fabs(x) <= FLT_MAX; }

void ref_product(const float *weight, const float *bias, size_t out, size_t in, const double *x,
                 double *y) {
  for (size_t n = 0; n < out; n++) {
    y[n] = 0;
    for (size_t i = 0; i < in; i++) y[n] += (double)weight[n * in + i] * x[i];
    if (bias) y[n] += bias[n];
  }
}

void ref_add(double *y, double a, const double *x, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] += a * x[i];
}

/* --- norms and activations --- */

void ref_norm(const double *x, size_t n, bool rms, double epsilon, const float *factor,
              const float *shift, double *y) {
  double sum = 0, squares = 0;
  for (size_t i = 0; i < n; i++) sum += x[i];
  const double mean = rms ? 0 : sum / (double)n;
  for (size_t i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean);
  const double spread = sqrt(squares / (double)n + epsilon);
  for (size_t i = 0; i < n; i++) y[i] = (x[i] - mean) / spread * factor[i] + (shift ? shift[i] : 0);
}

static double sigmoid(double z) { return 1 / (1 + exp(-z)); }

double ref_activate(enum activation kind, double z) {
  const double pi = 3.14159265358979323846;
  switch (kind) {
  case ACTIVATION_RELU:
    return z > 0 ? z : 0;
  case ACTIVATION_GELU:
    return z * erfc(-z / sqrt(2)) / 2; /* z times the normal distribution's P(z) */
  case ACTIVATION_GELU_NEW:
    return z / 2 * (1 + tanh(sqrt(2 / pi) * (z + 0.044715 * z * z * z)));
  case ACTIVATION_SILU:
    return z * sigmoid(z);
  default: /* ACTIVATION_QUICK_GELU */
    return z * sigmoid(1.702 * z);
  }
}

/* --- weights of scores --- */

int32_t ref_greatest(const double *x, size_t n) {
  int32_t best = -1;
  for (size_t i = 0; i < n; i++)
    if (x[i] > (best < 0 ? -INFINITY : x[best])) best = (int32_t)i;
  return best;
}

/* Subtracting the greatest score changes no quotient and keeps e^score in range. */
void ref_softmax(const double *score, size_t n, double *weight) {
  const int32_t top = ref_greatest(score, n);
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += weight[i] = top < 0 ? 0 : exp(score[i] - score[top]);
  for (size_t i = 0; top >= 0 && i < n; i++) weight[i] /= sum;
}

void ref_sigmoid(const double *score, size_t n, double *weight) {
  for (size_t i = 0; i < n; i++) weight[i] = sigmoid(score[i]);
}

/* --- sampling --- */

double ref_random(uint64_t seed, const uint32_t counter[4]) {
  const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  return philox(key, counter).word[0] * 0x1p-32;
}

int32_t ref_draw(const double *weight, size_t n, double u) {
  double sum = 0;
  int32_t last = -1;
  for (size_t i = 0; i < n && sum <= u; i++) {
    if (weight[i] == 0) continue;
    sum += weight[i];
    last = (int32_t)i;
  }
  return last; /* the last index with a weight, if rounding left the whole sum below u */
}

/* --- positions --- */

/* The angle of one position: base^exponent. A context extension of a model divides it by a factor,
 * with `positions` only if the wavelength is long compared with the original context length. */
static double frequency(double base, double exponent, const struct layer_stretch *s) {
  const double plain = pow(base, exponent), wave = 2 * M_PI / plain;
  if (s->factor == 0 || s->trained > 0) return plain;
  if (s->positions == 0) return plain / s->factor;
  if (wave < s->positions / s->high) return plain;
  if (wave > s->positions / s->low) return plain / s->factor;
  const double smooth = (s->positions / wave - s->low) / (s->high - s->low);
  return (1 - smooth) * plain / s->factor + smooth * plain;
}

double ref_base(double base, size_t d, const struct layer_stretch *s, double n) {
  const double trained = (double)s->trained, size = (double)d;
  if (s->trained == 0 || n <= trained) return base;
  const double factor = s->factor > 0 ? s->factor : 1;
  return base * pow(1 + factor * (n / trained - 1), size / (size - 2));
}

void ref_rotate(double *x, size_t d, double base, const struct layer_stretch *s, double position) {
  for (size_t t = 0; t < d / 2; t++) {
    const double angle = position * frequency(base, -2.0 * (double)t / (double)d, s);
    const double a = x[t], b = x[t + d / 2];
    x[t] = a * cos(angle) - b * sin(angle);
    x[t + d / 2] = b * cos(angle) + a * sin(angle);
  }
}

/* With e = n/2, distances from e on are in bucket e + floor(ln(distance/e) / ln(far/e) (n - e)), at
 * most the last one. A quotient that misses a whole number only by rounding is that number. */
size_t ref_bucket(size_t n, double far, double distance) {
  const double e = floor((double)n / 2);
  if (distance < e) return (size_t)distance;
  if (n == 1) return 0; /* the only bucket; e = 0 */
  const double x = log(distance / e) / log(far / e) * ((double)n - e);
  const double whole = fabs(x - round(x)) < 1e-9 ? round(x) : floor(x);
  return (size_t)fmin((double)n - 1, e + whole);
}
