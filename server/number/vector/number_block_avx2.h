/* number_block_avx2: classes of 64 characters as bitmaps, with AVX2; internal to
 * number_stretch_avx2.c, number_integers_avx2.c and flag_avx2.c, which alone may include it. */
#ifndef SERVER_TEXT_NUMBER_BLOCK_AVX2_H
#define SERVER_TEXT_NUMBER_BLOCK_AVX2_H

#include <immintrin.h>

#include "server/number/vector/number_stretch_bits.h"

enum { NUMBER_BLOCK_AVX2 = 64 /* characters */ };

struct number_block_text_avx2 {
  __m256i low, high;
};

static inline struct number_block_text_avx2 number_block_load_avx2(const char *p) {
  return (
      struct number_block_text_avx2){_mm256_loadu_si256((const __m256i *)(const void *)p),
                                     _mm256_loadu_si256((const __m256i *)(const void *)(p + 32))};
}

static inline uint64_t number_block_bits_avx2(__m256i low, __m256i high) {
  uint32_t l = (uint32_t)_mm256_movemask_epi8(low), h = (uint32_t)_mm256_movemask_epi8(high);
  return (uint64_t)h << 32 | l;
}

static inline uint64_t number_block_equal_avx2(struct number_block_text_avx2 x, char c) {
  __m256i wanted = _mm256_set1_epi8(c);
  return number_block_bits_avx2(_mm256_cmpeq_epi8(x.low, wanted),
                                _mm256_cmpeq_epi8(x.high, wanted));
}

static inline __m256i number_block_are_digits_avx2(__m256i x) {
  __m256i digit = _mm256_sub_epi8(x, _mm256_set1_epi8('0'));
  return _mm256_cmpeq_epi8(_mm256_min_epu8(digit, _mm256_set1_epi8(9)), digit);
}

/* All ones for ' ', '\n', '\t', '\r': the characters that a table by the lowest four bits returns.
 */
static inline __m256i number_block_are_blanks_avx2(__m256i x) {
  const __m256i table = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(' ', 0, 0, 0, 0, 0, 0, 0, 0, '\t', '\n', 0, 0, '\r', 0, 0));
  return _mm256_cmpeq_epi8(_mm256_shuffle_epi8(table, x), x);
}

static inline uint64_t number_block_blanks_avx2(struct number_block_text_avx2 x) {
  return number_block_bits_avx2(number_block_are_blanks_avx2(x.low),
                                number_block_are_blanks_avx2(x.high));
}

/* The characters of a block; points and blanks are found only if `points` and `blanks` are set. */
static inline struct number_stretch_block number_block_of_avx2(const char *p, bool points,
                                                               bool blanks) {
  struct number_block_text_avx2 x = number_block_load_avx2(p);
  return (struct number_stretch_block){
      .digit = number_block_bits_avx2(number_block_are_digits_avx2(x.low),
                                      number_block_are_digits_avx2(x.high)),
      .zero = number_block_equal_avx2(x, '0'),
      .point = points ? number_block_equal_avx2(x, '.') : 0,
      .minus = number_block_equal_avx2(x, '-'),
      .comma = number_block_equal_avx2(x, ','),
      .blank = blanks ? number_block_blanks_avx2(x) : 0,
  };
}

/* Whether a blank follows one of the first commas, or is at the start. */
static inline bool number_block_is_spaced_avx2(const char *text) {
  struct number_block_text_avx2 x = number_block_load_avx2(text);
  return (number_block_blanks_avx2(x) & (number_block_equal_avx2(x, ',') << 1 | 1)) != 0;
}

#endif
