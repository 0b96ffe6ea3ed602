/* number_rows_avx2: rows of numbers as text, in vectors of 32 bytes.
 *
 * The arithmetic is that of number_write, in doubles: c * 2^q / 10^k is known to 2^-24 of a unit.
 * Numbers closer than 2^-20 to a boundary are declined and left to number_write, and so are
 * denormals (a thread may treat them as zero) and numbers that are written as long integers.
 *
 * Four numbers at a time become digits. Then each is written by itself: a shuffle inserts the dot
 * between its digits (number_layouts), and its exponent follows if it has one. */
#include "server/number/number_level.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <stdint.h>

#include "server/number/number.h"
#include "server/number/number_bits.h"
#include "server/number/number_tables.h"
#include "server/number/vector/number_rows_walk.h"

enum {
  GROUP = 4,    /* numbers that become digits at a time */
  FOR_ZERO = 8, /* digits after the dot of zero, which are not written */
  EXPONENT = 4, /* bytes of "e-05" */
};

struct number_rows_batch_avx2 {
  _Alignas(32) uint8_t text[NUMBER_BATCH][16]; /* a dot and 15 digits, right-aligned */
  uint32_t point[NUMBER_BATCH];                /* digits after the dot, if all are written */
  uint32_t first[NUMBER_BATCH];           /* place of the first digit, counted from the last, 0 */
  uint32_t exponent[NUMBER_BATCH];        /* "e-05" or nothing */
  uint8_t nonzero[NUMBER_BATCH];          /* which of the last eight digits are not 0, as bits */
  uint8_t declined[NUMBER_BATCH / GROUP]; /* which numbers are declined, as bits */
};

/* --- digits --- */

/* The digits of four numbers, in lanes of 64 bits. */
struct number_rows_digits_avx2 {
  __m256i eight;            /* the last eight digits, the first of them in the lowest byte */
  __m256i nine;             /* mask: the number has nine digits, of which the first is 1 */
  __m256i fewer;            /* how many digits fewer than nine: 0 to 2 */
  __m256d doubtful, uneven; /* masks: too close to a boundary; not a multiple of ten units */
};

/* Keeps the compiler from turning a product into sums, which are slower. */
static inline __m256i factor(short value) {
  __m256i factor = _mm256_set1_epi16(value);
  __asm__("" : "+x"(factor));
  return factor;
}

/* Turns numbers below 10^8, which are doubles, into digits. */
static inline __m256i split_digits(__m256d s) {
  const __m256d integer = _mm256_set1_pd(0x1p52);
  const __m256i whole = _mm256_xor_si256(_mm256_castpd_si256(_mm256_add_pd(s, integer)),
                                         _mm256_castpd_si256(integer));
  /* Four digits each, from bits 0 and 32 on. */
  const __m256i first =
      _mm256_srli_epi64(_mm256_mul_epu32(whole, _mm256_set1_epi64x(109951163)), 40);
  const __m256i last = _mm256_sub_epi64(whole, _mm256_mul_epu32(first, _mm256_set1_epi64x(10000)));
  const __m256i fours = _mm256_or_si256(first, _mm256_slli_epi64(last, 32));
  /* Two digits each. */
  const __m256i hundreds =
      _mm256_srli_epi32(_mm256_mulhi_epu16(fours, _mm256_set1_epi32(10486)), 4);
  const __m256i rest =
      _mm256_sub_epi32(fours, _mm256_mullo_epi16(hundreds, _mm256_set1_epi32(100)));
  const __m256i twos = _mm256_or_si256(hundreds, _mm256_slli_epi32(rest, 16));
  const __m256i tens = _mm256_mulhi_epu16(twos, _mm256_set1_epi16(6554));
  return _mm256_sub_epi16(_mm256_slli_epi16(twos, 8),
                          _mm256_mullo_epi16(tens, factor(10 * 256 - 1)));
}

static inline __m256d magnitude_of(__m256d x) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), x); }

static inline __m256d round_to_integer(__m256d x) {
  const __m256d integer = _mm256_set1_pd(0x1p52);
  return _mm256_sub_pd(_mm256_add_pd(x, integer), integer);
}

/* The shortest digits of |x|; `power` is 10^-k. */
static inline struct number_rows_digits_avx2 shorten(__m256d x, __m256d power) {
  const __m256d ten = _mm256_set1_pd(10);
  const __m256d field = _mm256_castsi256_pd(_mm256_set1_epi64x(0x7ff0000000000000));
  const __m256d half_unit =
      _mm256_mul_pd(_mm256_and_pd(x, field), _mm256_mul_pd(power, _mm256_set1_pd(0x1p-24)));
  const __m256d v = _mm256_mul_pd(x, power);
  const __m256d tens = round_to_integer(_mm256_mul_pd(v, _mm256_set1_pd(0.1)));
  const __m256d to_tens = magnitude_of(_mm256_fnmadd_pd(tens, ten, v));
  const __m256d ones = round_to_integer(v);
  const __m256d to_ones = magnitude_of(_mm256_sub_pd(v, ones));
  const __m256d distance = _mm256_min_pd(magnitude_of(_mm256_sub_pd(to_tens, half_unit)),
                                         _mm256_sub_pd(_mm256_set1_pd(0.5), to_ones));
  const __m256d use_tens = _mm256_cmp_pd(to_tens, half_unit, _CMP_LT_OQ);
  const __m256d s = _mm256_blendv_pd(ones, _mm256_mul_pd(tens, ten), use_tens);
  const __m256d nine = _mm256_cmp_pd(s, _mm256_set1_pd(1e8), _CMP_GE_OQ);
  const __m256d seven = _mm256_cmp_pd(s, _mm256_set1_pd(1e7), _CMP_LT_OQ);
  struct number_rows_digits_avx2 d = {
      .nine = _mm256_castpd_si256(nine),
      .doubtful = _mm256_cmp_pd(distance, _mm256_set1_pd(0x1p-20), _CMP_LT_OQ),
      .uneven = _mm256_cmp_pd(to_tens, _mm256_setzero_pd(), _CMP_NEQ_OQ)};
  const __m256i not_nine = _mm256_add_epi64(d.nine, _mm256_set1_epi64x(1));
  d.fewer = _mm256_sub_epi64(not_nine, _mm256_castpd_si256(seven));
  d.eight = split_digits(_mm256_sub_pd(s, _mm256_and_pd(nine, _mm256_set1_pd(1e8))));
  return d;
}

/* --- layout --- */

/* Four numbers on their way to text. Masks are lanes of -1. */
struct number_rows_group_avx2 {
  __m128i magnitude;
  __m128i point; /* digits after the dot, if all are written */
  __m128i count; /* how many digits: 7 to 9 */
  __m128i exponent;
  uint32_t nonzero; /* which of the last eight digits are not 0: a byte of bits for each number */
  uint32_t declined;
};

static inline uint32_t bits_of(__m128i mask) {
  return (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(mask));
}

/* Returns the lower halves of lanes of 64 bits. */
static inline __m128i narrow(__m256i v) {
  return _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(_mm256_castsi256_si128(v)),
                                         _mm_castsi128_ps(_mm256_extracti128_si256(v, 1)), 0x88));
}

/* "e-05" for the power of ten of the first digit. */
static inline __m128i exponent_text(__m128i power) {
  const __m128i a = _mm_abs_epi32(power);
  const __m128i tens = _mm_srli_epi32(_mm_mullo_epi16(a, _mm_set1_epi32(205)), 11);
  const __m128i digits =
      _mm_sub_epi16(_mm_slli_epi32(a, 8), _mm_mullo_epi16(tens, _mm_set1_epi32(10 * 256 - 1)));
  const __m128i sign = _mm_and_si128(_mm_srai_epi32(power, 31), _mm_set1_epi32(('-' - '+') << 8));
  return _mm_add_epi32(_mm_slli_epi32(digits, 16),
                       _mm_add_epi32(sign, _mm_set1_epi32('e' | '+' << 8 | '0' << 16 | '0' << 24)));
}

/* Zeros at the end of the last eight digits. The place of the highest bit is read from a float's
 * exponent; there are eight zeros if no bit is set. */
static inline __m128i trailing_zeros(uint32_t nonzero) {
  const __m128i bits = _mm_cvtepu8_epi32(_mm_cvtsi32_si128((int)nonzero));
  const __m128i field = _mm_srli_epi32(_mm_castps_si128(_mm_cvtepi32_ps(bits)), 23);
  return _mm_sub_epi32(_mm_set1_epi32(127 + 7), _mm_max_epi32(field, _mm_set1_epi32(126)));
}

/* Chooses the shorter notation for numbers of any size; the fixed one if both are equally long. */
static inline void choose_notation(struct number_rows_group_avx2 *g) {
  const __m128i one = _mm_set1_epi32(1), zeros = trailing_zeros(g->nonzero);
  const __m128i single = _mm_cmpeq_epi32(_mm_sub_epi32(g->count, zeros), one);
  /* Without a dot, the scientific notation is shorter by one. */
  const __m128i count_too = _mm_add_epi32(g->count, single);
  const __m128i zeros_too = _mm_sub_epi32(zeros, single);
  const __m128i small = _mm_cmpgt_epi32(_mm_sub_epi32(g->point, count_too), _mm_set1_epi32(3));
  const __m128i large = _mm_cmpgt_epi32(_mm_sub_epi32(zeros_too, g->point), _mm_set1_epi32(5));
  const __m128i scientific = _mm_or_si128(small, large);
  const __m128i long_integer = _mm_cmpgt_epi32(g->magnitude, _mm_set1_epi32(NUMBER_TWO_TO_24 - 1));
  const __m128i tiny = _mm_cmpgt_epi32(_mm_set1_epi32(NUMBER_STORED + 1), g->magnitude);
  const __m128i denormal =
      _mm_andnot_si128(_mm_cmpeq_epi32(g->magnitude, _mm_setzero_si128()), tiny);
  g->declined |= bits_of(_mm_or_si128(denormal, _mm_andnot_si128(scientific, long_integer)));
  const __m128i others = _mm_sub_epi32(g->count, one); /* digits after the first */
  g->exponent = _mm_and_si128(scientific, exponent_text(_mm_sub_epi32(others, g->point)));
  g->point = _mm_min_epu32(_mm_blendv_epi8(g->point, others, scientific),
                           _mm_set1_epi32(NUMBER_LAYOUTS - 1));
}

/* --- the numbers of a batch --- */

static inline void store_text(struct number_rows_batch_avx2 *b, size_t at,
                              const struct number_rows_digits_avx2 *d) {
  const __m256i zeros = _mm256_set1_epi64x(0x3030303030303030);
  const __m256i dot = _mm256_set1_epi64x(0x303030303030302e);
  const __m256i nine = _mm256_and_si256(d->nine, _mm256_set1_epi64x(INT64_C(1) << 56));
  const __m256i low = _mm256_or_si256(nine, dot), high = _mm256_or_si256(d->eight, zeros);
  const __m256i even = _mm256_unpacklo_epi64(low, high), odd = _mm256_unpackhi_epi64(low, high);
  _mm_store_si128((__m128i *)b->text[at], _mm256_castsi256_si128(even));
  _mm_store_si128((__m128i *)b->text[at + 1], _mm256_castsi256_si128(odd));
  _mm_store_si128((__m128i *)b->text[at + 2], _mm256_extracti128_si256(even, 1));
  _mm_store_si128((__m128i *)b->text[at + 3], _mm256_extracti128_si256(odd, 1));
}

/* Loads numbers one by one: on many processors a gather is slower. */
static inline __m256d powers_of(__m128i point) {
  const double *table = number_power_doubles - NUMBER_DOUBLE_MIN;
  return _mm256_setr_pd(table[_mm_cvtsi128_si32(point)], table[_mm_extract_epi32(point, 1)],
                        table[_mm_extract_epi32(point, 2)], table[_mm_extract_epi32(point, 3)]);
}

static inline __attribute__((always_inline)) void prepare_group(struct number_rows_batch_avx2 *b,
                                                                size_t at, __m128i bits) {
  struct number_rows_group_avx2 g = {.magnitude =
                                         _mm_and_si128(bits, _mm_set1_epi32(NUMBER_MAGNITUDE))};
  const __m128i zero = _mm_cmpeq_epi32(g.magnitude, _mm_setzero_si128());
  const __m128i unusual = _mm_andnot_si128(
      zero,
      _mm_or_si128(_mm_cmpgt_epi32(_mm_set1_epi32(NUMBER_A_THOUSANDTH), g.magnitude),
                   _mm_cmpgt_epi32(g.magnitude, _mm_set1_epi32(NUMBER_HUNDRED_THOUSAND - 1))));
  const __m128i power_of_2 =
      _mm_cmpeq_epi32(_mm_and_si128(bits, _mm_set1_epi32(NUMBER_STORED)), _mm_setzero_si128());

  /* -floor(log10(2^q)), the logarithm to 16 bits: enough for every q of a float. */
  const __m128i q = _mm_sub_epi32(_mm_srli_epi32(g.magnitude, 23), _mm_set1_epi32(150));
  const __m128i log = _mm_srai_epi32(_mm_madd_epi16(q, _mm_set1_epi32(19728)), 16);
  /* The table of powers ends below the least normal float. */
  const __m128i no_normal = _mm_cmpgt_epi32(_mm_set1_epi32(NUMBER_STORED + 1), g.magnitude);
  g.point =
      _mm_blendv_epi8(_mm_sub_epi32(_mm_setzero_si128(), log), _mm_set1_epi32(FOR_ZERO), no_normal);
  const struct number_rows_digits_avx2 d =
      shorten(_mm256_cvtps_pd(_mm_castsi128_ps(g.magnitude)), powers_of(g.point));

  /* Floats below a power of two are twice as close, which does not matter if it has few digits. */
  const __m256d narrow_one =
      _mm256_and_pd(d.uneven, _mm256_castsi256_pd(_mm256_cvtepi32_epi64(power_of_2)));
  g.declined = (uint32_t)_mm256_movemask_pd(_mm256_or_pd(d.doubtful, narrow_one)) & ~bits_of(zero);
  g.count = _mm_sub_epi32(_mm_set1_epi32(9), narrow(d.fewer));
  g.nonzero = ~(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(d.eight, _mm256_setzero_si256()));
  if (__builtin_expect(bits_of(unusual) != 0, 0)) {
    choose_notation(&g);
    _mm_storeu_si128((__m128i *)(b->exponent + at), g.exponent);
  } else {
    _mm_storeu_si128((__m128i *)(b->exponent + at), _mm_setzero_si128());
  }
  store_text(b, at, &d);
  const __m128i before = _mm_add_epi32(g.point, _mm_set1_epi32(1));
  _mm_storeu_si128((__m128i *)(b->point + at), g.point);
  _mm_storeu_si128((__m128i *)(b->first + at), _mm_max_epi32(before, g.count));
  memcpy(b->nonzero + at, &g.nonzero, sizeof g.nonzero);
  b->declined[at / GROUP] = (uint8_t)g.declined;
}

static inline void prepare_batch(void *batch, const float *value, size_t count) {
  struct number_rows_batch_avx2 *b = batch;
  for (size_t at = 0; at < count; at += GROUP) {
    float some[GROUP] = {0};
    const size_t rest = count - at;
    if (rest < GROUP) memcpy(some, value + at, rest * sizeof *value);
    prepare_group(b, at, _mm_loadu_si128((const __m128i *)(rest < GROUP ? some : value + at)));
  }
}

/* --- text --- */

static inline char *write_number(char *out, const struct number_rows_batch_avx2 *b, size_t at,
                                 float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  *out = '-';
  out += bits >> 31;
  const uint32_t point = b->point[at], first = b->first[at];
  const uint32_t zeros = (uint32_t)__builtin_clz(2u * b->nonzero[at] + 1) - 23;
  const uint32_t last = zeros >= point ? point + 1 : zeros;
  const uint8_t *layout = number_layouts[point] + (NUMBER_LAYOUT_LAST - first);
  const __m128i text = _mm_shuffle_epi8(_mm_load_si128((const __m128i *)b->text[at]),
                                        _mm_loadu_si128((const __m128i *)layout));
  _mm_storeu_si128((__m128i *)out, text);
  out += first + 1 - last;
  const uint32_t exponent = b->exponent[at];
  memcpy(out, &exponent, EXPONENT);
  out += exponent ? EXPONENT : 0;
  *out = ',';
  return out + 1;
}

static inline char *write_numbers(char *out, const void *batch, const float *value, size_t from,
                                  size_t count) {
  const struct number_rows_batch_avx2 *b = batch;
  for (size_t at = from; at < from + count; at++) {
    if (__builtin_expect(b->declined[at / GROUP] >> at % GROUP & 1, 0)) {
      out = number_write(out, value[at]);
      *out++ = ',';
    } else {
      out = write_number(out, b, at, value[at]);
    }
  }
  return out;
}

char *number_rows_avx2(char *out, const float *value, size_t rows, size_t width) {
  struct number_rows_batch_avx2 batch;
  return number_rows_walk(out, value, rows, width, &batch, prepare_batch, write_numbers);
}

#endif
