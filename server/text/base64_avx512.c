/* base64_avx512: base64 in vectors of 64 characters, which stand for 48 bytes.
 *
 * The method is Wojciech Mula's and Daniel Lemire's ("Base64 encoding and decoding at almost the
 * speed of a memory copy"): one table has all characters. The rest of a text, and characters beyond
 * the alphabet, are left to base64_portable. */
#include "server/text/base64.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

enum { BLOCK = 64, BYTES = BLOCK / 4 * 3 };

static const char alphabet[BLOCK + 1] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* The number of each character below 0x80, or NONE. */
enum { NONE = 0x80 };
static const uint8_t numbers[2 * BLOCK] = {
    NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE,
    NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE,
    NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, 62,   NONE, NONE, NONE, 63,
    52,   53,   54,   55,   56,   57,   58,   59,   60,   61,   NONE, NONE, NONE, NONE, NONE, NONE,
    NONE, 0,    1,    2,    3,    4,    5,    6,    7,    8,    9,    10,   11,   12,   13,   14,
    15,   16,   17,   18,   19,   20,   21,   22,   23,   24,   25,   NONE, NONE, NONE, NONE, NONE,
    NONE, 26,   27,   28,   29,   30,   31,   32,   33,   34,   35,   36,   37,   38,   39,   40,
    41,   42,   43,   44,   45,   46,   47,   48,   49,   50,   51,   NONE, NONE, NONE, NONE, NONE,
};

static inline __m512i load(const void *at) { return _mm512_loadu_si512(at); }

/* Places in a vector: `joined` of the bytes of 64 joined numbers, `parted` of the bytes that have a
 * number's bits. */
static const uint8_t joined[BLOCK] = {
    2,  1,  0,  6,  5,  4,  10, 9,  8,  14, 13, 12, 18, 17, 16, 22, 21, 20, 26, 25, 24, 30,
    29, 28, 34, 33, 32, 38, 37, 36, 42, 41, 40, 46, 45, 44, 50, 49, 48, 54, 53, 52, 58, 57,
    56, 62, 61, 60, 0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
};
static const uint8_t parted[BLOCK] = {
    1,  0,  2,  1,  4,  3,  5,  4,  7,  6,  8,  7,  10, 9,  11, 10, 13, 12, 14, 13, 16, 15,
    17, 16, 19, 18, 20, 19, 22, 21, 23, 22, 25, 24, 26, 25, 28, 27, 29, 28, 31, 30, 32, 31,
    34, 33, 35, 34, 37, 36, 38, 37, 40, 39, 41, 40, 43, 42, 44, 43, 46, 45, 47, 46,
};

/* Joins 64 numbers to 48 bytes and 16 meaningless ones. */
static inline __m512i join(__m512i number, __m512i order) {
  const __m512i twelve = _mm512_maddubs_epi16(number, _mm512_set1_epi32(0x01400140));
  const __m512i bits = _mm512_madd_epi16(twelve, _mm512_set1_epi32(0x00011000));
  return _mm512_permutexvar_epi8(order, bits);
}

size_t base64_read_avx512(const char *text, size_t length, unsigned char *out) {
  const __m512i low = load(numbers), high = load(numbers + BLOCK), order = load(joined);
  size_t at = 0;
  for (; length - at >= BLOCK; at += BLOCK, out += BYTES) {
    const __m512i x = load(text + at), number = _mm512_permutex2var_epi8(low, x, high);
    if (_mm512_movepi8_mask(_mm512_or_si512(x, number))) break;
    _mm512_storeu_si512(out, join(number, order));
  }
  return at + base64_read_portable(text + at, length - at, out);
}

/* Turns 48 bytes into 64 characters. */
static inline __m512i to_characters(__m512i bytes, __m512i order, __m512i characters) {
  /* First bits of eight numbers: 10, 4, 22, 16 for four, and 32 more for the others. */
  const __m512i begin = _mm512_set1_epi64(0x3036242a1016040a);
  const __m512i number = _mm512_multishift_epi64_epi8(begin, _mm512_permutexvar_epi8(order, bytes));
  return _mm512_permutexvar_epi8(number, characters); /* by the low six bits */
}

char *base64_write_avx512(char *out, const unsigned char *bytes, size_t size) {
  const __m512i characters = load(alphabet), order = load(parted);
  for (; size >= BYTES; size -= BYTES, bytes += BYTES, out += BLOCK) {
    const __m512i x = _mm512_maskz_loadu_epi8((UINT64_C(1) << BYTES) - 1, bytes);
    _mm512_storeu_si512(out, to_characters(x, order, characters));
  }
  return base64_write_portable(out, bytes, size);
}

#endif
