/* philox: Philox4x32-10, random numbers from a counter. (J. Salmon and others, 2011.)
 *
 * Four words are a pure function of a key and a counter: any thread can compute any number of a
 * stream without those before it, the same on every machine. */
#ifndef CORE_PHILOX_H
#define CORE_PHILOX_H

#include <stdint.h>

struct philox_block {
  uint32_t word[4];
};

static inline struct philox_block philox(const uint32_t key[2], const uint32_t counter[4]) {
  uint32_t k0 = key[0], k1 = key[1];
  uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
  for (int round = 0; round < 10; round++) {
    uint64_t a = (uint64_t)0xd2511f53u * c0, b = (uint64_t)0xcd9e8d57u * c2;
    c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
    c1 = (uint32_t)b;
    c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
    c3 = (uint32_t)a;
    k0 += 0x9e3779b9u; /* the golden ratio and */
    k1 += 0xbb67ae85u; /* the root of three, less one: as the paper has them */
  }
  return (struct philox_block){{c0, c1, c2, c3}};
}

#endif
