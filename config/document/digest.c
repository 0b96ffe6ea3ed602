/* digest: SHA-256 by Nettle. It adds no library to the process: libmicrohttpd links GnuTLS, and
 * GnuTLS links Nettle. */
#include "config/document/digest.h"

#include <nettle/sha2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct digest {
  struct sha256_ctx context;
};

struct digest *digest_new(void) {
  struct digest *d = malloc(sizeof *d);
  if (d) sha256_init(&d->context);
  return d;
}

void digest_free(struct digest *d) { free(d); }

/* The bytes are added as they lie in memory: only little-endian machines are served. */
void digest_floats(struct digest *d, const float *numbers, size_t count) {
  if (count > 0)
    sha256_update(&d->context, count * sizeof *numbers, (const uint8_t *)(const void *)numbers);
}

void digest_text(struct digest *d, char out[DIGEST_TEXT_SIZE]) {
  uint8_t bytes[SHA256_DIGEST_SIZE];
  sha256_digest(&d->context, sizeof bytes, bytes); /* which also resets the context */
  digest_hex(bytes, out);
}

void digest_hex(const unsigned char digest[DIGEST_SIZE], char out[DIGEST_TEXT_SIZE]) {
  static const char digits[] = "0123456789abcdef";
  for (size_t i = 0; i < DIGEST_SIZE; i++) {
    out[2 * i] = digits[digest[i] >> 4];
    out[2 * i + 1] = digits[digest[i] & 15];
  }
  out[2 * (size_t)DIGEST_SIZE] = '\0';
}

void digest_bytes(const void *bytes, size_t size, unsigned char out[DIGEST_SIZE]) {
  _Static_assert((int)DIGEST_SIZE == SHA256_DIGEST_SIZE, "a digest is one of SHA-256");
  struct sha256_ctx context;
  sha256_init(&context);
  sha256_update(&context, size, bytes);
  sha256_digest(&context, DIGEST_SIZE, out);
  explicit_bzero(&context, sizeof context);
}
