/* test_base64: base64 of all lengths and with all strange bytes, at every level of instructions,
 * against a reader and a writer by the book and against texts that Python wrote. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/cpu.h"
#include "server/text/base64.h"
#include "tests/support/number_draw.h"

enum { ROOM = 16 * 1024 };

typedef size_t base64_reader(const char *text, size_t length, unsigned char *out);
typedef char *base64_writer(char *out, const unsigned char *bytes, size_t size);

static char *write_chosen(char *out, const unsigned char *bytes, size_t size) {
  return base64_write(out, bytes, size);
}

static base64_reader *const READ[CPU_LEVEL_COUNT] = {
    [CPU_PORTABLE] = base64_read_portable,
#if defined(__x86_64__)
    [CPU_AVX2] = base64_read_avx2,
    [CPU_AVX512] = base64_read_avx512,
#endif
};
static base64_writer *const WRITE[CPU_LEVEL_COUNT] = {
    [CPU_PORTABLE] = base64_write_portable,
#if defined(__x86_64__)
    [CPU_AVX2] = base64_write_avx2,
    [CPU_AVX512] = base64_write_avx512,
#endif
};

/* --- by the book --- */

static const char ALPHABET[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int number_of(char c) {
  const char *at = c ? strchr(ALPHABET, c) : NULL;
  return at ? (int)(at - ALPHABET) : -1;
}

static size_t book_read(const char *text, size_t length, unsigned char *out) {
  size_t at = 0;
  for (; at + 4 <= length; at += 4) {
    unsigned bits = 0;
    for (size_t i = 0; i < 4; i++) {
      const int number = number_of(text[at + i]);
      if (number < 0) return at;
      bits = bits << 6 | (unsigned)number;
    }
    for (size_t i = 0; i < 3; i++) *out++ = (unsigned char)(bits >> (16 - 8 * i));
  }
  return at;
}

static size_t book_write(char *out, const unsigned char *bytes, size_t size) {
  char *begin = out;
  for (size_t at = 0; at < size; at += 3) {
    unsigned bits = 0;
    for (size_t i = 0; i < 3; i++) bits = bits << 8 | (at + i < size ? bytes[at + i] : 0);
    for (size_t i = 0; i < 4; i++)
      *out++ = at + i <= size ? ALPHABET[bits >> (18 - 6 * i) & 63] : '=';
  }
  return (size_t)(out - begin);
}

/* --- memory that ends where it should, on both sides --- */

struct fenced {
  char *map, *begin, *end; /* what may be touched */
};

static struct fenced input, output;

static void fence(struct fenced *f) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  f->map = mmap(NULL, ROOM + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(f->map != MAP_FAILED);
  f->begin = f->map + page;
  f->end = f->begin + ROOM;
  assert_int_equal(mprotect(f->map, page, PROT_NONE), 0);
  assert_int_equal(mprotect(f->end, page, PROT_NONE), 0);
}

static void unfence(struct fenced *f) {
  assert_int_equal(munmap(f->map, ROOM + 2 * (size_t)sysconf(_SC_PAGESIZE)), 0);
}

static int set_up(void **state) {
  (void)state;
  fence(&input);
  fence(&output);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  unfence(&input);
  unfence(&output);
  return 0;
}

static void *put(const void *bytes, size_t size, bool at_end) {
  char *to = at_end ? input.end - size : input.begin;
  if (size) memcpy(to, bytes, size);
  return to;
}

/* One reader on one text: room for the bytes and the margin, no more. */
static void check_reader(base64_reader *read, const char *text, size_t length,
                         const unsigned char *want, size_t taken) {
  unsigned char *out = (unsigned char *)output.end - BASE64_READ_MARGIN - taken / 4 * 3;
  if (read(text, length, out) != taken) fail_msg("not %zu of %zu characters", taken, length);
  if (memcmp(out, want, taken / 4 * 3) != 0) fail_msg("wrong bytes of %zu characters", length);
}

/* Every level, at both ends of the memory. */
static void check_reading(const char *text, size_t length) {
  static unsigned char want[ROOM];
  const size_t taken = book_read(text, length, want);
  for (size_t at_end = 0; at_end < 2; at_end++) {
    const char *p = put(text, length, at_end);
    for (size_t level = 0; level <= cpu_text_level(); level++)
      check_reader(READ[level], p, length, want, taken);
    check_reader(base64_read, p, length, want, taken);
  }
}

static void check_writer(base64_writer *write, const unsigned char *bytes, size_t size,
                         const char *want, size_t length) {
  char *out = output.end - BASE64_WRITE_MARGIN - length, *end = write(out, bytes, size);
  if ((size_t)(end - out) != length) fail_msg("not %zu characters of %zu bytes", length, size);
  if (memcmp(out, want, length) != 0) fail_msg("wrong characters of %zu bytes", size);
}

static void check_writing(const void *bytes, size_t size) {
  static char want[ROOM];
  const size_t length = book_write(want, bytes, size);
  assert_int_equal(length, base64_length(size));
  for (size_t at_end = 0; at_end < 2; at_end++) {
    const unsigned char *p = put(bytes, size, at_end);
    for (size_t level = 0; level <= cpu_text_level(); level++)
      check_writer(WRITE[level], p, size, want, length);
    check_writer(write_chosen, p, size, want, length);
  }
}

/* --- tests --- */

static const struct {
  size_t size;
  const char *bytes, *text;
} python[] = {{0, "", ""},
              {1, "\x66", "Zg=="},
              {2, "\x66\x6f", "Zm8="},
              {3, "\x66\x6f\x6f", "Zm9v"},
              {4, "\x66\x6f\x6f\x62", "Zm9vYg=="},
              {5, "\x66\x6f\x6f\x62\x61", "Zm9vYmE="},
              {6, "\x66\x6f\x6f\x62\x61\x72", "Zm9vYmFy"},
              {52,
               "\x00\x05\x0a\x0f\x14\x19\x1e\x23\x28\x2d\x32\x37\x3c\x41\x46\x4b\x50\x55"
               "\x5a\x5f\x64\x69\x6e\x73\x78\x7d\x82\x87\x8c\x91\x96\x9b\xa0\xa5\xaa\xaf"
               "\xb4\xb9\xbe\xc3\xc8\xcd\xd2\xd7\xdc\xe1\xe6\xeb\xf0\xf5\xfa\xff",
               "AAUKDxQZHiMoLTI3PEFGS1BVWl9kaW5zeH2Ch4yRlpugpaqvtLm+w8jN0tfc4ebr8PX6/w=="},
              {48,
               "\x00\x00\x00\xbf\xcd\xcc\xcc\xbe\x9a\x99\x99\xbe\xcd\xcc\x4c\xbe\xcd\xcc"
               "\xcc\xbd\x00\x00\x00\x00\xcd\xcc\xcc\x3d\xcd\xcc\x4c\x3e\x9a\x99\x99\x3e"
               "\xcd\xcc\xcc\x3e\x00\x00\x00\x3f\x9a\x99\x19\x3f",
               "AAAAv83MzL6amZm+zcxMvs3MzL0AAAAAzczMPc3MTD6amZk+zczMPgAAAD+amRk/"},
              {48,
               "\x00\x10\x83\x10\x51\x87\x20\x92\x8b\x30\xd3\x8f\x41\x14\x93\x51\x55\x97"
               "\x61\x96\x9b\x71\xd7\x9f\x82\x18\xa3\x92\x59\xa7\xa2\x9a\xab\xb2\xdb\xaf"
               "\xc3\x1c\xb3\xd3\x5d\xb7\xe3\x9e\xbb\xf3\xdf\xbf",
               "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"},
              {100,
               "\x82\xb7\x0e\xee\x7f\x1a\x50\x39\xbe\xf0\x7e\xc2\x34\x7f\x06\x6e\xd0\x8f"
               "\x5d\xc7\x51\x24\x47\xe3\x40\x43\x00\x02\x6b\x6e\x54\x55\x94\xa0\x65\x68"
               "\x5d\x64\xc4\x98\x0b\xb8\xd4\x54\x4a\x87\x21\xa9\x9a\x01\xad\x21\x9e\xb5"
               "\x9c\xf6\xa1\x5e\xf6\xf1\x5a\x1d\x83\x0b\xb7\xce\x09\xd6\xbb\xc0\x04\xe7"
               "\x17\x5c\x64\x3c\x7d\xec\xb0\xb5\x80\xec\x37\xbc\x97\x12\xdd\x2e\x6a\xae"
               "\xb9\x4b\xae\x8d\x2f\x9f\xa2\x9c\x5a\x28",
               "grcO7n8aUDm+8H7CNH8GbtCPXcdRJEfjQEMAAmtuVFWUoGVoXWTEmAu41FRKhyGpmgGtIZ61"
               "nPahXvbxWh2DC7fOCda7wATnF1xkPH3ssLWA7De8lxLdLmquuUuujS+fopxaKA=="}};

static void what_python_writes(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof python / sizeof *python; i++) {
    const char *text = python[i].text;
    const size_t size = python[i].size, length = strlen(text);
    char written[1024];
    unsigned char bytes[1024];
    const char *end = base64_write(written, python[i].bytes, size);
    assert_int_equal(end - written, length);
    assert_memory_equal(written, text, length);
    check_writing(python[i].bytes, size);
    check_reading(text, length);
    const size_t taken = base64_read(text, length, bytes);
    size_t whole = taken / 4 * 3;
    if (size % 3 != 0) {
      assert_int_equal(taken, length - 4);
      whole += base64_read_last(text + taken, bytes + whole);
    }
    assert_int_equal(whole, size);
    assert_memory_equal(bytes, python[i].bytes, size);
  }
}

static void all_lengths(void **state) {
  (void)state;
  static unsigned char bytes[ROOM / 2];
  static char text[ROOM];
  uint64_t seed = 1;
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)draw(&seed);
  for (size_t size = 0; size <= 300; size++) {
    check_writing(bytes + size, size);
    const size_t length = book_write(text, bytes + size, size);
    check_reading(text, length);
  }
  book_write(text, bytes, 600);
  for (size_t length = 0; length <= 600; length++) check_reading(text, length);
  for (size_t size = 5000; size < 5100; size++) {
    check_writing(bytes, size);
    check_reading(text, book_write(text, bytes, size));
  }
}

/* A byte that is none of the alphabet ends the reading wherever it is; one that is, does not. */
static void all_bytes_at_all_places(void **state) {
  (void)state;
  enum { LENGTH = 201 };
  char text[LENGTH];
  uint64_t seed = 2;
  for (size_t i = 0; i < LENGTH; i++) text[i] = ALPHABET[draw(&seed) % 64];
  for (size_t at = 0; at < LENGTH; at++) {
    const char before = text[at];
    for (unsigned c = 0; c < 256; c++) {
      text[at] = (char)c;
      check_reading(text, LENGTH);
    }
    text[at] = before;
  }
}

/* Three bytes of many values, all of the last two. */
static void all_groups(void **state) {
  (void)state;
  static unsigned char bytes[3 * 4096];
  for (unsigned n = 0; n < 1u << 24; n += 4096 * 31) {
    for (unsigned i = 0; i < 4096; i++) {
      const unsigned group = n + i;
      bytes[3 * i] = (unsigned char)(group >> 16);
      bytes[3 * i + 1] = (unsigned char)(group >> 8);
      bytes[3 * i + 2] = (unsigned char)group;
    }
    char text[256];
    for (size_t at = 0; at < sizeof bytes; at += 96) {
      check_writing(bytes + at, 96);
      check_reading(text, book_write(text, bytes + at, 96));
    }
  }
}

static size_t book_read_last(const char text[4], unsigned char out[2]) {
  const int a = number_of(text[0]), b = number_of(text[1]), c = number_of(text[2]);
  if (text[3] != '=' || a < 0 || b < 0) return 0;
  out[0] = (unsigned char)(a << 2 | b >> 4);
  if (text[2] == '=') return b % 16 == 0 ? 1 : 0;
  if (c < 0) return 0;
  out[1] = (unsigned char)(b << 4 | c >> 2);
  return c % 4 == 0 ? 2 : 0;
}

/* The text is four characters, nothing behind; the output two bytes. */
static void last_groups(void **state) {
  (void)state;
  static const char first[] = "Az9/=\n", last[] = "=Aa\0";
  char *text = input.end - 4;
  unsigned char want[2], *out = (unsigned char *)output.end - 2;
  size_t valid = 0;
  for (size_t i = 0; i < sizeof first; i++)
    for (unsigned b = 0; b < 256; b++)
      for (unsigned c = 0; c < 256; c++)
        for (size_t k = 0; k < sizeof last; k++) {
          const char group[4] = {first[i], (char)b, (char)c, last[k]};
          memcpy(text, group, sizeof group);
          const size_t bytes = book_read_last(group, want);
          if (base64_read_last(text, out) != bytes || memcmp(out, want, bytes) != 0)
            fail_msg("%.4s is not %zu bytes", group, bytes);
          valid += bytes > 0;
        }
  assert_int_equal(valid, 4 * (4 + 64 * 16));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_python_writes),
      cmocka_unit_test(all_lengths),
      cmocka_unit_test(all_bytes_at_all_places),
      cmocka_unit_test(all_groups),
      cmocka_unit_test(last_groups),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
