/* number_integers_avx2: stretches of integers with AVX2, BMI1 and BMI2.
 *
 * Bitmaps of 64 characters say where numbers begin and end, by the grammar of floats. Eight
 * numbers at a time are then read from the lists of these places. */
#include "server/number/number_level.h"

#if defined(__x86_64__)

#include "core/base/size.h"
#include "server/number/number.h"
#include "server/number/number_fast.h"
#include "server/number/vector/number_block_avx2.h"

enum {
  BLOCK = NUMBER_BLOCK_AVX2,
  GROUP = 8,                    /* numbers that are read together */
  LIST = BLOCK / 2 + 2 * GROUP, /* a number with its comma has at least two characters */
  NARROW = 8                    /* most characters of such a number, with its sign */
};

/* Places of the numbers that end in a block, counted from its first character. */
struct number_integers_list_avx2 {
  int32_t start[LIST]; /* the first number may begin in an earlier block */
  int32_t end[LIST];
};

/* State of reading a stretch. */
struct number_integers_place_avx2 {
  const char *start; /* start of a number that ends in a later block, or NULL */
  const char *last;  /* end of the last number read */
  int32_t *out;      /* place of the next number */
  size_t room;       /* how many numbers still have a place */
};

/* Lists the places of `count` bits or more; entries after the last bit are the first place. */
static inline void list_places(int32_t *list, uint64_t which, size_t count) {
  for (size_t done = 0; done < count; done += GROUP) {
#pragma GCC unroll 8
    for (size_t i = 0; i < GROUP; i++) {
      list[done + i] = (int32_t)_tzcnt_u64(which) & (BLOCK - 1);
      which = _blsr_u64(which);
    }
  }
}

static inline __m256i load(const void *p) { return _mm256_loadu_si256((const __m256i *)p); }

static inline __m256i load_four(const char *p, const int32_t start[4]) {
  return _mm256_setr_epi64x((int64_t)number_load8(p + start[0]),
                            (int64_t)number_load8(p + start[1]),
                            (int64_t)number_load8(p + start[2]),
                            (int64_t)number_load8(p + start[3]));
}

/* Four numbers to groups of four digits. The characters are right-aligned; a sign is ignored. */
static inline __m256i read_digits(__m256i text, __m128i length) {
  const __m256i bits = _mm256_slli_epi64(_mm256_cvtepi32_epi64(length), 3);
  __m256i digit = _mm256_sub_epi8(text, _mm256_set1_epi8('0'));
  digit = _mm256_max_epi8(digit, _mm256_setzero_si256());
  digit = _mm256_sllv_epi64(digit, _mm256_sub_epi64(_mm256_set1_epi64x(64), bits));
  return _mm256_madd_epi16(_mm256_maddubs_epi16(digit, _mm256_set1_epi16(1 << 8 | 10)),
                           _mm256_set1_epi32(1 << 16 | 100));
}

/* All ones where a number begins with a sign. */
static inline __m256i find_signs(__m256i text) {
  return _mm256_cmpeq_epi64(_mm256_and_si256(text, _mm256_set1_epi64x(0xff)),
                            _mm256_set1_epi64x('-'));
}

/* Reads `count` numbers, up to eight, of NARROW characters at most. */
static inline void read_narrow(const char *p, const int32_t *start, __m256i length, __m256i there,
                               int32_t *out) {
  const __m256i low = load_four(p, start), high = load_four(p, start + 4);
  const __m256i four = _mm256_packus_epi32(read_digits(low, _mm256_castsi256_si128(length)),
                                           read_digits(high, _mm256_extracti128_si256(length, 1)));
  const __m256i sign = _mm256_packs_epi32(find_signs(low), find_signs(high));
  __m256i value = _mm256_madd_epi16(four, _mm256_set1_epi32(1 << 16 | 10000));
  value = _mm256_sub_epi32(_mm256_xor_si256(value, sign), sign);
  _mm256_maskstore_epi32(out, there, _mm256_permute4x64_epi64(value, 0xd8));
}

/* Reads `count` numbers one by one; returns how many precede the first that is no int32_t. */
static __attribute__((noinline)) size_t read_wide(const char *p, const int32_t *start,
                                                  const int32_t *end, size_t count, int32_t *out) {
  for (size_t i = 0; i < count; i++) {
    const bool negative = p[start[i]] == '-';
    const int32_t digit = start[i] + negative, digits = end[i] - digit;
    if (digits > NUMBER_INTEGER_DIGITS) return i;
    const int64_t magnitude = number_integer_of(p + digit, (unsigned)digits);
    if (!number_integer_sign(magnitude, negative, out + i)) return i;
  }
  return count;
}

/* Reads `count` numbers of the list, up to eight, from number i on. Returns how many were read. */
static inline size_t read_group(const struct number_integers_list_avx2 *n, size_t i, size_t count,
                                const char *p, int32_t *out) {
  const __m256i ramp = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i there = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), ramp);
  const __m256i length = _mm256_sub_epi32(load(n->end + i), load(n->start + i));
  const __m256i wide = _mm256_cmpgt_epi32(length, _mm256_set1_epi32(NARROW));
  if (__builtin_expect(!_mm256_testz_si256(wide, there), 0))
    return read_wide(p, n->start + i, n->end + i, count, out);
  read_narrow(p, n->start + i, length, there, out);
  return count;
}

/* Reads the numbers of the block at p that end at the bits of `ends`; `starts` are the first
 * characters of numbers that begin in it. False if one is no int32_t or there is no room for it. */
static inline bool read_block(struct number_integers_place_avx2 *to, const char *p, uint64_t starts,
                              uint64_t ends) {
  struct number_integers_list_avx2 n;
  const size_t count = (size_t)__builtin_popcountll(ends), most = size_min(count, to->room);
  const size_t open = to->start != NULL, begun = open + (size_t)__builtin_popcountll(starts);
  if (open) n.start[0] = (int32_t)(to->start - p);
  list_places(n.start + open, starts, count + 1);
  list_places(n.end, ends, count);
  size_t done = 0;
  while (done < most) {
    const size_t here = size_min(most - done, GROUP);
    const size_t read = read_group(&n, done, here, p, to->out + done);
    done += read;
    if (read < here) break;
  }
  to->out += done;
  to->room -= done;
  if (done > 0) to->last = p + n.end[done - 1];
  to->start = begun > count ? p + n.start[count] : NULL;
  return done == count;
}

/* Reads from p on. Returns whether a blank after a comma ended it, with `spaced` not set. */
static inline __attribute__((always_inline)) bool
read_blocks(struct number_integers_place_avx2 *to, const char *p, const char *end, bool spaced) {
  struct number_stretch_carry carry = number_stretch_carry_first();
  to->start = NULL;
  for (;; p += BLOCK) {
    const struct number_stretch_block k = number_block_of_avx2(p, false, spaced);
    struct number_stretch_found f = number_stretch_find(&k, &carry, spaced);
    if (__builtin_expect(f.bad != 0 || end - p < BLOCK, 0)) {
      const uint64_t left = (uint64_t)(end - p);
      if (left < BLOCK) f.bad |= UINT64_MAX << left;
      const struct number_stretch_last last = number_stretch_stop(&k, &f, p, left);
      /* Numbers that begin after the last end are ignored: they may be beyond the margin. */
      if (last.end == 0) return last.gap && !spaced;
      f.value &= UINT64_MAX >> __builtin_clzll(last.end);
      return read_block(to, p, f.value, last.end) && last.gap && !spaced;
    }
    if (!read_block(to, p, f.value, k.comma)) return false;
    /* No int32_t is as long as a block. */
    if (k.comma == 0 && to->start) return false;
  }
}

static __attribute__((noinline)) bool read_tight(struct number_integers_place_avx2 *to,
                                                 const char *p, const char *end) {
  return read_blocks(to, p, end, false);
}

static __attribute__((noinline)) bool read_spaced(struct number_integers_place_avx2 *to,
                                                  const char *p, const char *end) {
  return read_blocks(to, p, end, true);
}

size_t number_integers_avx2(const char *text, const char *end, int32_t *out, size_t room,
                            const char **stop) {
  struct number_integers_place_avx2 to = {.last = text, .out = out, .room = room};
  const bool spaced = number_block_is_spaced_avx2(text);
  const bool gap = spaced ? read_spaced(&to, text, end) : read_tight(&to, text, end);
  if (gap && *to.last == ',') read_spaced(&to, to.last + 1, end);
  *stop = to.last;
  return (size_t)(to.out - out);
}

#endif
