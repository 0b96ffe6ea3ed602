/* number_stretch_avx512: stretches of numbers with AVX-512, VBMI and VBMI2.
 *
 * A batch of text passes two stages. The first finds the numbers, 64 characters at a time:
 * compares give bitmaps, and byte-compress makes lists of places out of them. The second reads
 * eight numbers at once from those lists. */
#include "server/number/number_level.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#include "core/base/size.h"
#include "server/number/number.h"
#include "server/number/vector/number_stretch_bits.h"

enum {
  BLOCK = 64,
  BATCH = 2048,                 /* bytes */
  LIST = BATCH / 2 + 2 * BLOCK, /* a number with its comma has at least two bytes */
  PART = 64,                    /* numbers that are made ready together */
  NARROW = 14,   /* most characters: four numbers with signs and commas are 64 bytes */
  DIGITS = 16,   /* digits that are read at once */
  INTEGER = 0xff /* stands for the digits after the point if there is no point */
};

/* The numbers of a batch. Places are modulo 256: only differences of neighbors matter, which are
 * always less. */
struct number_stretch_batch_avx512 {
  uint8_t end[LIST];   /* [0] is the place before the batch, [1 + i] the one after number i */
  uint8_t point[LIST]; /* place of the point, or after the number if there is none */
  uint8_t first[LIST]; /* the number's first character */
  uint8_t start[LIST]; /* its place; filled only if spaced: else it is end[i] + 1 */
  size_t count;
  bool spaced; /* whether blanks are expected after commas */
  bool sparse; /* whether four numbers may have more than 255 bytes */
  bool cut;    /* whether the batch ended before the stretch */
  bool gap;    /* whether an unexpected blank follows the last comma */
};

/* --- first stage --- */

static inline __m512i load(const void *p) { return _mm512_loadu_si512(p); }

static inline __m512i each8(char c) { return _mm512_set1_epi8(c); }

/* A mask as bits for arithmetic. Without the barrier the compiler shifts some masks in mask
 * registers and moves them back and forth: 5 % of the time. */
static inline uint64_t bits_of(__mmask64 mask) {
  uint64_t bits = mask;
  __asm__("" : "+r"(bits));
  return bits;
}

static inline uint64_t bytes_equal(__m512i x, char c) {
  return bits_of(_mm512_cmpeq_epi8_mask(x, each8(c)));
}

/* Bits of ' ', '\n', '\t', '\r': the characters that a table by the lowest four bits returns. */
static inline uint64_t blanks_of(__m512i x) {
  const __m512i table = _mm512_broadcast_i32x4(
      _mm_setr_epi8(' ', 0, 0, 0, 0, 0, 0, 0, 0, '\t', '\n', 0, 0, '\r', 0, 0));
  return _mm512_cmpeq_epi8_mask(_mm512_shuffle_epi8(table, x), x);
}

static inline void store_places(uint8_t *list, uint64_t which, __m512i from) {
  __m512i packed = _mm512_maskz_compress_epi8(which, from);
  _mm256_storeu_si256((__m256i *)(void *)list, _mm512_castsi512_si256(packed));
}

static inline __attribute__((always_inline)) void
find_numbers(struct number_stretch_batch_avx512 *b, const char *text, const char *end,
             bool spaced) {
  __m512i place = _mm512_set_epi8(63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48,
                                  47, 46, 45, 44, 43, 42, 41, 40, 39, 38, 37, 36, 35, 34, 33, 32,
                                  31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16,
                                  15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  struct number_stretch_carry carry = number_stretch_carry_first();
  uint8_t *first = b->first, *start = b->start, *point = b->point, *ends = b->end + 1;
  bool sparse = false;
  b->spaced = spaced;
  b->cut = b->gap = false;
  b->end[0] = UINT8_MAX;
  for (const char *p = text;; p += BLOCK) {
    __m512i x = load(p);
    struct number_stretch_block k = {
        .digit = bits_of(_mm512_cmplt_epu8_mask(_mm512_sub_epi8(x, each8('0')), each8(10))),
        .zero = bytes_equal(x, '0'),
        .point = bytes_equal(x, '.'),
        .minus = bytes_equal(x, '-'),
        .comma = bytes_equal(x, ','),
        .blank = spaced ? blanks_of(x) : 0,
    };
    struct number_stretch_found f = number_stretch_find(&k, &carry, spaced);
    bool last = false;
    if (__builtin_expect(f.bad != 0 || end - p < BLOCK, 0)) {
      uint64_t left = (uint64_t)(end - p);
      if (left < BLOCK) f.bad |= UINT64_MAX << left;
      struct number_stretch_last stop = number_stretch_stop(&k, &f, p, left);
      k.comma = stop.end;
      b->cut = stop.cut;
      b->gap = stop.gap && !spaced;
      last = true;
    }
    /* The lists may get places after the last number, which are never read. */
    store_places(first, f.value, x);
    if (spaced) store_places(start, f.value, place);
    store_places(point, f.integer_end, place);
    store_places(ends, k.comma, place);
    size_t here = (size_t)__builtin_popcountll(k.comma);
    ends += here;
    if (last) break;
    first += __builtin_popcountll(f.value);
    if (spaced) start += __builtin_popcountll(f.value);
    point += __builtin_popcountll(f.integer_end);
    place = _mm512_add_epi8(place, each8(BLOCK));
    if (__builtin_expect(here < 2, 0)) {
      sparse = true;
      if (here == 0) break; /* a number longer than a block */
    }
  }
  b->count = (size_t)(ends - b->end) - 1;
  b->sparse = sparse;
  /* A group of eight that reads beyond the last number finds that number's end there. */
  memset(ends, ends[-1], 2 * sizeof(uint64_t));
  if (spaced) memset(b->start + b->count, ends[-1], 2 * sizeof(uint64_t));
}

static __attribute__((noinline)) void find_tight_numbers(struct number_stretch_batch_avx512 *b,
                                                         const char *p, const char *end) {
  find_numbers(b, p, end, false);
}

static __attribute__((noinline)) void find_spaced_numbers(struct number_stretch_batch_avx512 *b,
                                                          const char *p, const char *end) {
  find_numbers(b, p, end, true);
}

/* Whether a blank follows one of the first commas, or is at the start. */
static inline bool is_spaced(const char *text) {
  __m512i x = load(text);
  return (blanks_of(x) & (bytes_equal(x, ',') << 1 | 1)) != 0;
}

/* --- second stage --- */

/* Numbers of a batch, ready to be read. Digits are right-aligned in 16 bytes each: the lanes. */
struct number_stretch_part_avx512 {
  uint8_t end[PART];     /* counted from the start of the first of four; if wide, from the number's
                            first digit */
  uint8_t places[PART];  /* digits after the point, or INTEGER */
  uint16_t digit[PART];  /* which bytes of the lane hold a digit */
  uint16_t before[PART]; /* digits before the point, which are taken from one place further left */
  uint64_t negative;
  uint64_t cut; /* if wide: whether there are more digits than these */
  uint64_t odd; /* if wide: whether the number is to be read alone */
  bool wide;    /* whether each number is loaded by itself */
};

static inline void lanes(struct number_stretch_part_avx512 *t, __m512i digits, __m512i places) {
  const __m512i all = _mm512_set1_epi16(-1), width = _mm512_set1_epi16(DIGITS);
  for (int half = 0; half < 2; half++) {
    __m512i d = _mm512_cvtepu8_epi16(half ? _mm512_extracti64x4_epi64(digits, 1)
                                          : _mm512_castsi512_si256(digits));
    __m512i f = _mm512_cvtepu8_epi16(half ? _mm512_extracti64x4_epi64(places, 1)
                                          : _mm512_castsi512_si256(places));
    _mm512_storeu_si512(t->digit + 32 * half, _mm512_sllv_epi16(all, _mm512_sub_epi16(width, d)));
    _mm512_storeu_si512(t->before + 32 * half, _mm512_srlv_epi16(all, f));
  }
}

/* Prepares `count` numbers from number `i` on. */
static inline __attribute__((always_inline)) void
make_ready(struct number_stretch_part_avx512 *t, const struct number_stretch_batch_avx512 *b,
           size_t i, size_t count) {
  const __m512i one = each8(1), integer = each8((char)INTEGER);
  const uint64_t which = count < PART ? (UINT64_C(1) << count) - 1 : UINT64_MAX;
  __m512i start = b->spaced ? load(b->start + i) : _mm512_add_epi8(load(b->end + i), one);
  __m512i end = load(b->end + 1 + i), point = load(b->point + i);
  t->negative = bytes_equal(load(b->first + i), '-');
  __m512i digits_at = _mm512_mask_add_epi8(start, t->negative, start, one);
  __m512i length = _mm512_sub_epi8(end, digits_at);
  __m512i four =
      _mm512_shuffle_epi8(start, _mm512_broadcast_i32x4(_mm_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8,
                                                                      8, 8, 12, 12, 12, 12)));
  __m512i from_four = _mm512_sub_epi8(end, four);
  t->wide = b->sparse || (_mm512_cmpgt_epu8_mask(length, each8(NARROW)) & which) ||
            (b->spaced && (_mm512_cmpgt_epu8_mask(from_four, each8(BLOCK)) & which));
  __m512i kept = length;
  if (__builtin_expect(t->wide, 0)) {
    __m512i before = _mm512_sub_epi8(point, digits_at), most = each8(DIGITS);
    t->cut = _mm512_cmpgt_epu8_mask(length, most);
    t->odd = t->cut & _mm512_cmpge_epu8_mask(before, most);
    kept = _mm512_min_epu8(length, most);
    end = _mm512_add_epi8(digits_at, kept);
    from_four = kept;
  }
  _mm512_storeu_si512(t->end, from_four);
  __m512i places = _mm512_sub_epi8(_mm512_sub_epi8(end, point), one);
  __mmask64 has_point = _mm512_cmpneq_epi8_mask(places, integer);
  _mm512_storeu_si512(t->places, places);
  lanes(t, _mm512_mask_sub_epi8(kept, has_point, kept, one), places);
}

static inline uint64_t load8(const uint8_t *p) {
  uint64_t word;
  memcpy(&word, p, sizeof word);
  return word;
}

static inline __m512i spread(const uint8_t *p) { return _mm512_set1_epi64((long long)load8(p)); }

/* Four bytes out of eight, each spread over its lane. */
static inline __m512i over_lanes(__m512i eight, int first) {
  const __m512i lane = _mm512_inserti32x4(
      _mm512_inserti32x4(_mm512_inserti32x4(_mm512_setzero_si512(), _mm_set1_epi8(1), 1),
                         _mm_set1_epi8(2), 2),
      _mm_set1_epi8(3), 3);
  return _mm512_shuffle_epi8(eight, _mm512_add_epi8(lane, each8((char)first)));
}

/* The shuffle of the bytes of the text, for four numbers. */
static inline __m512i lane_index(const struct number_stretch_part_avx512 *t, size_t g, __m512i ends,
                                 int first) {
  const __m512i ramp = _mm512_broadcast_i32x4(
      _mm_setr_epi8(-16, -15, -14, -13, -12, -11, -10, -9, -8, -7, -6, -5, -4, -3, -2, -1));
  __m512i index = _mm512_add_epi8(over_lanes(ends, first), ramp);
  __mmask64 before = load8((const uint8_t *)(t->before + g + (size_t)first));
  return _mm512_mask_sub_epi8(index, before, index, each8(1));
}

/* Turns characters into digits, and joins these: 32 bits hold four digits. */
static inline __m512i lane_fours(const struct number_stretch_part_avx512 *t, size_t g, __m512i text,
                                 int first) {
  __mmask64 digit = load8((const uint8_t *)(t->digit + g + (size_t)first));
  __m512i x = _mm512_maskz_sub_epi8(digit, text, each8('0'));
  return _mm512_madd_epi16(_mm512_maddubs_epi16(x, _mm512_set1_epi16(1 << 8 | 10)),
                           _mm512_set1_epi32(1 << 16 | 100));
}

/* Eight integers of 16 digits, in the order 0 4 1 5 2 6 3 7. */
static inline __m512i integers(__m512i low, __m512i high) {
  __m512i eights =
      _mm512_madd_epi16(_mm512_packus_epi32(low, high), _mm512_set1_epi32(1 << 16 | 10000));
  return _mm512_add_epi64(_mm512_mul_epu32(eights, _mm512_set1_epi64(100 * 1000 * 1000)),
                          _mm512_srli_epi64(eights, 32));
}

/* Bytes in order to 64-bit numbers in that order. */
static inline __m512i in_order(__m512i eight) {
  const long long none = ~0xffLL;
  return _mm512_shuffle_epi8(eight, _mm512_setr_epi64(none, none | 4, none | 1, none | 5, none | 2,
                                                      none | 6, none | 3, none | 7));
}

static inline unsigned reorder_bits(unsigned bits) {
  return _pext_u32(bits, 0x55) | _pext_u32(bits, 0xaa) << 4;
}

static inline __m512d power_of(__m512i places) {
  const __m512d low = _mm512_setr_pd(1e-0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7);
  const __m512d high = _mm512_setr_pd(1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1);
  return _mm512_permutex2var_pd(low, places, high); /* INTEGER is 15 in the four bits that count */
}

/* Integers below 2^53 are exact in double, and their halves are rounded to even. */
static inline __mmask8 exact(__m512i m, __m512i places) {
  return _mm512_cmpeq_epi64_mask(places, _mm512_set1_epi64(INTEGER)) &
         _mm512_cmplt_epu64_mask(m, _mm512_set1_epi64(1LL << 53));
}

/* Reads eight numbers of up to NARROW characters, four each in the 64 bytes at `low` and `high`.
 * Returns the numbers, in that order, that are about halfway between two floats: the double is
 * within 3 units of its last place. */
static inline unsigned read_narrow(const struct number_stretch_part_avx512 *t, size_t g,
                                   const char *low, const char *high, __m256 *value) {
  __m512i ends = spread(t->end + g);
  __m512i a = _mm512_permutexvar_epi8(lane_index(t, g, ends, 0), load(low));
  __m512i b = _mm512_permutexvar_epi8(lane_index(t, g, ends, 4), load(high));
  __m512i m = integers(lane_fours(t, g, a, 0), lane_fours(t, g, b, 4));
  __m512i places = in_order(spread(t->places + g));
  __m512d x = _mm512_mul_pd(_mm512_cvtepi64_pd(m), power_of(places));
  *value = _mm512_cvtpd_ps(x);
  __m512i above = _mm512_sub_epi64(_mm512_castpd_si512(x), _mm512_set1_epi64((1 << 28) - 4));
  unsigned halfway =
      _mm512_cmplt_epu64_mask(_mm512_and_si512(above, _mm512_set1_epi64((1 << 29) - 1)),
                              _mm512_set1_epi64(9));
  if (__builtin_expect(halfway != 0, 0)) halfway &= (unsigned)~exact(m, places);
  return halfway;
}

static inline __m512i load_four(const char *const at[4]) {
  __m512i x = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(const void *)at[0]));
  x = _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)(const void *)at[1]), 1);
  x = _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)(const void *)at[2]), 2);
  return _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)(const void *)at[3]), 3);
}

/* Reads eight numbers of any length by their first 16 characters, at[i]: they lie between m and
 * m + 1. If both ends round to one float, that is the value; returns the others. */
static inline unsigned read_wide(const struct number_stretch_part_avx512 *t, size_t g,
                                 const char *const at[8], __m256 *value) {
  const __m512d below = _mm512_set1_pd(1 - 0x1p-51), above = _mm512_set1_pd(1 + 0x1p-51);
  __m512i ends = spread(t->end + g);
  __m512i a = _mm512_shuffle_epi8(load_four(at), lane_index(t, g, ends, 0));
  __m512i b = _mm512_shuffle_epi8(load_four(at + 4), lane_index(t, g, ends, 4));
  __m512i m = integers(lane_fours(t, g, a, 0), lane_fours(t, g, b, 4));
  unsigned cut = (unsigned)(t->cut >> g) & 0xff;
  __mmask8 more = (__mmask8)(_pdep_u32(cut, 0x55) | _pdep_u32(cut >> 4, 0xaa));
  __m512i most = _mm512_mask_add_epi64(m, more, m, _mm512_set1_epi64(1));
  __m512i places = in_order(spread(t->places + g));
  __m512d power = power_of(places), x = _mm512_mul_pd(_mm512_cvtepi64_pd(m), power);
  __m256 least = _mm512_cvtpd_ps(_mm512_mul_pd(x, below));
  __m256 greatest =
      _mm512_cvtpd_ps(_mm512_mul_pd(_mm512_mul_pd(_mm512_cvtepi64_pd(most), power), above));
  *value = _mm512_cvtpd_ps(x);
  unsigned open = _mm256_cmp_ps_mask(least, greatest, _CMP_NEQ_UQ);
  if (__builtin_expect(open != 0, 0)) open &= (unsigned)~(exact(m, places) & ~more);
  return reorder_bits(open) | ((unsigned)(t->odd >> g) & 0xff);
}

/* Finds the starts of eight numbers, signs included. */
static inline void find_eight(const struct number_stretch_batch_avx512 *b, size_t i, const char *p,
                              const char *at[8]) {
  const uint8_t *place = b->spaced ? b->start : b->end;
  at[0] = p;
#pragma GCC unroll 8
  for (size_t j = 1; j < 8; j++) at[j] = at[j - 1] + (uint8_t)(place[i + j] - place[i + j - 1]);
}

/* Reads the numbers `which`, of `count`, by number_read. Returns how many of the `count` precede
 * the first that fails. */
static __attribute__((noinline)) size_t read_alone(const struct number_stretch_batch_avx512 *b,
                                                   size_t i, const char *p, unsigned which,
                                                   size_t count, float *out) {
  const char *at[8], *end;
  find_eight(b, i, p, at);
  for (; which; which &= which - 1) {
    size_t j = (size_t)__builtin_ctz(which);
    if (j < count && number_read(at[j], &end, out + j) != NUMBER_OK) return j;
  }
  return count;
}

static inline void store_eight(const struct number_stretch_part_avx512 *t, size_t g, __m256 value,
                               size_t count, float *out) {
  const __m256i order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
  __m256i bits = _mm256_permutevar8x32_epi32(_mm256_castps_si256(value), order);
  bits =
      _mm256_mask_or_epi32(bits, (__mmask8)(t->negative >> g), bits, _mm256_set1_epi32(INT32_MIN));
  if (__builtin_expect(count >= 8, 1))
    _mm256_storeu_si256((__m256i *)(void *)out, bits);
  else
    _mm256_mask_storeu_epi32(out, (__mmask8)((1u << count) - 1), bits);
}

/* Reads a part of `count` numbers, from the batch's number i at p on; returns how many were read.
 * *next is the start of the number after them, or the place that find_numbers stored for it. */
static __attribute__((noinline)) size_t
read_narrow_part(const struct number_stretch_part_avx512 *t,
                 const struct number_stretch_batch_avx512 *b, size_t i, size_t count, const char *p,
                 float *out, const char **next) {
  const uint8_t *place = (b->spaced ? b->start : b->end) + i;
  for (size_t g = 0; g < count; g += 8) {
    const char *p4 = p + (uint8_t)(place[g + 4] - place[g]);
    __m256 value;
    unsigned halfway = read_narrow(t, g, p, p4, &value);
    store_eight(t, g, value, count - g, out + g);
    if (__builtin_expect(halfway != 0, 0)) {
      size_t here = size_min(count - g, 8);
      size_t read = read_alone(b, i + g, p, reorder_bits(halfway), here, out + g);
      if (read < here) count = g + read;
    }
    if (__builtin_expect(count - g < 8, 0)) {
      size_t four = g + (count - g >= 4 ? 4 : 0);
      *next = (four == g ? p : p4) + (uint8_t)(place[count] - place[four]);
      return count;
    }
    p = p4 + (uint8_t)(place[g + 8] - place[g + 4]);
  }
  *next = p;
  return count;
}

static __attribute__((noinline)) size_t read_wide_part(const struct number_stretch_part_avx512 *t,
                                                       const struct number_stretch_batch_avx512 *b,
                                                       size_t i, size_t count, const char *p,
                                                       float *out, const char **next) {
  const uint8_t *place = (b->spaced ? b->start : b->end) + i;
  for (size_t g = 0; g < count; g += 8) {
    const char *at[8], *digits[8];
    find_eight(b, i + g, p, at);
#pragma GCC unroll 8
    for (size_t j = 0; j < 8; j++) digits[j] = at[j] + (t->negative >> (g + j) & 1);
    __m256 value;
    unsigned open = read_wide(t, g, digits, &value);
    store_eight(t, g, value, count - g, out + g);
    if (__builtin_expect(open != 0, 0)) {
      size_t here = size_min(count - g, 8), read = read_alone(b, i + g, p, open, here, out + g);
      if (read < here) count = g + read;
    }
    if (count - g < 8) {
      *next = at[count - g];
      return count;
    }
    p = at[7] + (uint8_t)(place[g + 8] - place[g + 7]);
  }
  *next = p;
  return count;
}

/* Reads the first `count` numbers of the batch at `text`; returns how many, and where they end. */
static size_t read_numbers(const struct number_stretch_batch_avx512 *b, const char *text,
                           size_t count, float *out, const char **stop) {
  struct number_stretch_part_avx512 t;
  const char *p = text + (b->spaced ? b->start[0] : 0);
  size_t done = 0;
  while (done < count) {
    size_t here = size_min(count - done, PART), read;
    make_ready(&t, b, done, here);
    if (t.wide)
      read = read_wide_part(&t, b, done, here, p, out + done, &p);
    else
      read = read_narrow_part(&t, b, done, here, p, out + done, &p);
    done += read;
    if (read < here) break;
  }
  /* The end is found from the next number's place, or from the one that find_numbers stored. */
  uint8_t place = b->spaced ? b->start[done] : (uint8_t)(b->end[done] + 1);
  if (done > 0) *stop = p - (uint8_t)(place - b->end[done]);
  return done;
}

size_t number_stretch_avx512(const char *text, const char *end, float *out, size_t room,
                             const char **stop) {
  struct number_stretch_batch_avx512 b;
  size_t count = 0;
  *stop = text;
  for (const char *p = text; count < room && p < end; p = *stop + 1) {
    bool whole = end - p <= BATCH;
    const char *limit = whole ? end : p + BATCH;
    if (is_spaced(p))
      find_spaced_numbers(&b, p, limit);
    else
      find_tight_numbers(&b, p, limit);
    if (b.count == 0) break;
    size_t wanted = size_min(b.count, room - count);
    size_t taken = read_numbers(&b, p, wanted, out + count, stop);
    count += taken;
    if (taken < b.count || !(b.gap || (b.cut && !whole)) || **stop != ',') break;
  }
  return count;
}

#endif
