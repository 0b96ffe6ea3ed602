/* number_draw: floats, and damage to texts, by chance, from a seed, for tests. */
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

/* Changes, takes or adds up to two bytes of a text, by some of `bytes`; returns its length then. */
static inline size_t draw_damage(char *text, size_t length, const char *bytes, uint64_t *state) {
  for (size_t damages = draw(state) % 3; damages > 0; damages--) {
    const size_t at = draw(state) % length, how = draw(state) % 3;
    const char c = bytes[draw(state) % strlen(bytes)];
    if (how == 0) {
      text[at] = c;
    } else if (how == 1 && length > 1) {
      memmove(text + at, text + at + 1, length - at - 1);
      length--;
    } else {
      memmove(text + at + 1, text + at, length - at);
      text[at] = c;
      length++;
    }
  }
  return length;
}

#endif
