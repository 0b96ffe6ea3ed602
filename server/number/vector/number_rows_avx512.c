/* number_rows_avx512: rows of numbers as text, in vectors of 64 bytes.
 *
 * The arithmetic is that of number_write, in doubles: c * 2^q / 10^k is known to 2^-24 of a unit.
 * Numbers closer than 2^-20 to a boundary are declined and left to number_write, and so are
 * denormals (a thread may treat them as zero) and numbers that are written as long integers.
 *
 * Each number has 16 places: its sign, 14 for the digits and the dot, and the comma. Two masks
 * have the place of the dot and the places that are kept; one compression then writes four numbers.
 */
#include "server/number/number_level.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <stdint.h>

#include "server/number/number.h"
#include "server/number/number_bits.h"
#include "server/number/vector/number_rows_walk.h"

enum {
  GROUP = 16,   /* numbers that become digits at a time */
  QUAD = 4,     /* numbers that are written at a time */
  PLACES = 16,  /* bytes of a number */
  EXPONENT = 4, /* places of "e-05" */
  FOR_ZERO = 8, /* digits after the dot of zero, which are not written */
};

struct number_rows_batch_avx512 {
  /* The digits, as 0 to 9, right-aligned, or before the exponent if there is one. */
  _Alignas(64) uint8_t digit[NUMBER_BATCH + QUAD][PLACES];
  uint16_t dot[NUMBER_BATCH + QUAD], keep[NUMBER_BATCH + QUAD]; /* places, as bits */
  uint16_t declined[NUMBER_BATCH / GROUP + 1];                  /* which numbers, as bits */
  uint32_t any_declined;
};

/* --- digits --- */

/* The digits of eight numbers. */
struct number_rows_digits_avx512 {
  __m512i eight;             /* the last eight digits, the first of them in the lowest byte */
  __mmask8 nine, eighth;     /* nine digits (the first is 1); at least eight */
  __mmask8 doubtful, uneven; /* too close to a boundary; not a multiple of ten units */
};

/* Keeps the compiler from turning a product into sums, which are slower. */
static inline __m512i factor(short value) {
  __m512i factor = _mm512_set1_epi16(value);
  __asm__("" : "+v"(factor));
  return factor;
}

/* Turns numbers below 10^8, which are doubles, into digits. */
static inline __m512i split_digits(__m512d s) {
  const __m512d integer = _mm512_set1_pd(0x1p52), high = _mm512_set1_pd(0x1p20);
  /* Rounded down: that the constant is a little too large changes no result. */
  const __m512d first = _mm512_fmadd_round_pd(s, _mm512_set1_pd(1e-4), integer,
                                              _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  const __m512d last = _mm512_fnmadd_pd(_mm512_sub_pd(first, integer), _mm512_set1_pd(1e4), s);
  /* Four digits each, twice in 16 bits: the first from bit 0 on, the last from bit 32 on. */
  const __m512i twice =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 0, 1, 4, 5, 4, 5, 8, 9, 8, 9, 12, 13, 12, 13));
  const __m512i fours =
      _mm512_mask_shuffle_epi8(_mm512_shuffle_epi8(_mm512_castpd_si512(first), twice),
                               0xf0f0f0f0f0f0f0f0, _mm512_castpd_si512(_mm512_add_pd(last, high)),
                               twice);
  const __m512i hundreds =
      _mm512_srli_epi16(_mm512_mulhi_epu16(fours, _mm512_set1_epi16(10486)), 4);
  /* Two digits each: the hundreds, and what they leave. */
  const __m512i parts = _mm512_mullo_epi16(hundreds, _mm512_set1_epi32(-100 * 65536 + 1));
  const __m512i twos = _mm512_mask_add_epi16(parts, 0xaaaaaaaa, parts, fours);
  const __m512i tens = _mm512_mulhi_epu16(twos, _mm512_set1_epi16(6554));
  return _mm512_sub_epi16(_mm512_slli_epi16(twos, 8),
                          _mm512_mullo_epi16(tens, factor(10 * 256 - 1)));
}

/* The shortest digits of |x|; `power` is 10^-k. */
static inline struct number_rows_digits_avx512 shorten(__m512d x, __m512d power) {
  const __m512d integer = _mm512_set1_pd(0x1p52), ten = _mm512_set1_pd(10);
  const __m512d field = _mm512_castsi512_pd(_mm512_set1_epi64(0x7ff0000000000000));
  const __m512d half_unit =
      _mm512_mul_pd(_mm512_and_pd(x, field), _mm512_mul_pd(power, _mm512_set1_pd(0x1p-24)));
  const __m512d v = _mm512_mul_pd(x, power);
  const __m512d tens = _mm512_sub_pd(_mm512_fmadd_pd(v, _mm512_set1_pd(0.1), integer), integer);
  const __m512d to_tens = _mm512_abs_pd(_mm512_fnmadd_pd(tens, ten, v));
  const __m512d ones = _mm512_sub_pd(_mm512_add_pd(v, integer), integer);
  const __m512d to_ones = _mm512_abs_pd(_mm512_sub_pd(v, ones));
  const __m512d distance = _mm512_min_pd(_mm512_abs_pd(_mm512_sub_pd(to_tens, half_unit)),
                                         _mm512_sub_pd(_mm512_set1_pd(0.5), to_ones));
  const __mmask8 use_tens = _mm512_cmp_pd_mask(to_tens, half_unit, _CMP_LT_OQ);
  const __m512d s = _mm512_mask_mul_pd(ones, use_tens, tens, ten);
  struct number_rows_digits_avx512 d = {
      .nine = _mm512_cmp_pd_mask(s, _mm512_set1_pd(1e8), _CMP_GE_OQ),
      .eighth = _mm512_cmp_pd_mask(s, _mm512_set1_pd(1e7), _CMP_GE_OQ),
      .doubtful = _mm512_cmp_pd_mask(distance, _mm512_set1_pd(0x1p-20), _CMP_LT_OQ),
      .uneven = _mm512_cmp_pd_mask(to_tens, _mm512_setzero_pd(), _CMP_NEQ_OQ)};
  d.eight = split_digits(_mm512_mask_sub_pd(s, d.nine, s, _mm512_set1_pd(1e8)));
  return d;
}

/* 10^f for 3 <= f <= 10. */
static inline __m512d near_power(__m512i f) {
  return _mm512_permutexvar_pd(f, _mm512_setr_pd(1e8, 1e9, 1e10, 1e3, 1e4, 1e5, 1e6, 1e7));
}

/* 10^f for -32 <= f < 48, to 2^-52 of itself. */
static inline __m512d any_power(__m512i f) {
  const __m512i from_0 = _mm512_add_epi64(f, _mm512_set1_epi64(32));
  const __m512d fine =
      _mm512_permutex2var_pd(_mm512_setr_pd(1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7), from_0,
                             _mm512_setr_pd(1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15));
  const __m512d coarse =
      _mm512_permutexvar_pd(_mm512_srli_epi64(from_0, 4),
                            _mm512_setr_pd(1e-32, 1e-16, 1, 1e16, 1e32, 1, 1, 1));
  return _mm512_mul_pd(fine, coarse);
}

/* --- layout --- */

/* Sixteen numbers on their way to text. */
struct number_rows_group_avx512 {
  __m512i magnitude;
  __m512i point;           /* digits after the dot, if all are written */
  __m512i count;           /* how many digits: 7 to 9 */
  __m512i zeros;           /* how many zeros are at the end */
  __m512i low[2], high[2]; /* the places: halves of eight numbers each */
  __mmask16 declined, scientific;
};

/* Stores the masks of places. Places count from the end: place 0 is the last digit's. */
static inline void store_masks(struct number_rows_batch_avx512 *b, size_t at,
                               const struct number_rows_group_avx512 *g, __mmask16 negative) {
  const __m512i one = _mm512_set1_epi32(1), before = _mm512_add_epi32(g->point, one);
  const __m512i last =
      _mm512_mask_mov_epi32(g->zeros, _mm512_cmpge_epi32_mask(g->zeros, g->point), before);
  const __m512i first = _mm512_max_epi32(before, g->count);
  __m512i keep = _mm512_sub_epi32(_mm512_srlv_epi32(_mm512_set1_epi32(1 << 15), last),
                                  _mm512_srlv_epi32(_mm512_set1_epi32(1 << 14), first));
  keep = _mm512_or_si512(keep, _mm512_set1_epi32(1 << 15));
  keep = _mm512_mask_or_epi32(keep, negative, keep, one);
  keep = _mm512_mask_or_epi32(keep, g->scientific, keep, _mm512_set1_epi32(0xf << 11));
  const __m512i dot = _mm512_srlv_epi32(_mm512_set1_epi32(1 << 14), g->point);
  _mm256_storeu_si256((__m256i *)(b->keep + at), _mm512_cvtepi32_epi16(keep));
  _mm256_storeu_si256((__m256i *)(b->dot + at), _mm512_cvtepi32_epi16(dot));
}

static inline void store_digits(struct number_rows_batch_avx512 *b, size_t at,
                                const struct number_rows_group_avx512 *g) {
  const __m512i front = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
  const __m512i back = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
  for (size_t i = 0; i < 2; i++) {
    uint8_t(*digit)[PLACES] = b->digit + at + 8 * i;
    _mm512_store_si512(digit, _mm512_permutex2var_epi64(g->low[i], front, g->high[i]));
    _mm512_store_si512(digit + QUAD, _mm512_permutex2var_epi64(g->low[i], back, g->high[i]));
  }
}

/* "e-05" for the power of ten of the first digit, as differences from '0'. */
static inline __m512i exponent_text(__m512i power) {
  const __m512i a = _mm512_abs_epi32(power);
  const __m512i tens = _mm512_srli_epi32(_mm512_mullo_epi16(a, _mm512_set1_epi32(205)), 11);
  const __m512i digits =
      _mm512_sub_epi16(_mm512_slli_epi32(a, 8),
                       _mm512_mullo_epi16(tens, _mm512_set1_epi32(10 * 256 - 1)));
  const __m512i sign =
      _mm512_mask_mov_epi32(_mm512_set1_epi32('e' - '0' + ((('+' - '0') & 255) << 8)),
                            _mm512_movepi32_mask(power),
                            _mm512_set1_epi32('e' - '0' + ((('-' - '0') & 255) << 8)));
  return _mm512_or_si512(_mm512_slli_epi32(digits, 16), sign);
}

/* Adds an exponent to the numbers that need one: their digits move before it. */
static inline void add_exponents(struct number_rows_group_avx512 *g) {
  const __m512i one = _mm512_set1_epi32(1);
  const __m512i power = _mm512_sub_epi32(_mm512_sub_epi32(g->count, one), g->point);
  const __m512i text = exponent_text(power);
  const __m512i half[2] = {_mm512_cvtepu32_epi64(_mm512_castsi512_si256(text)),
                           _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(text, 1))};
  for (size_t i = 0; i < 2; i++) {
    const __mmask8 some = (__mmask8)(g->scientific >> 8 * i);
    const __m512i digits = g->high[i];
    g->high[i] = _mm512_mask_or_epi64(digits, some, _mm512_srli_epi64(digits, 32),
                                      _mm512_slli_epi64(half[i], 32));
    g->low[i] = _mm512_mask_or_epi64(g->low[i], some, _mm512_srli_epi64(g->low[i], 32),
                                     _mm512_slli_epi64(digits, 32));
  }
  g->point =
      _mm512_mask_add_epi32(g->point, g->scientific, g->count, _mm512_set1_epi32(EXPONENT - 1));
  g->zeros = _mm512_mask_add_epi32(g->zeros, g->scientific, g->zeros, _mm512_set1_epi32(EXPONENT));
}

/* Chooses the shorter notation for numbers of any size; the fixed one if both are equally long. */
static inline void choose_notation(struct number_rows_group_avx512 *g) {
  const __m512i one = _mm512_set1_epi32(1);
  const __mmask16 single = _mm512_cmpeq_epi32_mask(_mm512_sub_epi32(g->count, g->zeros), one);
  /* Without a dot, the scientific notation is shorter by one. */
  const __m512i count = _mm512_mask_sub_epi32(g->count, single, g->count, one);
  const __m512i zeros = _mm512_mask_add_epi32(g->zeros, single, g->zeros, one);
  const __mmask16 small =
      _mm512_cmpgt_epi32_mask(_mm512_sub_epi32(g->point, count), _mm512_set1_epi32(3));
  const __mmask16 large =
      _mm512_cmpgt_epi32_mask(_mm512_sub_epi32(zeros, g->point), _mm512_set1_epi32(5));
  g->scientific = small | large;
  const __mmask16 long_integer =
      _mm512_cmpge_epi32_mask(g->magnitude, _mm512_set1_epi32(NUMBER_TWO_TO_24));
  const __m512i less_one = _mm512_sub_epi32(g->magnitude, one); /* the largest value for a zero */
  const __mmask16 denormal = _mm512_cmplt_epu32_mask(less_one, _mm512_set1_epi32(NUMBER_STORED));
  g->declined |= denormal | (long_integer & ~g->scientific);
  if (g->scientific) add_exponents(g);
}

/* --- the numbers of a batch --- */

static inline __m512i widen(__m512i v, int half) {
  return _mm512_cvtepi32_epi64(half ? _mm512_extracti64x4_epi64(v, 1) : _mm512_castsi512_si256(v));
}

static inline __m512d widen_float(__m512i v, int half) {
  return _mm512_cvtps_pd(
      _mm256_castsi256_ps(half ? _mm512_extracti64x4_epi64(v, 1) : _mm512_castsi512_si256(v)));
}

static inline __mmask16 both(__mmask8 low, __mmask8 high) { return _mm512_kunpackb(high, low); }

static inline __attribute__((always_inline)) void prepare_group(struct number_rows_batch_avx512 *b,
                                                                size_t at, __m512i bits) {
  struct number_rows_group_avx512 g = {
      .magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(NUMBER_MAGNITUDE))};
  const __mmask16 zero = _mm512_testn_epi32_mask(g.magnitude, g.magnitude);
  const __mmask16 unusual = _mm512_mask_cmpge_epu32_mask(
      (__mmask16)~zero, _mm512_sub_epi32(g.magnitude, _mm512_set1_epi32(NUMBER_A_THOUSANDTH)),
      _mm512_set1_epi32(NUMBER_HUNDRED_THOUSAND - NUMBER_A_THOUSANDTH));
  const __mmask16 power_of_2 =
      _mm512_testn_epi32_mask(g.magnitude, _mm512_set1_epi32(NUMBER_STORED));

  /* -floor(log10(2^q)), the logarithm to 16 bits: enough for every q of a float. */
  const __m512i q = _mm512_sub_epi32(_mm512_srli_epi32(g.magnitude, 23), _mm512_set1_epi32(150));
  const __m512i log = _mm512_srai_epi32(_mm512_madd_epi16(q, _mm512_set1_epi32(19728)), 16);
  g.point = _mm512_mask_sub_epi32(_mm512_set1_epi32(FOR_ZERO), (__mmask16)~zero,
                                  _mm512_setzero_si512(), log);
  const __m512i f[2] = {widen(g.point, 0), widen(g.point, 1)};
  __m512d power[2] = {near_power(f[0]), near_power(f[1])};
  if (__builtin_expect(unusual != 0, 0))
    for (int i = 0; i < 2; i++) power[i] = any_power(f[i]);
  const struct number_rows_digits_avx512 d[2] = {shorten(widen_float(g.magnitude, 0), power[0]),
                                                 shorten(widen_float(g.magnitude, 1), power[1])};

  /* Floats below a power of two are twice as close, which does not matter if it has few digits. */
  g.declined =
      (both(d[0].doubtful, d[1].doubtful) | (power_of_2 & both(d[0].uneven, d[1].uneven))) &
      (__mmask16)~zero;
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  g.zeros = _mm512_srli_epi32(_mm512_permutex2var_epi32(_mm512_lzcnt_epi64(d[0].eight), even,
                                                        _mm512_lzcnt_epi64(d[1].eight)),
                              3);
  g.count = _mm512_mask_mov_epi32(_mm512_set1_epi32(7), both(d[0].eighth, d[1].eighth),
                                  _mm512_set1_epi32(8));
  g.count = _mm512_mask_mov_epi32(g.count, both(d[0].nine, d[1].nine), _mm512_set1_epi32(9));
  for (size_t i = 0; i < 2; i++) {
    g.low[i] = _mm512_maskz_mov_epi64(d[i].nine, _mm512_set1_epi64(INT64_C(1) << 56));
    g.high[i] = d[i].eight;
  }
  if (__builtin_expect(unusual != 0, 0)) choose_notation(&g);
  store_masks(b, at, &g, _mm512_movepi32_mask(bits));
  store_digits(b, at, &g);
  b->declined[at / GROUP] = g.declined;
  b->any_declined |= g.declined;
}

/* Not inlined: there would be too few registers for its constants. */
static __attribute__((noinline)) void prepare_batch(void *batch, const float *value, size_t count) {
  struct number_rows_batch_avx512 *b = batch;
  b->any_declined = 0;
  for (size_t at = 0; at < count; at += GROUP) {
    const __mmask16 some = (__mmask16)(at + GROUP <= count ? UINT16_MAX : (1 << (count - at)) - 1);
    prepare_group(b, at, _mm512_maskz_loadu_epi32(some, value + at));
  }
}

/* --- text --- */

/* Lays four numbers out, each digit, dot and sign at its place. */
static inline __m512i lay_out(const struct number_rows_batch_avx512 *b, size_t at) {
  const __m512i place =
      _mm512_broadcast_i32x4(_mm_setr_epi8(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16));
  const __m512i zero =
      _mm512_broadcast_i32x4(_mm_setr_epi8('-', '0', '0', '0', '0', '0', '0', '0', '0', '0', '0',
                                           '0', '0', '0', '0', ','));
  /* A declined number may have no dot. The subtraction then borrows the bit of the next number's
   * sign, where no digit has to move. */
  uint64_t dot;
  memcpy(&dot, b->dot + at, sizeof dot);
  const uint64_t before_dot = dot - 0x0001000100010001;
  const __m512i from = _mm512_mask_add_epi8(place, before_dot, place, _mm512_set1_epi8(1));
  const __m512i digits =
      _mm512_maskz_shuffle_epi8(0x7ffe7ffe7ffe7ffe, _mm512_loadu_si512(b->digit[at]), from);
  return _mm512_mask_mov_epi8(_mm512_add_epi8(digits, zero), dot, _mm512_set1_epi8('.'));
}

static inline uint64_t kept_places(const struct number_rows_batch_avx512 *b, size_t at) {
  uint64_t keep;
  memcpy(&keep, b->keep + at, sizeof keep);
  return keep;
}

/* Compressed in a register: some processors are slow at compressing into memory. */
static inline char *put_kept(char *out, __m512i text, uint64_t keep) {
  _mm512_storeu_si512(out, _mm512_maskz_compress_epi8(keep, text));
  return out + __builtin_popcountll(keep);
}

static inline uint64_t places_of(size_t count) { return UINT64_MAX >> (64 - PLACES * count); }

static inline uint32_t declined_of(const struct number_rows_batch_avx512 *b, size_t from,
                                   size_t count) {
  uint16_t bits; /* up to seven bits of the first byte precede these four */
  memcpy(&bits, (const uint8_t *)b->declined + from / 8, sizeof bits);
  return (uint32_t)bits >> from % 8 & ((1u << count) - 1);
}

/* Writes one to four numbers, the declined ones by number_write. */
static __attribute__((noinline)) char *put_declined(char *out,
                                                    const struct number_rows_batch_avx512 *b,
                                                    const float *value, size_t from, size_t count,
                                                    uint32_t declined) {
  _Alignas(64) char text[QUAD][PLACES];
  if (declined + 1 != 1u << count) _mm512_store_si512(text, lay_out(b, from));
  for (size_t i = 0; i < count; i++) {
    if (declined >> i & 1) {
      out = number_write(out, value[from + i]);
      *out++ = ',';
    } else {
      const __m128i one = _mm_load_si128((const __m128i *)text[i]);
      const uint16_t keep = b->keep[from + i];
      _mm_storeu_si128((__m128i *)out, _mm_maskz_compress_epi8(keep, one));
      out += __builtin_popcount(keep);
    }
  }
  return out;
}

static inline char *write_numbers(char *out, const void *batch, const float *value, size_t from,
                                  size_t count) {
  const struct number_rows_batch_avx512 *b = batch;
  const size_t end = from + count;
  while (from < end) {
    const size_t some = end - from < QUAD ? end - from : QUAD;
    const uint32_t declined = b->any_declined ? declined_of(b, from, some) : 0;
    if (__builtin_expect(declined != 0, 0))
      out = put_declined(out, b, value, from, some, declined);
    else
      out = put_kept(out, lay_out(b, from), kept_places(b, from) & places_of(some));
    from += some;
  }
  return out;
}

char *number_rows_avx512(char *out, const float *value, size_t rows, size_t width) {
  struct number_rows_batch_avx512 batch;
  return number_rows_walk(out, value, rows, width, &batch, prepare_batch, write_numbers);
}

#endif
