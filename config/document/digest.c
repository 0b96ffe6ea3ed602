/* digest: SHA-256 by Nettle, and the table of its vector levels. Nettle adds no library to the
 * process: libmicrohttpd links GnuTLS, and GnuTLS links Nettle. */
#include "config/document/digest.h"

#include <nettle/sha2.h>
#include <string.h>

void digest_parts(const struct digest_part *part, size_t parts, unsigned char out[DIGEST_SIZE]) {
  _Static_assert((int)DIGEST_SIZE == SHA256_DIGEST_SIZE, "a digest is one of SHA-256");
  struct sha256_ctx context;
  sha256_init(&context);
  for (size_t i = 0; i < parts; i++)
    if (part[i].size > 0) sha256_update(&context, part[i].size, part[i].bytes);
  sha256_digest(&context, DIGEST_SIZE, out);
  explicit_bzero(&context, sizeof context);
}

void digest_bytes(const void *bytes, size_t size, unsigned char out[DIGEST_SIZE]) {
  digest_parts(&(struct digest_part){bytes, size}, 1, out);
}

void digest_hex(const unsigned char digest[DIGEST_SIZE], char out[DIGEST_TEXT_SIZE]) {
  static const char digits[] = "0123456789abcdef";
  for (size_t i = 0; i < DIGEST_SIZE; i++) {
    out[2 * i] = digits[digest[i] >> 4];
    out[2 * i + 1] = digits[digest[i] & 15];
  }
  out[2 * (size_t)DIGEST_SIZE] = '\0';
}

#if defined(__x86_64__)
extern const struct sha256_level sha256_portable, sha256_avx2, sha256_avx512;
#endif

const struct sha256_level *sha256_level(enum cpu_level level) {
  switch (level) {
#if defined(__x86_64__)
  case CPU_PORTABLE:
    return &sha256_portable;
  case CPU_AVX2:
    return &sha256_avx2;
  case CPU_AVX512:
    return &sha256_avx512;
#endif
  default:
    return NULL;
  }
}
