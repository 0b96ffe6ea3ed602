/* digest: SHA-256 over bytes, which may be secret: no copy of them stays in memory. */
#ifndef CONFIG_DIGEST_H
#define CONFIG_DIGEST_H

#include <stddef.h>

enum {
  DIGEST_SIZE = 32,
  DIGEST_TEXT_SIZE = 65 /* 64 hexadecimal digits and the end */
};

/* A part of the data; all lie one behind the other. */
struct digest_part {
  const void *bytes;
  size_t size;
};

void digest_parts(const struct digest_part *part, size_t parts, unsigned char out[DIGEST_SIZE]);
void digest_bytes(const void *bytes, size_t size, unsigned char out[DIGEST_SIZE]);

/* Writes a digest in lower-case hexadecimal. */
void digest_hex(const unsigned char digest[DIGEST_SIZE], char out[DIGEST_TEXT_SIZE]);

#endif
