/* digest: SHA-256 over numbers, and over bytes that may be secret. */
#ifndef CONFIG_DIGEST_H
#define CONFIG_DIGEST_H

#include <stddef.h>

enum {
  DIGEST_SIZE = 32,
  DIGEST_TEXT_SIZE = 65 /* 64 hexadecimal digits and the end */
};

struct digest;

struct digest *digest_new(void); /* NULL: no memory */
void digest_free(struct digest *d);

/* Adds the numbers as float32, little-endian. */
void digest_floats(struct digest *d, const float *numbers, size_t count);

/* Writes the digest of all numbers that were added, in lower-case hexadecimal, and resets it. */
void digest_text(struct digest *d, char out[DIGEST_TEXT_SIZE]);

/* Writes a digest in lower-case hexadecimal. */
void digest_hex(const unsigned char digest[DIGEST_SIZE], char out[DIGEST_TEXT_SIZE]);

/* Writes the digest of bytes that may be a secret: no copy of them stays in memory. */
void digest_bytes(const void *bytes, size_t size, unsigned char out[DIGEST_SIZE]);

#endif
