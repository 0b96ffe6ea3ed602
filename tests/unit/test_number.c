/* test_number: numbers are read as strtof reads them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/number/number.h"
#include "server/number/number_scan.h"
#include "server/number/number_tables.h"
#include "tests/support/number_draw.h"
#include "tests/support/rounds.h"

#ifdef __SSE__
#include <xmmintrin.h>
#endif

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

enum { SAMPLES = 400 * 1000 };

enum { TEXT_ROOM = 8192 };

static enum number_verdict scan(const char *text, size_t *length, float *value) {
  struct number_scan s;
  enum number_scanned last;
  number_scan_begin(&s);
  *length = 0;
  while ((last = number_scan_byte(&s, text[*length])) == NUMBER_SCAN_TAKEN) ++*length;
  return last == NUMBER_SCAN_MALFORMED ? NUMBER_MALFORMED : number_scan_float(&s, value);
}

/* Both readers against strtof. `text` has room for the margin. */
static void check_read(const char *text) {
  size_t length = strlen(text), scanned_length;
  const char *end;
  float value = 7, scanned = 7, expected = strtof(text, NULL);
  bool large = (bits_of(expected) & 0x7fffffff) == 0x7f800000;
  enum number_verdict wanted = large ? NUMBER_TOO_LARGE : NUMBER_OK;
  enum number_verdict verdict = number_read(text, &end, &value);
  enum number_verdict scanned_verdict = scan(text, &scanned_length, &scanned);
  bool fine = verdict == wanted && scanned_verdict == wanted && end == text + length &&
              scanned_length == length;
  if (fine && !large)
    fine = bits_of(value) == bits_of(expected) && bits_of(scanned) == bits_of(expected);
  if (!fine)
    fail_msg("%s: verdicts %d and %d, values %a and %a, not %a", text, (int)verdict,
             (int)scanned_verdict, (double)value, (double)scanned, (double)expected);
}

/* --- powers of ten --- */

/* Little-endian integers, wide enough for 10^65 * 2^64. */
struct wide {
  uint32_t word[10];
};

static struct wide wide_times(struct wide a, uint32_t factor) {
  uint64_t carry = 0;
  for (size_t i = 0; i < LENGTH(a.word); i++) {
    carry += (uint64_t)a.word[i] * factor;
    a.word[i] = (uint32_t)carry;
    carry >>= 32;
  }
  assert_int_equal(carry, 0);
  return a;
}

static struct wide wide_power(struct wide a, uint32_t base, int exponent) {
  while (exponent-- > 0) a = wide_times(a, base);
  return a;
}

static int wide_compare(struct wide a, struct wide b) {
  for (size_t i = LENGTH(a.word); i-- > 0;)
    if (a.word[i] != b.word[i]) return a.word[i] < b.word[i] ? -1 : 1;
  return 0;
}

static struct wide wide_of(uint64_t v) { return (struct wide){{(uint32_t)v, (uint32_t)(v >> 32)}}; }

/* Compares v * 2^binary with 10^k. */
static int compare_power(uint64_t v, int binary, int k) {
  struct wide left = wide_power(wide_of(v), 10, k < 0 ? -k : 0);
  struct wide right = wide_power(wide_of(1), 10, k > 0 ? k : 0);
  left = wide_power(left, 2, binary > 0 ? binary : 0);
  right = wide_power(right, 2, binary < 0 ? -binary : 0);
  return wide_compare(left, right);
}

static void test_every_power_of_ten_is_the_least_that_is_not_too_small(void **state) {
  (void)state;
  for (int k = NUMBER_POWER_MIN; k <= NUMBER_POWER_MAX; k++) {
    uint64_t power = number_power(k);
    int binary = number_log2_pow10(k) - 63;
    assert_true(power >> 63);
    assert_int_equal(compare_power(power, binary, k), number_power_exact(k) ? 0 : 1);
    assert_int_equal(compare_power(power - 1, binary, k), -1);
  }
}

/* --- reading --- */

static void test_reads_the_hard_cases_as_strtof(void **state) {
  (void)state;
  static const char *const text[] = {"0",
                                     "-0",
                                     "0.0",
                                     "-0.0e5",
                                     "0e0",
                                     "0E+999999999999999999999",
                                     "-0e-1",
                                     "1",
                                     "-1",
                                     "10",
                                     "1e0",
                                     "1E1",
                                     "1e+1",
                                     "1e-1",
                                     "1e01",
                                     "1.0e00000000000000000001",
                                     "0.1",
                                     "0.10",
                                     "123.456e-7",
                                     "1e-999",
                                     "-1e-999",
                                     "1e999",
                                     "-1e999",
                                     "1e39",
                                     "-1e39",
                                     "1e38",
                                     "3.4028235e38",
                                     "340282346638528859811704183484516925440",
                                     "340282356779733661637539395458142568447",
                                     "340282356779733661637539395458142568448",
                                     "340282356779733661637539395458142568449",
                                     "3.4028235677973366e38",
                                     "3.4028235677973367e38",
                                     "1e99999999999999999999999999",
                                     "1e-99999999999999999999999999",
                                     "1.17549435e-38",
                                     "1.1754942e-38",
                                     "1.1754943e-38",
                                     "1e-45",
                                     "7.006492321624085e-46",
                                     "7."
                                     "0064923216240853546186479164495806564013097093825788587853414"
                                     "1944895541342930300743319094181060791015625e-46",
                                     "7."
                                     "0064923216240853546186479164495806564013097093825788587853414"
                                     "1944895541342930300743319094181060791015624e-46",
                                     "7."
                                     "0064923216240853546186479164495806564013097093825788587853414"
                                     "1944895541342930300743319094181060791015626e-46",
                                     "7e-46",
                                     "7.1e-46",
                                     "1.4e-45",
                                     "2.1e-45",
                                     "2.2e-45",
                                     "16777216",
                                     "16777217",
                                     "16777218",
                                     "16777219",
                                     "16777217.0",
                                     "16777217.00000000000000000000000000000001",
                                     "16777216.999999999999",
                                     "33554433",
                                     "33554434",
                                     "33554435",
                                     "9007199254740992",
                                     "9007199254740993",
                                     "9007199791611904",
                                     "9007199791611905",
                                     "9007199791611903",
                                     "9223372036854775807",
                                     "9223372036854775808",
                                     "9999999999999999999",
                                     "18446744073709551615",
                                     "18446744073709551616",
                                     "99999999999999999999",
                                     "0.12345678901234567",
                                     "0.051234567890123456789",
                                     "0.000000000000000000000000000001",
                                     "1.00000005960464477539062500",
                                     "1.00000005960464477539062501",
                                     "1.00000005960464477539062499",
                                     "1.000000059604644775390625",
                                     "1234567890123456789.5",
                                     "0.1234567890123456789012345678901234567890",
                                     "12345678.12345678",
                                     "123456789.123456789",
                                     "1234567890.1234567890",
                                     "8.5",
                                     "0.50",
                                     "100000000",
                                     "1e10"};
  for (size_t i = 0; i < LENGTH(text); i++) {
    char padded[512 + NUMBER_READ_MARGIN] = {0};
    strcpy(padded, text[i]);
    check_read(padded);
    for (const char *behind = ",] \n}x"; *behind; behind++) {
      size_t length = strlen(text[i]);
      const char *end;
      float value;
      padded[length] = *behind;
      enum number_verdict verdict = number_read(padded, &end, &value);
      assert_true(verdict != NUMBER_MALFORMED);
      assert_ptr_equal(end, padded + length);
      padded[length] = '\0';
    }
  }
}

static void test_refuses_what_json_does_not_know(void **state) {
  (void)state;
  static const struct {
    const char *text;
    size_t at; /* the offending byte */
  } bad[] = {{"-", 1},
             {"--1", 1},
             {"-a", 1},
             {"01", 1},
             {"-01", 2},
             {"00", 1},
             {"1.", 2},
             {"1.,", 2},
             {"1.e5", 2},
             {"-1.x", 3},
             {"1e", 2},
             {"1e+", 3},
             {"1e-", 3},
             {"1e+-1", 3},
             {"1E.5", 2},
             {"-.5", 1},
             {"-Inf", 1},
             {"0.", 2},
             {"0e", 2},
             {"1.5e", 4},
             {"12345678901234567890.", 21},
             {"0.1234567890123456789e", 22}};
  for (size_t i = 0; i < LENGTH(bad); i++) {
    char padded[64 + NUMBER_READ_MARGIN] = {0};
    strcpy(padded, bad[i].text);
    const char *end;
    float value;
    size_t scanned;
    assert_int_equal(number_read(padded, &end, &value), NUMBER_MALFORMED);
    assert_int_equal(end - padded, bad[i].at);
    assert_int_equal(scan(padded, &scanned, &value), NUMBER_MALFORMED);
    assert_int_equal(scanned, bad[i].at);
  }
}

/* A number ends before what is no part of it, even if that makes no sense in JSON. */
static void test_stops_behind_the_number(void **state) {
  (void)state;
  static const struct {
    const char *text;
    size_t length;
  } good[] = {{"0x10", 1},  {"1-2", 1},   {"1+2", 1}, {"1.5.5", 3},
              {"1e5.5", 3}, {"1e5e5", 3}, {"-0-", 2}};
  for (size_t i = 0; i < LENGTH(good); i++) {
    char padded[64 + NUMBER_READ_MARGIN] = {0};
    strcpy(padded, good[i].text);
    const char *end;
    float value;
    assert_int_equal(number_read(padded, &end, &value), NUMBER_OK);
    assert_int_equal(end - padded, good[i].length);
  }
}

static void test_reads_thousands_of_digits(void **state) {
  (void)state;
  static char text[3 * TEXT_ROOM];
  uint64_t seed = 1;
  for (size_t digits = 30; digits <= 4000; digits += digits < 200 ? 1 : 271) {
    char *out = text;
    for (size_t i = 0; i < digits; i++) *out++ = (char)('1' + draw(&seed) % 9);
    sprintf(out, "e-%zu", digits + 20);
    check_read(text);
    memmove(text + 2, text, digits);
    memcpy(text, "0.", 2);
    text[digits + 2] = '\0';
    check_read(text);
    /* A tie, and what a single digit far behind it makes of it. */
    out = text + sprintf(text, "16777217.");
    memset(out, '0', digits);
    out[digits] = '\0';
    check_read(text);
    out[digits - 1] = '1';
    check_read(text);
    /* Many zeros in front, taken back by the exponent. */
    out = text + sprintf(text, "0.");
    memset(out, '0', digits);
    sprintf(out + digits, "123456789e%zu", digits + 3);
    check_read(text);
    out = text + sprintf(text, "5");
    memset(out, '0', digits);
    sprintf(out + digits, "e-%zu", digits + 3);
    check_read(text);
  }
}

static void test_reads_ties_and_their_neighbours(void **state) {
  (void)state;
  static char text[TEXT_ROOM];
  uint64_t seed = 2;
  for (size_t i = 0; i < rounds(SAMPLES / 8); i++) {
    float value = i % 2 ? draw_float(&seed) : draw_common(&seed);
    float next = float_of(bits_of(value) + 1);
    if (i % 4 == 3) { /* among denormals */
      value = float_of(bits_of(value) & 0x80ffffff);
      next = float_of(bits_of(value) + 1);
    }
    double middle = ((double)value + (double)next) / 2;
    uint64_t x = draw(&seed);
    if (i % 3 == 0) sprintf(text, "%.150e", middle);
    if (i % 3 == 1) sprintf(text, "%.*e", (int)(8 + x % 30), middle);
    if (i % 3 == 2) sprintf(text, "%.*g", (int)(8 + x % 12), middle);
    check_read(text);
  }
}

/* digits * 10^exponent in three notations, and with zeros behind. */
static void check_notations(const char *digits, int exponent) {
  static char text[TEXT_ROOM], nought[200];
  memset(nought, '0', sizeof nought - 1);
  int count = (int)strlen(digits), zeros = -exponent - count;
  sprintf(text, "%se%d", digits, exponent);
  check_read(text);
  sprintf(text, "-%.1s.%s0E%+d", digits, digits + 1, exponent + count - 1);
  check_read(text);
  sprintf(text, "%s00000000000000000e%d", digits, exponent - 17);
  check_read(text);
  if (zeros >= 0)
    sprintf(text, "0.%.*s%s", zeros, nought, digits);
  else if (exponent >= 0)
    sprintf(text, "%s%.*s.0", digits, exponent, nought);
  else
    sprintf(text, "%.*s.%s", count + exponent, digits, digits + count + exponent);
  check_read(text);
}

/* An exact tie, and one more or less at a digit as far behind as can still be compared at once, and
 * further. */
static void check_around_tie(double middle, size_t place) {
  char text[512], digits[512];
  sprintf(text, "%.160e", middle);
  int exponent = atoi(strchr(text, 'e') + 1);
  size_t count = 0;
  for (const char *p = text; *p != 'e'; p++)
    if (*p != '.') digits[count++] = *p;
  while (count > 1 && digits[count - 1] == '0') count--;
  digits[count] = '\0';
  check_notations(digits, exponent - (int)count + 1);
  for (; count < place; count++) digits[count] = '0';
  digits[place] = '\0'; /* a tie that has more digits is cut */
  exponent -= (int)place - 1;
  check_notations(digits, exponent);
  size_t last = place - 1;
  char was = digits[last];
  digits[last] = was == '9' ? '8' : (char)(was + 1);
  check_notations(digits, exponent);
  digits[last] = was;
  for (; last > 0 && digits[last] == '0'; last--) digits[last] = '9';
  digits[last]--;
  if (digits[0] != '0') check_notations(digits, exponent);
}

static void test_decides_ties_at_any_digit(void **state) {
  (void)state;
  uint64_t seed = 7;
  for (size_t i = 0; i < rounds(SAMPLES / 40); i++) {
    uint32_t bits = bits_of(i % 2 ? draw_float(&seed) : draw_common(&seed)) & 0x7fffffff;
    if (i % 8 == 3) bits &= 0x00ffffff;                                        /* among denormals */
    if (i % 8 == 5) bits = (bits & 0x7fffff) | (uint32_t)(0x60 + i % 9) << 23; /* 40 digits */
    if (i % 8 == 7) bits = (bits & 0x7fffff) | (uint32_t)(0xfe - i % 5) << 23; /* the largest */
    if (bits >= 0x7f7fffff) continue;
    double middle = ((double)float_of(bits) + (double)float_of(bits + 1)) / 2;
    check_around_tie(middle, i % 3 ? 40 + draw(&seed) % 21 : 10 + draw(&seed) % 120);
  }
}

static void test_reads_integers_around_the_last_exact_ones(void **state) {
  (void)state;
  char text[32 + NUMBER_READ_MARGIN] = {0};
  uint64_t seed = 3;
  for (size_t i = 0; i < rounds(SAMPLES / 4); i++) {
    uint64_t x = draw(&seed);
    uint64_t base = x % 3 == 0 ? (uint64_t)1 << 24 : x % 3 == 1 ? (uint64_t)1 << 25 : x >> (x % 64);
    sprintf(text, "%llu", (unsigned long long)(base + (x >> 40)));
    check_read(text);
  }
}

/* Digits with a dot and an exponent anywhere. */
static void draw_decimal(char *out, uint64_t *seed) {
  uint64_t x = draw(seed), y = draw(seed);
  if (x & 1) *out++ = '-';
  size_t before = x >> 1 & 1 ? 1 : 1 + (x >> 2) % (x >> 8 & 3 ? 5 : 24);
  for (size_t i = 0; i < before; i++) *out++ = (char)('0' + draw(seed) % 10);
  char *first = out - before;
  if (before > 1 && *first == '0') *first = '1';
  if (x >> 10 & 3) {
    size_t behind = 1 + (x >> 16) % (x >> 22 & 3 ? 9 : 26);
    *out++ = '.';
    for (size_t i = 0; i < behind; i++) *out++ = (char)('0' + (x >> 12 & 7 ? draw(seed) % 10 : 0));
  }
  if ((y & 3) == 0) out += sprintf(out, "e%d", (int)(y >> 8) % 60);
  *out = '\0';
}

static void test_reads_random_decimals(void **state) {
  (void)state;
  char text[256];
  uint64_t seed = 4;
  memset(text, 0, sizeof text);
  for (size_t i = 0; i < rounds(SAMPLES); i++) {
    draw_decimal(text, &seed);
    check_read(text);
  }
}

static void test_reads_doubles_as_languages_write_them(void **state) {
  (void)state;
  char text[64 + NUMBER_READ_MARGIN] = {0};
  uint64_t seed = 5;
  for (size_t i = 0; i < rounds(SAMPLES / 2); i++) {
    double noise = 1 + (double)(draw(&seed) >> 40) * 0x1p-50;
    sprintf(text, "%.*g", i % 2 ? 17 : 16, (double)draw_common(&seed) * noise);
    check_read(text);
  }
}

/* Workers may flush denormals to zero; what is read must not change with that. */
static void test_does_not_depend_on_the_floating_point_mode(void **state) {
  (void)state;
#ifdef __SSE__
  const char *end;
  float value;
  unsigned mode = _mm_getcsr();
  _mm_setcsr(mode | 0x8040); /* flush results, take denormals as zero */
  enum number_verdict verdict =
      number_read("2.5e-40,                                                "
                  "                                  ",
                  &end, &value);
  _mm_setcsr(mode);
  assert_int_equal(verdict, NUMBER_OK);
  assert_int_equal(bits_of(value), bits_of(2.5e-40f));
#else
  skip();
#endif
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_power_of_ten_is_the_least_that_is_not_too_small),
      cmocka_unit_test(test_reads_the_hard_cases_as_strtof),
      cmocka_unit_test(test_refuses_what_json_does_not_know),
      cmocka_unit_test(test_stops_behind_the_number),
      cmocka_unit_test(test_reads_thousands_of_digits),
      cmocka_unit_test(test_reads_ties_and_their_neighbours),
      cmocka_unit_test(test_decides_ties_at_any_digit),
      cmocka_unit_test(test_reads_integers_around_the_last_exact_ones),
      cmocka_unit_test(test_reads_random_decimals),
      cmocka_unit_test(test_reads_doubles_as_languages_write_them),
      cmocka_unit_test(test_does_not_depend_on_the_floating_point_mode),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
