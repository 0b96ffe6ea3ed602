/* size: checked arithmetic on sizes, for every product of dimensions from outside. False: the
 * result does not fit, and `*out` must not be used. */
#ifndef CORE_SIZE_H
#define CORE_SIZE_H

#include <stdbool.h>
#include <stddef.h>

static inline bool size_mul(size_t a, size_t b, size_t *out) {
  return !__builtin_mul_overflow(a, b, out);
}

static inline bool size_add(size_t a, size_t b, size_t *out) {
  return !__builtin_add_overflow(a, b, out);
}

static inline size_t size_min(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t size_max(size_t a, size_t b) { return a > b ? a : b; }

/* `n` rounded up to a multiple of `step`, a power of two; the result must fit. */
static inline size_t size_round_up(size_t n, size_t step) { return (n + step - 1) & ~(step - 1); }

#endif
