/* base64_avx2: base64 in vectors of 32 characters, which stand for 24 bytes.
 *
 * The method is Wojciech Mula's and Daniel Lemire's ("Faster base64 encoding and decoding using
 * AVX2 instructions"): tables of 16 bytes check characters and move them to their numbers,
 * and products join the numbers. The rest of a text, and characters beyond the alphabet, are left
 * to base64_portable. */
#include "server/text/base64.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <stdbool.h>

enum { BLOCK = 32, BYTES = BLOCK / 4 * 3, LOAD = BYTES + 4 /* bytes that a block reads */ };

static inline __m256i twice(__m128i half) { return _mm256_broadcastsi128_si256(half); }

/* Turns characters into numbers. False if one of them is not of the alphabet. */
static inline bool to_numbers(__m256i text, __m256i *number) {
  /* `classes` has, for each high nibble, its class as a bit; `strange` has, for each low nibble,
   * the classes in which it is no character of the alphabet. Bit 0x10 is the class of high nibbles
   * without any such character, as all from 0x80 on, and strange everywhere. */
  const __m256i classes = twice(_mm_setr_epi8(0x10, 0x10, 0x01, 0x02, 0x04, 0x08, 0x04, 0x08, 0x10,
                                              0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10));
  const __m256i strange = twice(_mm_setr_epi8(0x15, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11,
                                              0x11, 0x13, 0x1a, 0x1b, 0x1b, 0x1b, 0x1a));
  /* The distance to the number, by the high nibble, or by the previous one for '/'. */
  const __m256i distance = twice(_mm_setr_epi8(0, 63 - '/', 62 - '+', 52 - '0', -'A', -'A',
                                               26 - 'a', 26 - 'a', 0, 0, 0, 0, 0, 0, 0, 0));
  /* One mask serves both nibbles: a shuffle ignores bit 5, and the mask is the code of '/'. */
  const __m256i slash = _mm256_set1_epi8('/');
  const __m256i high = _mm256_and_si256(_mm256_srli_epi32(text, 4), slash);
  const __m256i low = _mm256_and_si256(text, slash);
  const __m256i wrong_low = _mm256_shuffle_epi8(strange, low);
  const __m256i is_slash = _mm256_cmpeq_epi8(text, slash); /* -1 */
  *number = _mm256_add_epi8(text, _mm256_shuffle_epi8(distance, _mm256_add_epi8(is_slash, high)));
  return _mm256_testz_si256(wrong_low, _mm256_shuffle_epi8(classes, high));
}

/* Joins 32 numbers to 24 bytes, and eight zeros. */
static inline __m256i join(__m256i number) {
  const __m256i order =
      twice(_mm_setr_epi8(2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1));
  const __m256i twelve = _mm256_maddubs_epi16(number, _mm256_set1_epi32(0x01400140));
  const __m256i bits = _mm256_madd_epi16(twelve, _mm256_set1_epi32(0x00011000));
  return _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(bits, order),
                                     _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7));
}

static inline __m256i load(const char *text) {
  return _mm256_loadu_si256((const __m256i *)(const void *)text);
}

static inline void store(void *out, __m256i x) { _mm256_storeu_si256((__m256i *)out, x); }

size_t base64_read_avx2(const char *text, size_t length, unsigned char *out) {
  size_t at = 0;
  __m256i number;
  for (; length - at >= BLOCK && to_numbers(load(text + at), &number); at += BLOCK, out += BYTES)
    store(out, join(number));
  return at + base64_read_portable(text + at, length - at, out);
}

/* Turns 24 bytes into 32 numbers. Reads LOAD bytes. */
static inline __m256i split(const unsigned char *bytes) {
  const __m256i order = twice(_mm_setr_epi8(1, 0, 2, 1, 4, 3, 5, 4, 7, 6, 8, 7, 10, 9, 11, 10));
  const __m128i low = _mm_loadu_si128((const __m128i *)(const void *)bytes);
  const __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(bytes + BYTES / 2));
  const __m256i x =
      _mm256_shuffle_epi8(_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1), order);
  /* Products shift by different distances: the first and third number down, the others up. */
  const __m256i down = _mm256_mulhi_epu16(_mm256_and_si256(x, _mm256_set1_epi32(0x0fc0fc00)),
                                          _mm256_set1_epi32(0x04000040));
  const __m256i up = _mm256_mullo_epi16(_mm256_and_si256(x, _mm256_set1_epi32(0x003f03f0)),
                                        _mm256_set1_epi32(0x01000010));
  return _mm256_or_si256(down, up);
}

static inline __m256i to_characters(__m256i number) {
  /* Index 0: letters from 'a' on; 1 to 10: digits; 11, 12: '+' and '/'; 13: capitals. */
  const __m256i distance =
      twice(_mm_setr_epi8('a' - 26, '0' - 52, '0' - 52, '0' - 52, '0' - 52, '0' - 52, '0' - 52,
                          '0' - 52, '0' - 52, '0' - 52, '0' - 52, '+' - 62, '/' - 63, 'A', 0, 0));
  const __m256i capital = _mm256_cmpgt_epi8(_mm256_set1_epi8(26), number);
  const __m256i index = _mm256_or_si256(_mm256_subs_epu8(number, _mm256_set1_epi8(51)),
                                        _mm256_and_si256(capital, _mm256_set1_epi8(13)));
  return _mm256_add_epi8(number, _mm256_shuffle_epi8(distance, index));
}

char *base64_write_avx2(char *out, const unsigned char *bytes, size_t size) {
  for (; size >= LOAD; size -= BYTES, bytes += BYTES, out += BLOCK)
    store(out, to_characters(split(bytes)));
  return base64_write_portable(out, bytes, size);
}

#endif
