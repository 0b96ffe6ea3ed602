/* narrow: numbers of 32 bits kept in 16 where that loses nothing.
 *
 * Checkpoints often hold numbers of 16 bits. As float32 they take twice the memory, and twice the
 * time where memory is what a product waits for. */
#ifndef CORE_NARROW_H
#define CORE_NARROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/base/status.h"
#include "core/kernel/kernel_form.h"

/* The form in which all of them are what they are: of several the first of KERNEL_BFLOAT16,
 * KERNEL_FLOAT16, KERNEL_FLOAT32. A team looks at them together (core/base/team.h). */
enum kernel_form narrow_form(const float *x, size_t count);

const char *narrow_name(enum kernel_form form); /* "bfloat16" */

static inline size_t narrow_size(enum kernel_form form) {
  return form == KERNEL_FLOAT32 ? sizeof(float) : sizeof(uint16_t);
}

/* Of a number that the form has. */
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

/* What such a number is. Infinities and what is no number come out as something else. */
static inline float narrow_widen(enum kernel_form form, uint16_t narrow) {
  uint32_t bits = (uint32_t)narrow << 16;
  float x;
  if (form == KERNEL_FLOAT16) {
    const uint32_t size = (uint32_t)(narrow & 0x7fff) << 13;
    const bool tiny = size < 1u << 23; /* has no leading one */
    const uint32_t scaled = size + ((tiny ? 113u : 112u) << 23);
    memcpy(&x, &scaled, sizeof x);
    if (tiny) x -= 0x1p-14f;
    memcpy(&bits, &x, sizeof bits);
    bits |= (uint32_t)(narrow & 0x8000) << 16;
  }
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* Has the form this number? */
static inline bool narrow_has(enum kernel_form form, float x) {
  const float again = narrow_widen(form, narrow_number(form, x));
  const bool beyond = form == KERNEL_FLOAT16 && !(x > -65536 && x < 65536);
  return !beyond && memcmp(&again, &x, sizeof x) == 0;
}

#endif
