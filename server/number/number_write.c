/* number_write: float32 -> the shortest decimal that reads back as the same float32.
 *
 * A float c * 2^q is the middle of the interval of reals that read back as itself: half a unit of
 * 2^q to both sides. With k = floor(log10(2^q)), the interval has a multiple of 10^k and at most
 * one of 10^(k+1). The result is the latter if there is one, else the multiple of 10^k nearest to
 * the float.
 * (R. Giulietti, The Schubfach way to render doubles.)
 *
 * There are two algorithms. The fast one computes c * 2^q / 10^k once, as a fixed-point number
 * with a known error bound, and declines numbers that are this close to a boundary. The exact one
 * computes both ends of the interval as well. All arithmetic is in integers, so that a thread that
 * flushes denormals to zero writes them correctly. */
#include "server/number/number.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "server/number/number_bits.h"
#include "server/number/number_level.h"
#include "server/number/number_tables.h"

enum {
  FRACTION_BITS = 60, /* bits after the point of fixed-point numbers: 10 units need four more */
  TENS = 10 * 1000,
  HUNDRED_MILLIONS = 100 * 1000 * 1000,
};

static const uint64_t ONE = UINT64_C(1) << FRACTION_BITS;

/* A bound for the error of both fixed-point numbers of `shorten` together: the power of ten is too
 * large by less than 2^-63 of itself, the product is below 2^28, and some bits are cut off. */
static const uint64_t ERROR = UINT64_C(1) << (FRACTION_BITS - 34);

/* digits * 10^exponent */
struct number_write_decimal {
  uint32_t digits;
  int exponent;
};

/* --- the exact algorithm --- */

/* power * factor / 2^64; its last bit is set if the 32 bits after the point exceed 1. */
static uint32_t product_to_odd(uint64_t power, uint32_t factor) {
  unsigned __int128 product = (unsigned __int128)power * factor;
  uint32_t high = (uint32_t)(product >> 64), low = (uint32_t)(product >> 32);
  return high | (low > 1);
}

/* The shortest decimal of any float except zero. */
static struct number_write_decimal shorten_exactly(uint32_t magnitude) {
  uint32_t field = magnitude >> 23, stored = magnitude & NUMBER_STORED;
  uint32_t c = field ? stored | NUMBER_HIDDEN : stored;
  int q = (field ? (int)field : 1) - 150;
  bool even = c % 2 == 0;
  /* Floats below a power of two are twice as close. */
  bool narrow = stored == 0 && field > 1;
  int k = narrow ? number_log10_three_quarters_pow2(q) : number_log10_pow2(q);
  uint64_t power = number_power(-k);
  int shift = q + number_log2_pow10(-k) + 1;

  /* Four times the float and the ends of its interval, in units of 10^k. The ends belong to the
   * interval of an even c, to which ties are rounded. */
  uint32_t middle = product_to_odd(power, (4 * c) << shift);
  uint32_t least = product_to_odd(power, (4 * c - 2 + narrow) << shift) + !even;
  uint32_t most = product_to_odd(power, (4 * c + 2) << shift) - !even;

  uint32_t s = middle / 4;
  if (s >= 10) {
    uint32_t tens = s / 10;
    bool below = least <= 40 * tens, above = 40 * tens + 40 <= most;
    if (below != above) return (struct number_write_decimal){tens + above, k + 1};
  }
  bool below = least <= 4 * s, above = 4 * s + 4 <= most;
  if (below != above) return (struct number_write_decimal){s + above, k};
  uint32_t half = 4 * s + 2;
  bool up = middle > half || (middle == half && s % 2 == 1);
  return (struct number_write_decimal){s + up, k};
}

/* --- text --- */

/* The eight digits of v < 10^8 as bytes 0 to 9, the first in the lowest byte. */
static inline uint64_t split_digits(uint32_t v) {
  uint64_t fours = v / TENS | (uint64_t)(v % TENS) << 32;
  uint64_t hundreds = ((fours * 10486) >> 20) & 0x0000007f0000007f;
  uint64_t twos = hundreds | (fours - hundreds * 100) << 16;
  uint64_t tens = ((twos * 103) >> 10) & 0x000f000f000f000f;
  return tens | (twos - tens * 10) << 8;
}

static inline void store_digits(char *out, uint64_t digits) {
  digits |= 0x3030303030303030;
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  digits = __builtin_bswap64(digits);
#endif
  memcpy(out, &digits, sizeof digits);
}

static char *write_integer(char *out, uint64_t v) {
  if (v >= HUNDRED_MILLIONS) {
    out = write_integer(out, v / HUNDRED_MILLIONS);
    store_digits(out, split_digits(v % HUNDRED_MILLIONS));
    return out + 8;
  }
  uint64_t digits = split_digits((uint32_t)v);
  int zeros = digits ? __builtin_ctzll(digits) >> 3 : 7; /* leading ones; 0 keeps one digit */
  store_digits(out, digits >> 8 * zeros);
  return out + 8 - zeros;
}

/* `first` is the power of ten of the first digit. */
static inline char *write_exponent(char *out, int first) {
  int a = first < 0 ? -first : first;
  out[0] = 'e';
  out[1] = first < 0 ? '-' : '+';
  out[2] = (char)('0' + a / 10);
  out[3] = (char)('0' + a % 10);
  return out + 4;
}

/* Writes seven to nine digits, which may end in zeros, in the shorter of the two notations: the
 * fixed one if they are equally long. */
static inline char *write_decimal(char *out, struct number_write_decimal d, uint32_t magnitude) {
  static const uint32_t to_nine_digits[3] = {100, 10, 1};
  unsigned longer = (d.digits >= 10 * 1000 * 1000) + (d.digits >= HUNDRED_MILLIONS);
  int first = d.exponent + 6 + (int)longer; /* the power of ten of the first digit */
  uint32_t nine = d.digits * to_nine_digits[longer];
  uint32_t lead = nine / HUNDRED_MILLIONS;
  uint64_t tail = split_digits(nine % HUNDRED_MILLIONS);
  int count = tail ? 9 - (__builtin_clzll(tail) >> 3) : 1;
  int single = count == 1; /* without a dot, the scientific notation is shorter by one */
  if (first < -4 + single || first + 1 - count > 5 - single) {
    out[0] = (char)('0' + lead);
    out[1] = '.';
    store_digits(out + 2, tail);
    return write_exponent(out + count + !single, first);
  }
  if (magnitude >= NUMBER_TWO_TO_24) {
    /* An integer of up to 14 digits is written exactly: the shortest digits end before the dot,
     * and zeros in place of the others would be as long. */
    uint64_t c = (magnitude & NUMBER_STORED) | NUMBER_HIDDEN;
    return write_integer(out, c << ((int)(magnitude >> 23) - 150));
  }

  /* One sequence of stores for all places of the dot: leading zeros, all digits, then the digits
   * after the dot once more, one place further. */
  bool zeros = first < 0;
  int start = zeros ? 1 - first : 0, moved = zeros ? 0 : first;
  store_digits(out, 0);
  out[start] = (char)('0' + lead);
  store_digits(out + start + 1, tail);
  store_digits(out + start + 1 + (zeros ? 0 : first + 1), tail >> (8 * moved));
  out[moved + 1] = '.';
  if (zeros) return out + start + count;
  return out + (count > first + 1 ? count : first) + 1;
}

static __attribute__((noinline)) char *write_exactly(char *out, uint32_t magnitude) {
  if (magnitude == 0) {
    *out = '0';
    return out + 1;
  }
  struct number_write_decimal d = shorten_exactly(magnitude);
  for (; d.digits < 1000 * 1000; d.exponent--) d.digits *= 10;
  return write_decimal(out, d, magnitude);
}

/* --- the fast algorithm --- */

/* The shortest decimal of a normal float that is no power of two; false if it is too close to a
 * boundary. `digits` has 7 to 9 digits and may end in zeros. */
static inline bool shorten(uint32_t magnitude, struct number_write_decimal *d) {
  uint64_t c = (magnitude & NUMBER_STORED) | NUMBER_HIDDEN;
  int q = (int)(magnitude >> 23) - 150;
  int k = number_log10_pow2(q);
  uint64_t power = number_power(-k);
  int shift = q + number_log2_pow10(-k); /* 0 to 3 */

  /* The float in units of 10^k: 64 bits of fraction. */
  unsigned __int128 scaled = (unsigned __int128)power * (c << (shift + 1));
  uint32_t whole = (uint32_t)(scaled >> 64);
  uint64_t fraction = (uint64_t)scaled >> (64 - FRACTION_BITS);
  uint64_t half_interval = power >> (64 - FRACTION_BITS - shift);
  uint32_t tens = whole / 10;
  uint64_t last = (uint64_t)(whole - tens * 10) << FRACTION_BITS | fraction; /* below 10 * ONE */

  bool below = last < half_interval;
  bool above = last + half_interval > 10 * ONE;
  uint64_t to_below = last - half_interval, to_above = last + half_interval - 10 * ONE;
  uint64_t to_half = fraction - ONE / 2;
  bool doubtful = to_below + ERROR <= 2 * ERROR || to_above + ERROR <= 2 * ERROR ||
                  to_half + ERROR <= 2 * ERROR;
  if (doubtful) return false;
  uint32_t nearest = whole + (fraction > ONE / 2), ten = (tens + above) * 10;
  /* A mask instead of a branch, which would be unpredictable. */
  uint32_t use_ten = -(uint32_t)(below | above);
  *d = (struct number_write_decimal){(ten & use_ten) | (nearest & ~use_ten), k};
  return true;
}

static inline char *write_one(char *out, float value) {
  uint32_t magnitude;
  memcpy(&magnitude, &value, sizeof magnitude);
  *out = '-';
  out += magnitude >> 31;
  magnitude &= NUMBER_MAGNITUDE;
  struct number_write_decimal d;
  if ((magnitude & NUMBER_STORED) == 0 || magnitude < NUMBER_HIDDEN || !shorten(magnitude, &d))
    return write_exactly(out, magnitude);
  return write_decimal(out, d, magnitude);
}

char *number_write(char *out, float value) { return write_one(out, value); }

char *number_write_integer(char *out, int64_t value) {
  if (value < 0) *out++ = '-';
  return write_integer(out, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

/* Numbers are written inline here, in the file of write_one: 7 % less time. */
char *number_rows_portable(char *out, const float *value, size_t rows, size_t width) {
  for (size_t i = 0; i < rows; i++, value += width) {
    if (i) *out++ = ',';
    *out++ = '[';
    for (size_t j = 0; j < width; j++) {
      if (j) *out++ = ',';
      out = write_one(out, value[j]);
    }
    *out++ = ']';
  }
  return out;
}
