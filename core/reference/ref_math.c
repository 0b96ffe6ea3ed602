/* ref_math: the row functions that the slow twins are made of, each formula as it is defined. */
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

/* --- what stands between attentions --- */

void ref_norm(const double *x, size_t n, bool rms, double epsilon, const float *factor,
              const float *shift, double *y) {
  double sum = 0, squares = 0;
  for (size_t i = 0; i < n; i++) sum += x[i];
  const double mean = rms ? 0 : sum / (double)n;
  for (size_t i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean);
  const double spread = sqrt(squares / (double)n + epsilon);
  for (size_t i = 0; i < n; i++) y[i] = (x[i] - mean) / spread * factor[i] + (shift ? shift[i] : 0);
}

static double part_below(double z) {
  return erfc(-z / sqrt(2)) / 2;
} /* of the normal distribution */

static double sigmoid(double z) { return 1 / (1 + exp(-z)); }

double ref_activate(enum activation kind, double z) {
  const double pi = 3.14159265358979323846;
  switch (kind) {
  case ACTIVATION_RELU:
    return z > 0 ? z : 0;
  case ACTIVATION_GELU:
    return z * part_below(z);
  case ACTIVATION_GELU_NEW:
    return z / 2 * (1 + tanh(sqrt(2 / pi) * (z + 0.044715 * z * z * z)));
  case ACTIVATION_SILU:
    return z * sigmoid(z);
  default:
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

/* The greatest score is taken from all, which changes no quotient and keeps e^score in range. */
void ref_softmax(const double *score, size_t n, double *weight) {
  const int32_t top = ref_greatest(score, n);
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += weight[i] = top < 0 ? 0 : exp(score[i] - score[top]);
  for (size_t i = 0; top >= 0 && i < n; i++) weight[i] /= sum;
}

void ref_sigmoid(const double *score, size_t n, double *weight) {
  for (size_t i = 0; i < n; i++) weight[i] = sigmoid(score[i]);
}

/* --- chance --- */

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
  return last; /* the last place that weighs anything, if rounding left the whole sum below u */
}

/* --- positions --- */

/* A wave that is long beside what the model was made of is made longer still. */
static double ref_frequency(double base, double exponent, const struct layer_stretch *s) {
  const double plain = pow(base, exponent), wave = 2 * M_PI / plain;
  if (s->factor == 0) return plain;
  if (s->positions == 0) return plain / s->factor;
  if (wave < s->positions / s->high) return plain;
  if (wave > s->positions / s->low) return plain / s->factor;
  const double smooth = (s->positions / wave - s->low) / (s->high - s->low);
  return (1 - smooth) * plain / s->factor + smooth * plain;
}

void ref_rotate(double *x, size_t d, double base, const struct layer_stretch *s, double position) {
  for (size_t t = 0; t < d / 2; t++) {
    const double angle = position * ref_frequency(base, -2.0 * (double)t / (double)d, s);
    const double a = x[t], b = x[t + d / 2];
    x[t] = a * cos(angle) - b * sin(angle);
    x[t + d / 2] = b * cos(angle) + a * sin(angle);
  }
}

/* Far away it is e + floor(ln(distance/e) / ln(far/e) (n - e)), at most the last bucket. Where only
 * rounding keeps the quotient from being a whole number, that number. */
size_t ref_bucket(size_t n, double far, double distance) {
  const double e = floor((double)n / 2);
  if (distance < e) return (size_t)distance;
  if (n == 1) return 0; /* the only one: e = 0 */
  const double x = log(distance / e) / log(far / e) * ((double)n - e);
  const double whole = fabs(x - round(x)) < 1e-9 ? round(x) : floor(x);
  return (size_t)fmin((double)n - 1, e + whole);
}
