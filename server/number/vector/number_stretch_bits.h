/* number_stretch_bits: the grammar of stretches on bitmaps of 64 characters; internal to
 * number_stretch_avx*.c.
 *
 * A bit stands for a character, the first in the lowest bit. A shift by one, with the highest bit
 * of the previous block shifted in, moves each character's property to the next. An addition finds
 * the ends of runs of digits: its carry passes through them. */
#ifndef SERVER_TEXT_NUMBER_STRETCH_BITS_H
#define SERVER_TEXT_NUMBER_STRETCH_BITS_H

#include <stdbool.h>
#include <stdint.h>

#include "server/number/number.h"

/* Classes of the characters of a block. */
struct number_stretch_block {
  uint64_t digit, zero, point, minus, comma;
  uint64_t blank; /* 0 unless blanks are expected */
};

/* State carried from a block to the first character of the next: each member is 0 or 1. */
struct number_stretch_carry {
  uint64_t digit, point, minus; /* whether the previous character is one */
  uint64_t zero;                /* whether the previous character is a number's leading zero */
  uint64_t gap;                 /* whether a comma precedes it, or a comma and blanks */
  uint64_t integer;             /* whether an integer part ends before it, or continues */
};

/* The first character is treated as if a comma preceded it. */
static inline struct number_stretch_carry number_stretch_carry_first(void) {
  return (struct number_stretch_carry){.gap = 1};
}

struct number_stretch_found {
  uint64_t value;       /* the first characters of numbers, their signs included */
  uint64_t integer_end; /* the characters after integer parts */
  uint64_t after_digit;
  /* Characters that no stretch has there. Bits above the lowest such bit are meaningless in all
   * members; a malformed number has one at its end at the latest. */
  uint64_t bad;
};

/* Finds the numbers of a block. Bad characters are those of neither numbers nor (if `blanks`)
 * blanks after a comma, a comma not after a digit, a sign not at a number's start, a point that
 * does not end an integer part, a digit after a leading zero. A digit after a blank is the start of
 * a number, or bad. */
static inline struct number_stretch_found number_stretch_find(const struct number_stretch_block *b,
                                                              struct number_stretch_carry *c,
                                                              bool blanks) {
  struct number_stretch_found f;
  uint64_t digit = b->digit, gap = b->comma << 1 | c->gap, stray = 0, blank = blanks ? b->blank : 0;
  c->gap = b->comma >> 63;
  if (blanks) {
    uint64_t past;
    c->gap |= __builtin_add_overflow(blank, gap & blank, &past);
    stray = blank & past;
    gap = (gap | past) & ~blank;
  }
  f.after_digit = digit << 1 | c->digit;
  c->digit = digit >> 63;
  uint64_t start = digit & ~(f.after_digit | b->point << 1 | c->point);
  c->point = b->point >> 63;
  uint64_t past;
  uint64_t on = __builtin_add_overflow(digit, start | c->integer, &past);
  c->integer = on;
  f.integer_end = past & ~digit;
  uint64_t zero = start & b->zero, after_zero = zero << 1 | c->zero;
  c->zero = zero >> 63;
  f.bad = ~(digit | b->comma | b->point | b->minus | blank) | (b->comma & ~f.after_digit) |
          (b->minus & ~gap) | (b->point & ~f.integer_end) | (after_zero & digit);
  f.value = gap;
  if (blanks) {
    f.bad |= stray | (start & ~(gap | b->minus << 1 | c->minus));
    f.value &= digit | b->minus;
    c->minus = b->minus >> 63;
  }
  return f;
}

/* The block in which a stretch stops, after at most `left` characters: the numbers that end before,
 * and the reason. */
struct number_stretch_last {
  uint64_t end; /* the characters after those numbers */
  bool cut;     /* whether `left` stops it */
  bool gap;     /* whether a blank after a comma stops it */
};

static inline struct number_stretch_last number_stretch_stop(const struct number_stretch_block *b,
                                                             const struct number_stretch_found *f,
                                                             const char *text, uint64_t left) {
  unsigned at = (unsigned)__builtin_ctzll(f->bad);
  uint64_t bit = UINT64_C(1) << at;
  struct number_stretch_last last = {.end = b->comma & (bit - 1), .cut = at >= left};
  if (last.cut) return last;
  char c = text[at];
  bool blank = is_blank(c);
  if ((f->after_digit & bit) && (blank || c == ']' || c == '}')) last.end |= bit;
  last.gap = blank && (f->value & bit);
  return last;
}

#endif
