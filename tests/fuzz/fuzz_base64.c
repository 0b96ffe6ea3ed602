/* fuzz_base64: base64 read and written by every level of this processor's instructions, held
 * against the plainest way to do it. The input is taken for text, and then for bytes. */
#include <stdlib.h>
#include <string.h>

#include "core/base/cpu.h"
#include "server/text/base64.h"
#include "tests/fuzz/fuzz.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

typedef size_t read_function(const char *text, size_t length, unsigned char *out);
typedef char *write_function(char *out, const unsigned char *bytes, size_t size);

static const struct {
  read_function *read;
  write_function *write;
} levels[CPU_LEVEL_COUNT] = {
    [CPU_PORTABLE] = {base64_read_portable, base64_write_portable},
#if defined(__x86_64__)
    [CPU_AVX2] = {base64_read_avx2, base64_write_avx2},
    [CPU_AVX512] = {base64_read_avx512, base64_write_avx512},
#endif
};

/* The six bits of a character, or -1. */
static int bits_of(char c) {
  const char *found = c ? strchr(alphabet, c) : NULL;
  return found ? (int)(found - alphabet) : -1;
}

/* As base64_read, a group at a time. */
static size_t plain_read(const char *text, size_t length, unsigned char *out) {
  size_t at = 0;
  for (; length - at >= 4; at += 4) {
    unsigned long group = 0;
    for (size_t i = 0; i < 4; i++) {
      if (bits_of(text[at + i]) < 0) return at;
      group = group << 6 | (unsigned long)bits_of(text[at + i]);
    }
    for (int shift = 16; shift >= 0; shift -= 8) *out++ = (unsigned char)(group >> shift);
  }
  return at;
}

static void read_text(const char *text, size_t length, enum cpu_level most) {
  unsigned char *plain = malloc(length + 4), *out = malloc(length / 4 * 3 + BASE64_READ_MARGIN);
  must(plain && out);
  const size_t expected = plain_read(text, length, plain);
  for (unsigned level = 0; level <= most; level++) {
    must(levels[level].read(text, length, out) == expected);
    must(memcmp(out, plain, expected / 4 * 3) == 0);
  }
  free(plain);
  free(out);
}

/* What is written reads back, its last group alone. */
static void write_bytes(const char *bytes, size_t size, enum cpu_level most) {
  const size_t length = base64_length(size), whole = size / 3 * 4;
  char *text = malloc(length + BASE64_WRITE_MARGIN);
  unsigned char *back = malloc(length + 4), last[2];
  must(text && back);
  for (unsigned level = 0; level <= most; level++) {
    char *end = levels[level].write(text, (const unsigned char *)bytes, size);
    must(end == text + length);
    must(plain_read(text, length, back) == whole);
    if (size) must(memcmp(back, bytes, size / 3 * 3) == 0);
    if (size % 3) {
      must(base64_read_last(text + whole, last) == size % 3);
      must(memcmp(last, bytes + size / 3 * 3, size % 3) == 0);
    }
  }
  free(text);
  free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const enum cpu_level most = cpu_text_level_with(cpu_features());
  char *copy = input_copy((struct input){(const char *)data, size});
  unsigned char last[2];
  read_text(copy, size, most);
  write_bytes(copy, size, most);
  if (size >= 4) {
    const size_t count = base64_read_last(copy, last);
    must(count <= 2);
    if (count) must(copy[3] == '=' && bits_of(copy[0]) == last[0] >> 2);
  }
  free(copy);
  return 0;
}
