/* flag_avx2: stretches of flags with AVX2, BMI1 and BMI2.
 *
 * Bitmaps of 64 characters say where flags are, and whether they are well-formed. A block begins
 * with a flag: it is loaded after the last comma of the previous one. */
#include "server/text/flag.h"

#if defined(__x86_64__)

#include <stdbool.h>

#include "core/base/size.h"
#include "server/number/vector/number_block_avx2.h"

enum {
  BLOCK = NUMBER_BLOCK_AVX2,
  MOST = BLOCK / 2, /* flags of a block: one with its comma has at least two characters */
  TOGETHER = 8      /* flags that are stored together */
};

/* The flags of a block. */
struct flag_found_avx2 {
  uint64_t start; /* the first character of each; there may be others after the last end */
  uint64_t yes;   /* the first character of each true one */
  uint64_t end;   /* the comma or bracket after each */
};

/* Finds the flags before the first character that cannot be in a stretch: one of neither a flag nor
 * a separator, a flag not after a comma, a comma not after a flag, a blank not after a comma, or a
 * flag that begins beyond the `left` characters. */
static inline struct flag_found_avx2 find_flags(const char *p, size_t left) {
  const struct number_block_text_avx2 x = number_block_load_avx2(p);
#define IS(c) number_block_equal_avx2(x, c)
  const uint64_t e = IS('e'), one = IS('1'), digit = one | IS('0');
  const uint64_t yes = IS('t') & IS('r') >> 1 & IS('u') >> 2 & e >> 3;
  const uint64_t no = IS('f') & IS('a') >> 1 & IS('l') >> 2 & IS('s') >> 3 & e >> 4;
  const uint64_t comma = IS(','), bracket = IS(']'), blank = number_block_blanks_avx2(x);
#undef IS
  const uint64_t start = digit | yes | no, after = digit << 1 | yes << 4 | no << 5;
  const uint64_t four = yes | no, letters = four | four << 1 | four << 2 | four << 3 | no << 4;
  /* The addition carries through the blanks after a comma: the blanks that stay follow none. */
  const uint64_t gap = comma << 1 | 1, past = blank + (gap & blank);
  const uint64_t first = (gap | past) & ~blank;
  uint64_t bad =
      ~(digit | letters | comma | blank) | (start & ~first) | (comma & ~after) | (blank & past);
  if (left < BLOCK) bad |= start & UINT64_MAX << left;
  const uint64_t before = bad ? bad ^ (bad - 1) : UINT64_MAX; /* up to the first bad one */
  return (struct flag_found_avx2){start & first, one | yes, (comma | bracket) & after & before};
}

/* Stores the first `count` flags. */
static inline void store_flags(const struct flag_found_avx2 *f, size_t count, uint8_t *out) {
  uint64_t yes = _pext_u64(f->yes, f->start), flag[MOST / TOGETHER];
  for (size_t i = 0; i * TOGETHER < count; i++, yes >>= TOGETHER)
    flag[i] = _pdep_u64(yes, 0x0101010101010101);
  memcpy(out, flag, count);
}

size_t flag_stretch_avx2(const char *text, const char *end, uint8_t *out, size_t room,
                         const char **stop) {
  const char *p = text, *last = text;
  size_t count = 0;
  while (count < room && p < end) {
    const struct flag_found_avx2 f = find_flags(p, (size_t)(end - p));
    if (f.end == 0) break;
    uint64_t ends = f.end;
    const size_t found = (size_t)__builtin_popcountll(ends), here = size_min(found, room - count);
    for (size_t surplus = found - here; surplus > 0; surplus--)
      ends ^= UINT64_C(1) << (BLOCK - 1 - __builtin_clzll(ends));
    store_flags(&f, here, out + count);
    count += here;
    last = p + BLOCK - 1 - __builtin_clzll(ends);
    if (*last != ',') break;
    p = last + 1;
  }
  *stop = last;
  return count;
}

#endif
