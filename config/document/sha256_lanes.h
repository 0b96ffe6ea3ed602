/* sha256_lanes: SHA-256 of several messages of one length, side by side, one in each lane of
 * vectors.
 *
 * sha256_portable.c, sha256_avx2.c and sha256_avx512.c include it: each defines LANES and LEVEL,
 * the name of its struct sha256_level. The names of the values are those of FIPS 180-4. */
#include <stdint.h>
#include <string.h>

#include "config/document/digest.h"

enum { BLOCK = 64, WORDS = 16, ROUNDS = 64 };

typedef uint32_t word __attribute__((vector_size(4 * LANES)));

#define INLINE static inline __attribute__((always_inline))

static const uint32_t constant[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

INLINE word turn_right(word x, int bits) { return (x >> bits) | (x << (32 - bits)); }

/* Transposes a block of each message; the words of SHA-256 are big-endian. */
INLINE void load_block(const unsigned char *const message[LANES], size_t from, word w[WORDS]) {
  _Alignas(sizeof(word)) uint32_t turned[WORDS][LANES];
  for (unsigned lane = 0; lane < LANES; lane++)
    for (unsigned i = 0; i < WORDS; i++) {
      uint32_t x;
      memcpy(&x, message[lane] + from + 4 * i, sizeof x);
      turned[i][lane] = __builtin_bswap32(x);
    }
  memcpy(w, turned, sizeof turned);
}

/* The padding of a message that ends with a whole block: a one, zeros, and its length in bits. */
INLINE void load_padding(uint64_t size, word w[WORDS]) {
  for (unsigned i = 0; i < WORDS; i++) w[i] = (word){0};
  w[0] += 0x80000000u;
  w[14] += (uint32_t)(size * 8 >> 32);
  w[15] += (uint32_t)(size * 8);
}

/* Each round shifts the names of FIPS 180-4 by one, and leaves the values in their places. */
INLINE void do_round(word s[8], unsigned t, word input) {
#define S(i) s[(unsigned)((i)-t) % 8]
  const word a = S(0), b = S(1), c = S(2), e = S(4), f = S(5), g = S(6);
  const word one = S(7) + (turn_right(e, 6) ^ turn_right(e, 11) ^ turn_right(e, 25)) +
                   ((e & f) ^ (~e & g)) + input;
  S(3) += one;
  S(7) =
      one + (turn_right(a, 2) ^ turn_right(a, 13) ^ turn_right(a, 22)) + ((a & b) | (c & (a | b)));
#undef S
}

INLINE void add_block(word state[8], word w[WORDS]) {
  word s[8];
  memcpy(s, state, sizeof s);
#pragma GCC unroll 64
  for (unsigned t = 0; t < ROUNDS; t++) {
    if (t >= WORDS) {
      const word x = w[(t - 15) % WORDS], y = w[(t - 2) % WORDS];
      w[t % WORDS] += (turn_right(x, 7) ^ turn_right(x, 18) ^ (x >> 3)) + w[(t - 7) % WORDS] +
                      (turn_right(y, 17) ^ turn_right(y, 19) ^ (y >> 10));
    }
    do_round(s, t, w[t % WORDS] + constant[t]);
  }
  for (unsigned i = 0; i < 8; i++) state[i] += s[i];
}

static void hash_lanes(const unsigned char *const message[LANES], size_t size,
                       unsigned char out[LANES][DIGEST_SIZE]) {
  word state[8], w[WORDS];
  for (unsigned i = 0; i < 8; i++) state[i] = (word){0} + initial[i];
  for (size_t from = 0; from < size; from += BLOCK) {
    load_block(message, from, w);
    add_block(state, w);
  }
  load_padding(size, w);
  add_block(state, w);
  for (unsigned lane = 0; lane < LANES; lane++)
    for (unsigned i = 0; i < 8; i++) {
      const uint32_t x = __builtin_bswap32(state[i][lane]);
      memcpy(out[lane] + 4 * i, &x, sizeof x);
    }
}

const struct sha256_level LEVEL = {LANES, hash_lanes};
