/* number_stretch_avx2: stretches of numbers with AVX2, BMI1 and BMI2.
 *
 * As with AVX-512, a batch of text passes two stages. Bitmaps of 64 characters become lists of
 * places, here bit by bit; then four numbers at a time are read from those lists. */
#include "server/number/number_level.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#include "core/base/size.h"
#include "server/number/number.h"
#include "server/number/vector/number_block_avx2.h"

enum {
  BLOCK = NUMBER_BLOCK_AVX2,
  BATCH = 4096,                 /* bytes */
  LIST = BATCH / 2 + 2 * BLOCK, /* a number with its comma has at least two bytes */
  PART = 64,                    /* numbers that are made ready together */
  PADDING = 16,                 /* list entries after the last that are read */
  DIGITS = 16,                  /* characters that are read at once */
  INTEGER = 16                  /* stands for the digits after the point if there is no point */
};

/* The numbers of a batch: places in it, modulo 2^16. */
struct number_stretch_batch_avx2 {
  uint16_t end[LIST];   /* [0] is the place before the batch, [1 + i] the one after number i */
  uint16_t point[LIST]; /* place of the point, or after the number if there is none */
  uint16_t
      start[LIST]; /* place of the first character; filled only if spaced, else it is end[i] + 1 */
  size_t count;
  bool spaced; /* whether blanks are expected after commas */
  bool cut;    /* whether the batch ended before the stretch */
  bool gap;    /* whether an unexpected blank follows the last comma */
};

/* --- first stage --- */

static inline __m256i load(const void *p) { return _mm256_loadu_si256((const __m256i *)p); }

static inline void store(void *p, __m256i x) { _mm256_storeu_si256((__m256i *)p, x); }

/* Lists the places of the bits, eight at a time; entries beyond the last are overwritten later. */
static inline uint16_t *store_places(uint16_t *list, uint64_t which, unsigned from) {
  size_t count = (size_t)__builtin_popcountll(which);
  for (size_t done = 0;;) {
#pragma GCC unroll 8
    for (size_t i = 0; i < 8; i++) {
      list[done + i] = (uint16_t)(from + (unsigned)_tzcnt_u64(which));
      which = _blsr_u64(which);
    }
    done += 8;
    if (__builtin_expect(done >= count, 1)) return list + count;
  }
}

static inline __attribute__((always_inline)) void
find_numbers(struct number_stretch_batch_avx2 *b, const char *text, const char *end, bool spaced) {
  struct number_stretch_carry carry = number_stretch_carry_first();
  uint16_t *start = b->start, *point = b->point, *ends = b->end + 1;
  b->spaced = spaced;
  b->cut = b->gap = false;
  b->end[0] = UINT16_MAX;
  for (const char *p = text;; p += BLOCK) {
    struct number_stretch_block k = number_block_of_avx2(p, true, spaced);
    struct number_stretch_found f = number_stretch_find(&k, &carry, spaced);
    bool last = false;
    if (__builtin_expect(f.bad != 0 || end - p < BLOCK, 0)) {
      uint64_t left = (uint64_t)(end - p);
      if (left < BLOCK) f.bad |= UINT64_MAX << left;
      struct number_stretch_last stop = number_stretch_stop(&k, &f, p, left);
      uint64_t before = (f.bad & -f.bad) << 1;
      k.comma = stop.end;
      f.integer_end &= before - 1;
      f.value &= before - 1;
      b->cut = stop.cut;
      b->gap = stop.gap && !spaced;
      last = true;
    }
    unsigned from = (unsigned)(p - text);
    uint16_t *before = ends;
    ends = store_places(ends, k.comma, from);
    point = store_places(point, f.integer_end, from);
    if (spaced) start = store_places(start, f.value, from);
    if (last || ends == before) break; /* the latter: a number longer than a block */
  }
  b->count = (size_t)(ends - b->end) - 1;
  /* A group that reads beyond the last number finds that number's end there. */
  for (size_t i = 0; i < PADDING; i++) ends[i] = ends[-1];
  for (size_t i = 0; spaced && i < PADDING; i++) b->start[b->count + i] = ends[-1];
}

static __attribute__((noinline)) void find_tight_numbers(struct number_stretch_batch_avx2 *b,
                                                         const char *p, const char *end) {
  find_numbers(b, p, end, false);
}

static __attribute__((noinline)) void find_spaced_numbers(struct number_stretch_batch_avx2 *b,
                                                          const char *p, const char *end) {
  find_numbers(b, p, end, true);
}

/* --- second stage --- */

/* Numbers of a batch, ready to be read. */
struct number_stretch_part_avx2 {
  uint16_t start[PART];
  uint16_t length[PART]; /* with the sign; DIGITS at most */
  uint16_t places[PART]; /* digits after the point among these characters, or INTEGER */
  uint16_t more[PART];   /* 1 if there are more characters, else 0 */
  bool wide;             /* whether some are longer */
};

/* Prepares `count` numbers from number `i` on. */
static inline void make_ready(struct number_stretch_part_avx2 *t,
                              const struct number_stretch_batch_avx2 *b, size_t i, size_t count) {
  const __m256i one = _mm256_set1_epi16(1), most = _mm256_set1_epi16(DIGITS);
  const __m256i integer = _mm256_set1_epi16(INTEGER);
  const __m256i ramp = _mm256_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  __m256i over = _mm256_setzero_si256();
  for (size_t j = 0; j < count; j += 16) {
    __m256i start =
        b->spaced ? load(b->start + i + j) : _mm256_add_epi16(load(b->end + i + j), one);
    __m256i end = load(b->end + 1 + i + j), point = load(b->point + i + j);
    __m256i length = _mm256_sub_epi16(end, start), kept = _mm256_min_epu16(length, most);
    __m256i cut = _mm256_subs_epu16(length, kept), kept_end = _mm256_add_epi16(start, kept);
    __m256i places = _mm256_sub_epi16(_mm256_sub_epi16(kept_end, point), one);
    /* Without the whole integer part no digit is read, which leaves the value undecided. */
    __m256i beyond = _mm256_cmpgt_epi16(_mm256_sub_epi16(point, kept_end), _mm256_setzero_si256());
    __m256i there = _mm256_cmpgt_epi16(_mm256_set1_epi16((short)(count - j)), ramp);
    over = _mm256_or_si256(over, _mm256_and_si256(cut, there));
    store(t->start + j, start);
    store(t->length + j, _mm256_andnot_si256(beyond, kept));
    store(t->places + j, _mm256_min_epu16(places, integer));
    store(t->more + j, _mm256_min_epu16(cut, one));
  }
  t->wide = !_mm256_testz_si256(over, over);
}

/* The shuffle that right-aligns the characters, with zeros before the first; characters before the
 * point are taken from one place further left. */
static inline __m128i arrangement(size_t length, size_t places) {
  static const int8_t align[2 * DIGITS] = {-16, -15, -14, -13, -12, -11, -10, -9, -8, -7, -6,
                                           -5,  -4,  -3,  -2,  -1,  0,   1,   2,  3,  4,  5,
                                           6,   7,   8,   9,   10,  11,  12,  13, 14, 15};
  static const int8_t squeeze[2 * DIGITS] = {-1, -1, -1, -1, -1, -1, -1, -1,
                                             -1, -1, -1, -1, -1, -1, -1, -1};
  return _mm_add_epi8(_mm_loadu_si128((const __m128i *)(const void *)(align + length)),
                      _mm_loadu_si128((const __m128i *)(const void *)(squeeze + places)));
}

static inline __m256i pair(__m128i low, __m128i high) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

static inline __m128i load16(const char *p) {
  return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* Two numbers' characters to groups of four digits. A sign is ignored. */
static inline __m256i fours(__m256i text, __m256i arranged) {
  __m256i digit = _mm256_shuffle_epi8(_mm256_sub_epi8(text, _mm256_set1_epi8('0')), arranged);
  digit = _mm256_max_epi8(digit, _mm256_setzero_si256());
  return _mm256_madd_epi16(_mm256_maddubs_epi16(digit, _mm256_set1_epi16(1 << 8 | 10)),
                           _mm256_set1_epi32(1 << 16 | 100));
}

static inline __m256d power_of(const uint16_t places[4]) {
  static const double power[] = {1e-0, 1e-1,  1e-2,  1e-3,  1e-4,  1e-5,  1e-6,  1e-7, 1e-8,
                                 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15, 1};
  return _mm256_setr_pd(power[places[0]], power[places[1]], power[places[2]], power[places[3]]);
}

struct number_stretch_four_avx2 {
  __m256d m;    /* the digits as an integer, which is rounded if it has 16 */
  __m128i sign; /* the sign bits */
};

static inline struct number_stretch_four_avx2 read_digits(const struct number_stretch_part_avx2 *t,
                                                          size_t g, const char *text) {
  __m128i x[4], how[4];
#pragma GCC unroll 4
  for (size_t j = 0; j < 4; j++) {
    x[j] = load16(text + t->start[g + j]);
    how[j] = arrangement(t->length[g + j], t->places[g + j]);
  }
  __m256i even = pair(x[0], x[2]), odd = pair(x[1], x[3]);
  __m256i packed =
      _mm256_packus_epi32(fours(even, pair(how[0], how[2])), fours(odd, pair(how[1], how[3])));
  __m256i eights = _mm256_madd_epi16(packed, _mm256_set1_epi32(1 << 16 | 10000));
  eights = _mm256_permutevar8x32_epi32(eights, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
  __m256d high = _mm256_cvtepi32_pd(_mm256_castsi256_si128(eights));
  __m256d low = _mm256_cvtepi32_pd(_mm256_extracti128_si256(eights, 1));
  __m256i first = _mm256_unpacklo_epi32(even, odd);
  __m128i character =
      _mm_unpacklo_epi64(_mm256_castsi256_si128(first), _mm256_extracti128_si256(first, 1));
  __m128i negative = _mm_cmpeq_epi32(_mm_slli_epi32(character, 24), _mm_set1_epi32('-' << 24));
  return (struct number_stretch_four_avx2){.m = _mm256_fmadd_pd(high, _mm256_set1_pd(1e8), low),
                                           .sign = _mm_slli_epi32(negative, 31)};
}

/* Reads four numbers; returns those that are about halfway between two floats: the double is within
 * 3 units of its last place. Integers are exact, and their ties round to even. */
static inline unsigned read_narrow(const struct number_stretch_part_avx2 *t, size_t g,
                                   const char *text, __m128 *value) {
  struct number_stretch_four_avx2 f = read_digits(t, g, text);
  __m256d x = _mm256_mul_pd(f.m, power_of(t->places + g));
  *value = _mm_or_ps(_mm256_cvtpd_ps(x), _mm_castsi128_ps(f.sign));
  __m256i above = _mm256_sub_epi64(_mm256_castpd_si256(x), _mm256_set1_epi64x((1 << 28) - 4));
  above = _mm256_and_si256(above, _mm256_set1_epi64x((1 << 29) - 1));
  __m256i halfway = _mm256_cmpgt_epi64(_mm256_set1_epi64x(9), above);
  unsigned which = (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(halfway));
  for (size_t j = 0; __builtin_expect(which != 0, 0) && j < 4; j++)
    if (t->places[g + j] == INTEGER && t->length[g + j] < DIGITS) which &= ~(1u << j);
  return which;
}

/* Reads four numbers of any length by their first characters: they lie between m and m + 1. If both
 * ends round to one float, that is the value; returns the others. */
static inline unsigned read_wide(const struct number_stretch_part_avx2 *t, size_t g,
                                 const char *text, __m128 *value) {
  struct number_stretch_four_avx2 f = read_digits(t, g, text);
  __m256d power = power_of(t->places + g);
  __m256d least = _mm256_mul_pd(_mm256_mul_pd(f.m, power), _mm256_set1_pd(1 - 0x1p-51));
  __m128i more = _mm_loadl_epi64((const __m128i *)(const void *)(t->more + g));
  __m256d above = _mm256_cvtepi32_pd(_mm_cvtepu16_epi32(more));
  __m256d most = _mm256_mul_pd(_mm256_add_pd(f.m, above), power);
  most = _mm256_mul_pd(most, _mm256_set1_pd(1 + 0x1p-51));
  __m128 low = _mm256_cvtpd_ps(least), high = _mm256_cvtpd_ps(most);
  *value = _mm_or_ps(low, _mm_castsi128_ps(f.sign));
  return (unsigned)_mm_movemask_ps(_mm_cmpneq_ps(low, high));
}

/* Reads the numbers `which`, of `count`, by number_read. Returns how many of the `count` precede
 * the first that fails. */
static __attribute__((noinline)) size_t read_alone(const struct number_stretch_part_avx2 *t,
                                                   size_t g, const char *text, unsigned which,
                                                   size_t count, float *out) {
  const char *end;
  for (; which; which &= which - 1) {
    size_t j = (size_t)__builtin_ctz(which);
    if (j < count && number_read(text + t->start[g + j], &end, out + j) != NUMBER_OK) return j;
  }
  return count;
}

/* Reads the `count` numbers of a part; returns how many were read. */
static inline __attribute__((always_inline)) size_t
read_part(const struct number_stretch_part_avx2 *t, const char *text, size_t count, float *out,
          bool wide) {
  for (size_t g = 0; g < count; g += 4) {
    __m128 value;
    unsigned alone = wide ? read_wide(t, g, text, &value) : read_narrow(t, g, text, &value);
    size_t here = size_min(count - g, 4);
    float four[4];
    _mm_storeu_ps(here == 4 ? out + g : four, value);
    if (here < 4) memcpy(out + g, four, here * sizeof *four);
    if (__builtin_expect(alone == 0, 1)) continue;
    size_t read = read_alone(t, g, text, alone, here, out + g);
    if (read < here) return g + read;
  }
  return count;
}

static __attribute__((noinline)) size_t read_narrow_part(const struct number_stretch_part_avx2 *t,
                                                         const char *text, size_t count,
                                                         float *out) {
  return read_part(t, text, count, out, false);
}

static __attribute__((noinline)) size_t read_wide_part(const struct number_stretch_part_avx2 *t,
                                                       const char *text, size_t count, float *out) {
  return read_part(t, text, count, out, true);
}

/* Reads the first `count` numbers of the batch at `text`; returns how many. */
static size_t read_numbers(const struct number_stretch_batch_avx2 *b, const char *text,
                           size_t count, float *out) {
  struct number_stretch_part_avx2 t;
  size_t done = 0;
  while (done < count) {
    size_t here = size_min(count - done, PART), read;
    make_ready(&t, b, done, here);
    if (t.wide)
      read = read_wide_part(&t, text, here, out + done);
    else
      read = read_narrow_part(&t, text, here, out + done);
    done += read;
    if (read < here) break;
  }
  return done;
}

size_t number_stretch_avx2(const char *text, const char *end, float *out, size_t room,
                           const char **stop) {
  struct number_stretch_batch_avx2 b;
  size_t count = 0;
  *stop = text;
  for (const char *p = text; count < room && p < end; p = *stop + 1) {
    bool whole = end - p <= BATCH;
    const char *limit = whole ? end : p + BATCH;
    if (number_block_is_spaced_avx2(p))
      find_spaced_numbers(&b, p, limit);
    else
      find_tight_numbers(&b, p, limit);
    if (b.count == 0) break;
    size_t taken = read_numbers(&b, p, size_min(b.count, room - count), out + count);
    count += taken;
    if (taken > 0) *stop = p + b.end[taken];
    if (taken < b.count || !(b.gap || (b.cut && !whole)) || **stop != ',') break;
  }
  return count;
}

#endif
