/* ref_math: the row functions that the slow twins are made of, each formula as it is defined.
 *
 * A row is a plain array in float64 with its length; weights and biases are a model's, in float32.
 * Float64 overflows nowhere on the way, so nothing here can fail: what float32 cannot hold is found
 * by asking ref_is_float. Whatever else a model does to a row (norms, activations, embeddings)
 * belongs here, too. */
#ifndef CORE_REF_MATH_H
#define CORE_REF_MATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/attention/layer.h"
#include "core/kernel/kernel_activation.h"

/* --- rows --- */

bool ref_is_float(double x); /* within float32's range */

/* y = W x + b, W [out, in]; b may be NULL. */
void ref_product(const float *weight, const float *bias, size_t out, size_t in, const double *x,
                 double *y);

/* y += a x */
void ref_add(double *y, double a, const double *x, size_t n);

/* --- what stands between attentions --- */

/* y = (x - mean) / sqrt(variance + epsilon) * factor + shift, or with `rms` x / sqrt(mean square +
 * epsilon) * factor + shift; the shift may be NULL, y may be x. */
void ref_norm(const double *x, size_t n, bool rms, double epsilon, const float *factor,
              const float *shift, double *y);

double ref_activate(enum activation kind, double z);

/* --- weights of scores --- */

/* The first of the greatest; -1 if there is nothing but -INFINITY. */
int32_t ref_greatest(const double *x, size_t n);

/* A score of -INFINITY is that of something hidden: it weighs exactly nothing. Where all are
 * hidden, all weigh nothing. */
void ref_softmax(const double *score, size_t n, double *weight); /* e^score / sum of e^score */
void ref_sigmoid(const double *score, size_t n, double *weight); /* 1 / (1 + e^-score) */

/* --- chance --- */

/* A number from 0 to below 1, a function of the seed and the counter. */
double ref_random(uint64_t seed, const uint32_t counter[4]);

/* One place drawn by the weights, whose sum is 1: the first at which their sum so far exceeds u. */
int32_t ref_draw(const double *weight, size_t n, double u);

/* --- positions --- */

/* Rotary: turns each pair (x[t], x[t + d/2]) by the angle position * base^(-2t/d). */
void ref_rotate(double *x, size_t d, double base, const struct layer_stretch *s, double position);

/* Which of T5's `n` buckets a distance falls into: the first n/2 have one distance each, the others
 * widen, so that one behind the last would begin at `far`. */
size_t ref_bucket(size_t n, double far, double distance);

#endif
