/* number_draw: floats by chance, from a seed, for tests. */
#ifndef TESTS_NUMBER_DRAW_H
#define TESTS_NUMBER_DRAW_H

#include <stdint.h>
#include <string.h>

static inline uint64_t draw(uint64_t *state) {
  *state += 0x9e3779b97f4a7c15;
  uint64_t z = *state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

static inline float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* A finite float of any size. */
static inline float draw_float(uint64_t *state) {
  uint32_t bits = (uint32_t)draw(state);
  if ((bits & 0x7f800000) == 0x7f800000) bits &= ~UINT32_C(0x40000000);
  return float_of(bits);
}

/* A finite float between about 1e-3 and 1e4. */
static inline float draw_common(uint64_t *state) {
  uint64_t x = draw(state);
  return float_of(((uint32_t)x & 0x807fffff) | (uint32_t)(117 + (x >> 32) % 23) << 23);
}

#endif
