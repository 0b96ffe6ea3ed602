/* number_stretch_portable: stretches of numbers one by one, without vector instructions. */
#include "server/number/blank.h"
#include "server/number/number.h"
#include "server/number/number_fast.h"
#include "server/number/number_stretch.h"

/* Reads the number of `length` characters (less than 16) at `text`, if it has one digit, a point
 * and further digits. False for all others, and where a double does not decide the rounding. */
static inline bool read_common(const char *text, unsigned length, float *value) {
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
    if (length == 16 || !read_common(p, length, out + count)) {
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
