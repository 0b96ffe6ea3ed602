/* base64: chooses the reader and writer of base64 for this processor, and reads the last group.
 *
 * No library of Debian 12 fits: libbase64 came later, and the readers of nettle and libb64 skip
 * unknown characters and read byte by byte. */
#include "server/text/base64.h"

#include "core/base/cpu.h"

size_t base64_read(const char *text, size_t length, unsigned char *out) {
  switch (cpu_text_level()) {
#if defined(__x86_64__)
  case CPU_AVX512:
    return base64_read_avx512(text, length, out);
  case CPU_AVX2:
    return base64_read_avx2(text, length, out);
#endif
  default:
    return base64_read_portable(text, length, out);
  }
}

char *base64_write(char *out, const void *bytes, size_t size) {
  switch (cpu_text_level()) {
#if defined(__x86_64__)
  case CPU_AVX512:
    return base64_write_avx512(out, bytes, size);
  case CPU_AVX2:
    return base64_write_avx2(out, bytes, size);
#endif
  default:
    return base64_write_portable(out, bytes, size);
  }
}

size_t base64_read_last(const char text[4], unsigned char out[2]) {
  if (text[3] != '=') return 0;
  const size_t bytes = text[2] == '=' ? 1 : 2;
  /* The group is read with 'A' for the padding; the bits after its bytes must be zero. */
  const char whole[4] = {text[0], text[1], bytes == 1 ? 'A' : text[2], 'A'};
  unsigned char three[3 + BASE64_READ_MARGIN];
  if (base64_read_portable(whole, sizeof whole, three) != sizeof whole || three[bytes] != 0)
    return 0;
  for (size_t i = 0; i < bytes; i++) out[i] = three[i];
  return bytes;
}
