/* ref_math: row functions of the reference implementations, each formula as it is defined.
 *
 * A row is an array in float64 with its length; weights and biases are a model's, in float32.
 * Nothing here can fail: float64 does not overflow on the way, and the callers check with
 * ref_is_float whether a result fits float32. */
#ifndef CORE_REF_MATH_H
#define CORE_REF_MATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/attention/layer.h"
#include "core/kernel/kernel_activation.h"

/* --- rows --- */

bool ref_is_float(double x); /* finite and within the float32 range */

/* y = W x + b, W [out, in]; b may be NULL. */
void ref_product(const float *weight, const float *bias, size_t out, size_t in, const double *x,
                 double *y);

/* y += a x */
void ref_add(double *y, double a, const double *x, size_t n);

/* --- norms and activations --- */

/* y = (x - mean) / sqrt(variance + epsilon) * factor + shift, or with `rms` x / sqrt(mean square +
 * epsilon) * factor + shift; the shift may be NULL, y may be x. */
void ref_norm(const double *x, size_t n, bool rms, double epsilon, const float *factor,
              const float *shift, double *y);

double ref_activate(enum activation kind, double z);

/* --- weights of scores --- */

/* The index of the greatest number, the first one on a tie; -1 if all are -INFINITY. */
int32_t ref_greatest(const double *x, size_t n);

/* A score of -INFINITY (a masked key) has a weight of exactly 0, also if all are -INFINITY. */
void ref_softmax(const double *score, size_t n, double *weight); /* e^score / sum of e^score */
void ref_sigmoid(const double *score, size_t n, double *weight); /* 1 / (1 + e^-score) */

/* --- sampling --- */

/* A number in [0, 1), a function of the seed and the counter. */
double ref_random(uint64_t seed, const uint32_t counter[4]);

/* Samples an index by the weights, whose sum is 1: the first one at which the running sum exceeds
 * u. */
int32_t ref_draw(const double *weight, size_t n, double u);

/* --- positions --- */

/* The base of rotary positions in an item with n keys, which may follow n. */
double ref_base(double base, size_t d, const struct layer_stretch *s, double n);

/* Rotary positions: rotates each pair (x[t], x[t + d/2]) by the angle position * base^(-2t/d). */
void ref_rotate(double *x, size_t d, double base, const struct layer_stretch *s, double position);

/* The bucket of a distance, of T5's `n`: the first n/2 buckets hold one distance each; the others
 * grow geometrically, such that bucket n would begin at `far`. */
size_t ref_bucket(size_t n, double far, double distance);

#endif
