/* sha256: SHA-256 of several messages side by side, with the vector instructions of this processor.
 *
 * Nettle hashes one message at a time, with SHA instructions where there are any. Several side by
 * side are faster than those with AVX-512, and about as fast with AVX2 (tests/bench/LOG.md):
 * SHA instructions of our own would gain next to nothing. isa-l_crypto does the same, but its
 * library would be one more in every image, for these hundred lines. */
#ifndef CONFIG_SHA256_H
#define CONFIG_SHA256_H

#include <stddef.h>

#include "config/document/digest.h"
#include "core/base/cpu.h"

enum { SHA256_LANES_MOST = 16 };

struct sha256_level {
  size_t lanes;
  /* out[i] = SHA-256 of message[i], for each lane; all are `size` long, a multiple of 64. */
  void (*hash)(const unsigned char *const message[], size_t size, unsigned char out[][DIGEST_SIZE]);
};

/* The level must be one of this processor. NULL: there is none, and Nettle is as good; so it is on
 * arm64, where processors have SHA instructions. */
const struct sha256_level *sha256_level(enum cpu_level level);

#endif
