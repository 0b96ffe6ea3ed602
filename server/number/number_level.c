/* number_level: chooses the readers of stretches and the writer of rows for this processor, and has
 * the readers without vector instructions. */
#include "server/number/number_level.h"

#include "core/base/cpu.h"
#include "server/number/number.h"
#include "server/number/number_fast.h"

/* Numbers: with fewer, vectors do not repay the cost of a stretch's start and end. */
enum { FEW = 6 };

size_t number_read_stretch(const char *text, const char *end, float *out, size_t room,
                           const char **stop) {
  switch (room < FEW ? CPU_PORTABLE : cpu_text_level()) {
#if defined(__x86_64__)
  case CPU_AVX512:
    return number_stretch_avx512(text, end, out, room, stop);
  case CPU_AVX2:
    return number_stretch_avx2(text, end, out, room, stop);
#endif
  default:
    return number_stretch_portable(text, end, out, room, stop);
  }
}

size_t number_read_integers(const char *text, const char *end, int32_t *out, size_t room,
                            const char **stop) {
#if defined(__x86_64__)
  if (!number_ends_soon(text) && cpu_text_level() >= CPU_AVX2)
    return number_integers_avx2(text, end, out, room, stop);
#endif
  return number_integers_portable(text, end, out, room, stop);
}

char *number_write_rows(char *out, const float *value, size_t rows, size_t width) {
  if (width == 0) {
    for (size_t i = 0; i < rows; i++) {
      if (i) *out++ = ',';
      *out++ = '[';
      *out++ = ']';
    }
    return out;
  }
  switch (cpu_text_level()) {
#if defined(__x86_64__)
  case CPU_AVX512:
    return number_rows_avx512(out, value, rows, width);
  case CPU_AVX2:
    return number_rows_avx2(out, value, rows, width);
#endif
  default:
    return number_rows_portable(out, value, rows, width);
  }
}

/* --- without vector instructions --- */

/* Reads the number of `length` characters (less than 16) at `text`, if it has one digit, a point
 * and further digits. False for all others, and if a double does not decide the rounding. */
static inline bool read_common_float(const char *text, unsigned length, float *value) {
  bool negative = *text == '-';
  const char *p = text + negative;
  uint64_t m = (unsigned char)(p[0] - '0');
  unsigned places = length - negative - 2;
  if (m > 9 || p[1] != '.' || places - 1 > 12) return false;
  unsigned n1 = places < 8 ? places : 8, n2 = places - n1;
  uint64_t first = number_align8(number_load8(p + 2), n1);
  uint64_t second = number_align8(number_load8(p + 10), n2);
  if (!number_all_digits8(first) || !number_all_digits8(second)) return false;
  m = m * number_power8(n1) + number_sum8(first);
  m = m * number_power8(n2) + number_sum8(second);
  return number_plain_float((int64_t)m, places, negative, value);
}

size_t number_stretch_portable(const char *text, const char *end, float *out, size_t room,
                               const char **stop) {
  size_t count = 0;
  const char *p = text, *last = text;
  while (count < room && p < end) {
    unsigned length = number_comma_distance(p);
    const char *next = p + length;
    if (length == 16 || !read_common_float(p, length, out + count)) {
      if (!number_read_fast(p, &next, out + count) || !number_is_end(*next)) break;
    }
    if (next >= end) break;
    count++;
    last = next;
    if (*next != ',') break;
    p = next + 1;
    while (is_blank(*p) && p < end) p++;
  }
  *stop = last;
  return count;
}

/* Reads the number of `length` characters at `text`, before a comma, if it is an integer of up to
 * eight digits. */
static inline bool read_common_integer(const char *text, unsigned length, int32_t *value) {
  const bool negative = *text == '-';
  const unsigned count = length - negative;
  if (count - 1 > 7) return false;
  const uint64_t digits = number_align8(number_load8(text + negative), count);
  if (!number_all_digits8(digits) || (count > 1 && text[negative] == '0')) return false;
  const int32_t magnitude = (int32_t)number_sum8(digits);
  *value = negative ? -magnitude : magnitude;
  return true;
}

/* Reads any integer; *next is its end. False: there is none, or it is not an int32_t. */
static bool read_any_integer(const char *text, int32_t *value, const char **next) {
  const bool negative = *text == '-';
  const char *digit = text + negative;
  unsigned count = number_digits8(number_load8(digit));
  if (count == 8) count += number_digits8(number_load8(digit + 8));
  if (count == 0 || count > NUMBER_INTEGER_DIGITS || (*digit == '0' && count > 1)) return false;
  *next = digit + count;
  if (!number_is_end(**next)) return false;
  return number_integer_sign(number_integer_of(digit, count), negative, value);
}

size_t number_integers_portable(const char *text, const char *end, int32_t *out, size_t room,
                                const char **stop) {
  const char *p = text, *last = text;
  size_t count = 0;
  while (count < room && p < end) {
    const unsigned length = number_comma_distance(p);
    const char *next = p + length;
    if (!read_common_integer(p, length, out + count) && !read_any_integer(p, out + count, &next))
      break;
    if (next >= end) break;
    count++;
    last = next;
    if (*next != ',') break;
    p = next + 1;
    while (p < end && is_blank(*p)) p++;
  }
  *stop = last;
  return count;
}
