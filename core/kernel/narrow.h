/* narrow: float32 numbers stored in 16 bits if that is exact.
 *
 * Checkpoints often hold 16-bit numbers. As float32 they take twice the memory, and twice the time
 * of products that are limited by memory. */
#ifndef CORE_NARROW_H
#define CORE_NARROW_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/base/status.h"
#include "core/kernel/kernel_form.h"

/* The first of KERNEL_BFLOAT16, KERNEL_FLOAT16 and KERNEL_FLOAT32 that represents all numbers
 * exactly. A team checks them together (core/base/team.h). */
enum kernel_form narrow_form(const float *x, size_t count);

const char *narrow_name(enum kernel_form form); /* "bfloat16" */

static inline size_t narrow_size(enum kernel_form form) {
  return form == KERNEL_FLOAT32 ? sizeof(float) : sizeof(uint16_t);
}

/* The bits of a number that the form represents. */
static inline uint16_t narrow_number(enum kernel_form form, float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  if (form == KERNEL_BFLOAT16) return (uint16_t)(bits >> 16);
  const uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
  const int exponent = (int)(size >> 23) - 127;
  if (exponent >= -14)
    return (uint16_t)(sign | (uint32_t)(exponent + 15) << 10 | (size >> 13 & 0x3ff));
  if (exponent < -24) return (uint16_t)sign;
  return (uint16_t)(sign | ((size & 0x7fffff) | 0x800000) >> (-exponent - 1));
}

enum { NARROW_INFINITE = 0x7c00 }; /* bits of float16's infinity */

/* The bits of the float16 nearest to x, which is finite and not negative; of two the even one. */
static inline uint16_t narrow_nearest_float16(float x) {
  uint32_t bits;
  if (x >= 65520) return NARROW_INFINITE;
  if (x < 0x1p-14f) return (uint16_t)rintf(x * 0x1p24f); /* subnormal */
  memcpy(&bits, &x, sizeof bits);
  bits += 0xfff + (bits >> 13 & 1);
  return (uint16_t)((bits >> 13) - (112u << 10));
}

/* The value of such bits. Infinities and NaN of float16 are wrong. */
static inline float narrow_widen(enum kernel_form form, uint16_t narrow) {
  uint32_t bits = (uint32_t)narrow << 16;
  float x;
  if (form == KERNEL_FLOAT16) {
    const uint32_t size = (uint32_t)(narrow & 0x7fff) << 13;
    const bool tiny = size < 1u << 23; /* subnormal */
    const uint32_t scaled = size + ((tiny ? 113u : 112u) << 23);
    memcpy(&x, &scaled, sizeof x);
    if (tiny) x -= 0x1p-14f;
    memcpy(&bits, &x, sizeof bits);
    bits |= (uint32_t)(narrow & 0x8000) << 16;
  }
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* Whether the form represents this number. */
static inline bool narrow_has(enum kernel_form form, float x) {
  const float again = narrow_widen(form, narrow_number(form, x));
  const bool beyond = form == KERNEL_FLOAT16 && !(x > -65536 && x < 65536);
  return !beyond && memcmp(&again, &x, sizeof x) == 0;
}

#endif
