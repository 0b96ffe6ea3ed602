/* kernel_activation: the activations of a feed-forward layer. */
#ifndef CORE_KERNEL_ACTIVATION_H
#define CORE_KERNEL_ACTIVATION_H

/* P(z) is the normal distribution, s(z) = 1 / (1 + e^-z). */
enum activation {
  ACTIVATION_RELU,      /* max(z, 0) */
  ACTIVATION_GELU,      /* z P(z) */
  ACTIVATION_GELU_NEW,  /* z s(2 sqrt(2 / pi) (z + 0.044715 z^3)), an approximation of GELU */
  ACTIVATION_SILU,      /* z s(z) */
  ACTIVATION_QUICK_GELU /* z s(1.702 z) */
};

#endif
