/* flag: chooses the reader of stretches of flags for this processor, and has the reader without
 * vector instructions, which handles eight characters in one 64-bit word (number_load8). */
#include "server/text/flag.h"

#include <stdbool.h>

#include "core/base/cpu.h"
#include "server/number/number.h"
#include "server/number/number_fast.h"

size_t flag_read_stretch(const char *text, const char *end, uint8_t *out, size_t room,
                         const char **stop) {
#if defined(__x86_64__)
  if (!number_ends_soon(text) && cpu_text_level() >= CPU_AVX2)
    return flag_stretch_avx2(text, end, out, room, stop);
#endif
  return flag_stretch_portable(text, end, out, room, stop);
}

/* A word of one-digit flags, `step` characters apart. */
struct flag_digits {
  char text[8];
  uint8_t digit[8]; /* 1 where a digit is */
  unsigned step, flags;
};

static const struct flag_digits tight = {"0,0,0,0", {1, 0, 1, 0, 1, 0, 1, 0}, 2, 4},
                                spaced = {"0, 0, 0", {1, 0, 0, 1, 0, 0, 1, 0}, 3, 3};

/* Reads the word at `text` except for its last character. False if it has other characters. */
static inline bool read_digits(const char *text, const struct flag_digits *of, uint8_t *out) {
  const uint64_t mask = UINT64_MAX >> 8, digit = number_load8((const char *)of->digit);
  const uint64_t one = (number_load8(text) ^ number_load8(of->text)) & mask;
  if (one & ~digit) return false;
  for (unsigned i = 0; i < of->flags; i++) out[i] = (uint8_t)(one >> 8 * of->step * i);
  return true;
}

static inline bool ends_flag(char c) { return c == ',' || c == ']'; }

/* Reads several one-digit flags; there is text and room for four. Returns how many. */
static inline size_t read_several(const char *p, uint8_t *out) {
  if (!ends_flag(p[7])) return 0;
  if (read_digits(p, &tight, out)) return tight.flags;
  return read_digits(p, &spaced, out) ? spaced.flags : 0;
}

size_t flag_stretch_portable(const char *text, const char *end, uint8_t *out, size_t room,
                             const char **stop) {
  const char *p = text, *last = text;
  size_t count = 0;
  while (count < room && p < end) {
    size_t flags = 0, length = 7;
    if (*p < 'f' && room - count >= 4 && end - p >= 8) flags = read_several(p, out + count);
    if (flags == 0) {
      flags = 1;
      length = flag_length(p);
      if (length == 0) break;
      out[count] = *p == 't' || *p == '1';
    }
    count += flags;
    last = p + length;
    if (*last != ',') break;
    p = last + 1;
    if (*p == ' ') p++; /* most texts have one blank or none */
    while (is_blank(*p) && p < end) p++;
  }
  *stop = last;
  return count;
}
