/* number_integers: chooses who reads stretches of integers; and the reader without vector
 * instructions. */
#include "server/number/number_integers.h"

#include "core/base/cpu.h"
#include "server/number/blank.h"
#include "server/number/number.h"

size_t number_read_integers(const char *text, const char *end, int32_t *out, size_t room,
                            const char **stop) {
#if defined(__x86_64__)
  if (!number_ends_soon(text) && cpu_text_level() >= CPU_AVX2)
    return number_integers_avx2(text, end, out, room, stop);
#endif
  return number_integers_portable(text, end, out, room, stop);
}

/* Reads the number of `length` characters at `text`, before a comma, if it is a plain one of up to
 * eight digits. */
static inline bool read_common(const char *text, unsigned length, int32_t *value) {
  const bool negative = *text == '-';
  const unsigned count = length - negative;
  if (count - 1 > 7) return false;
  const uint64_t digits = number_align8(number_load8(text + negative), count);
  if (!number_all_digits8(digits) || (count > 1 && text[negative] == '0')) return false;
  const int32_t magnitude = (int32_t)number_sum8(digits);
  *value = negative ? -magnitude : magnitude;
  return true;
}

/* Reads any integer; *next is behind it. False: it is none, or not an int32_t. */
static bool read_any(const char *text, int32_t *value, const char **next) {
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
    if (!read_common(p, length, out + count) && !read_any(p, out + count, &next)) break;
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
