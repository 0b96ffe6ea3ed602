/* floats: from half, bfloat16, single and double precision to single. */
#include "config/floats.h"

#include <endian.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

static const struct {
  const char *name;
  size_t size;
} types[FLOAT_NONE] = {
    [FLOAT_F32] = {"F32", 4},
    [FLOAT_F16] = {"F16", 2},
    [FLOAT_BF16] = {"BF16", 2},
    [FLOAT_F64] = {"F64", 8},
};

enum float_type float_type_of(const char *name) {
  for (enum float_type t = 0; t < FLOAT_NONE; t++)
    if (strcmp(types[t].name, name) == 0) return t;
  return FLOAT_NONE;
}

size_t float_type_size(enum float_type type) { return types[type].size; }

static float from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint16_t load16(const unsigned char *at) {
  uint16_t bits;
  memcpy(&bits, at, sizeof bits);
  return le16toh(bits);
}

/* Every half is a float: nothing is rounded. */
static float from_half(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000u) << 16, exponent = half >> 10 & 31u;
  uint32_t fraction = half & 0x3ffu;
  if (exponent == 31) return from_bits(sign | 0x7f800000u | fraction << 13);
  if (exponent > 0) return from_bits(sign | (exponent + 127 - 15) << 23 | fraction << 13);
  float small = (float)fraction * 0x1p-24f;
  return sign ? -small : small;
}

static float from_double(const unsigned char *at) {
  uint64_t bits;
  double value;
  memcpy(&bits, at, sizeof bits);
  bits = le64toh(bits);
  memcpy(&value, &bits, sizeof value);
  return (float)value;
}

static float from_single(const unsigned char *at) {
  uint32_t bits;
  memcpy(&bits, at, sizeof bits);
  return from_bits(le32toh(bits));
}

size_t floats_convert(enum float_type type, const void *bytes, size_t count, float *out) {
  const unsigned char *at = bytes;
  size_t size = types[type].size;
  for (size_t i = 0; i < count; i++, at += size) {
    switch (type) {
    case FLOAT_F16:
      out[i] = from_half(load16(at));
      break;
    case FLOAT_BF16:
      out[i] = from_bits((uint32_t)load16(at) << 16);
      break;
    case FLOAT_F64:
      out[i] = from_double(at);
      break;
    default:
      out[i] = from_single(at);
      break;
    }
  }
  size_t finite = 0;
  while (finite < count && isfinite(out[finite])) finite++;
  return finite;
}
