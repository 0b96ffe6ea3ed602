/* floats: converts half, bfloat16, single and double precision to single.
 *
 * The loops have no branch, so that the compiler vectorizes them. They convert a block at a time,
 * and check it for numbers that are not finite while it is in the nearest cache. */
#include "config/checkpoint/floats.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/base/size.h"

enum { BLOCK = 1024 };

static const uint32_t exponent_ones = 0x7f800000u; /* only infinities and NaN have them */

static const struct {
  const char *name;
  size_t size;
} types[FLOAT_NONE] = {
    [FLOAT_F32] = {"F32", 4},
    [FLOAT_F16] = {"F16", 2},
    [FLOAT_BF16] = {"BF16", 2},
    [FLOAT_F64] = {"F64", 8},
};

enum floats_type floats_type_of(const char *name) {
  for (enum floats_type t = 0; t < FLOAT_NONE; t++)
    if (strcmp(types[t].name, name) == 0) return t;
  return FLOAT_NONE;
}

size_t floats_type_size(enum floats_type type) { return types[type].size; }

static uint32_t float_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* Every half is exactly a float. A subnormal half becomes a normal float, its fraction times 2^-24.
 * The exponent of every other half grows by 112; an exponent of all ones grows by 112 again. */
static void from_halves(const unsigned char *at, size_t count, float *out) {
  const uint32_t shift = 112u << 23;
  for (size_t i = 0; i < count; i++) {
    uint16_t half;
    memcpy(&half, at + 2 * i, sizeof half);
    /* Every machine has vector instructions that compare and convert signed integers. */
    const int32_t rest = half & 0x7fff;
    const uint32_t small = float_bits((float)rest * 0x1p-24f);
    const uint32_t is_small = 0u - (rest < 0x0400), is_beyond = 0u - (rest > 0x7bff);
    const uint32_t normal = ((uint32_t)rest << 13) + shift + (shift & is_beyond);
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    const uint32_t bits = sign | (small & is_small) | (normal & ~is_small);
    memcpy(out + i, &bits, sizeof bits);
  }
}

static void from_bfloats(const unsigned char *at, size_t count, float *out) {
  for (size_t i = 0; i < count; i++) {
    uint16_t upper;
    memcpy(&upper, at + 2 * i, sizeof upper);
    const uint32_t bits = (uint32_t)upper << 16;
    memcpy(out + i, &bits, sizeof bits);
  }
}

static void from_doubles(const unsigned char *at, size_t count, float *out) {
  for (size_t i = 0; i < count; i++) {
    double value;
    memcpy(&value, at + 8 * i, sizeof value);
    out[i] = (float)value;
  }
}

bool floats_are_finite(const float *numbers, size_t count) {
  uint32_t infinite = 0;
  for (size_t i = 0; i < count; i++)
    infinite |= (float_bits(numbers[i]) & exponent_ones) == exponent_ones ? 1 : 0;
  return infinite == 0;
}

size_t floats_convert(enum floats_type type, const void *bytes, size_t count, float *out) {
  const unsigned char *at = bytes;
  size_t finite = 0, size = types[type].size;
  bool all = true;
  for (size_t n, i = 0; i < count; i += n) {
    n = size_min(count - i, BLOCK);
    if (type == FLOAT_F16) {
      from_halves(at + i * size, n, out + i);
    } else if (type == FLOAT_BF16) {
      from_bfloats(at + i * size, n, out + i);
    } else if (type == FLOAT_F64) {
      from_doubles(at + i * size, n, out + i);
    } else {
      memcpy(out + i, at + i * size, n * size);
    }
    if (all && !floats_are_finite(out + i, n)) {
      all = false;
      finite = i;
      while ((float_bits(out[finite]) & exponent_ones) != exponent_ones) finite++;
    }
  }
  return all ? count : finite;
}
