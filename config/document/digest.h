/* digest: SHA-256: of bytes one after the other, by Nettle; of several messages side by side, with
 * the vector instructions of this processor. */
#ifndef CONFIG_DIGEST_H
#define CONFIG_DIGEST_H

#include <stddef.h>

#include "core/base/cpu.h"

enum {
  DIGEST_SIZE = 32,
  DIGEST_TEXT_SIZE = 65 /* 64 hexadecimal digits and the end */
};

/* The parts of the data follow one another without a gap. */
struct digest_part {
  const void *bytes;
  size_t size;
};

/* The bytes may be secret: no copy of them stays in memory. */
void digest_parts(const struct digest_part *part, size_t parts, unsigned char out[DIGEST_SIZE]);
void digest_bytes(const void *bytes, size_t size, unsigned char out[DIGEST_SIZE]);

/* Writes a digest in lower-case hexadecimal. */
void digest_hex(const unsigned char digest[DIGEST_SIZE], char out[DIGEST_TEXT_SIZE]);

/* --- several messages side by side ---
 *
 * Nettle hashes one message at a time, with SHA instructions if the processor has them. Several
 * messages side by side are faster with AVX-512, and about as fast with AVX2
 * (tests/bench/LOG.md). isa-l_crypto does the same, but would be one more library
 * in every image. */

enum { SHA256_LANES_MOST = 16 };

struct sha256_level {
  size_t lanes;
  /* out[i] = SHA-256 of message[i], for each lane; all are `size` long, a multiple of 64. */
  void (*hash)(const unsigned char *const message[], size_t size, unsigned char out[][DIGEST_SIZE]);
};

/* The processor must have the level. NULL if Nettle is as good: on arm64, where processors have SHA
 * instructions. */
const struct sha256_level *sha256_level(enum cpu_level level);

#endif
