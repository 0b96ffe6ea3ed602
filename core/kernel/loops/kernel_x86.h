/* kernel_x86: operations shared by vector_avx2.h and vector_avx512.h. */
#include <immintrin.h>
#include <stddef.h>

/* Transposes 4 floats of 8 rows, also with AVX-512: some processors take two steps for a shuffle of
 * 16 lanes, and rows that are a power of two apart compete for the same few lines of the first
 * cache. Rows that are 4 apart share a vector, so that numbers move only within four lanes. */
#define HAVE_TURN 8
static inline __attribute__((always_inline)) void turn_fours(const float *from, size_t from_row,
                                                             float *to, size_t to_row) {
  __m256 r[4];
#pragma GCC unroll 4
  for (size_t i = 0; i < 4; i++)
    r[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from + i * from_row)),
                                _mm_loadu_ps(from + (i + 4) * from_row), 1);
  const __m256 a = _mm256_unpacklo_ps(r[0], r[1]), b = _mm256_unpacklo_ps(r[2], r[3]);
  const __m256 c = _mm256_unpackhi_ps(r[0], r[1]), d = _mm256_unpackhi_ps(r[2], r[3]);
  _mm256_storeu_ps(to, _mm256_shuffle_ps(a, b, 0x44));
  _mm256_storeu_ps(to + to_row, _mm256_shuffle_ps(a, b, 0xee));
  _mm256_storeu_ps(to + 2 * to_row, _mm256_shuffle_ps(c, d, 0x44));
  _mm256_storeu_ps(to + 3 * to_row, _mm256_shuffle_ps(c, d, 0xee));
}
