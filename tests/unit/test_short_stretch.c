/* test_short_stretch: stretches of integers and of flags are read as their values are one by one,
 * at every level of instructions, from memory with nothing before it and the margin behind it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/cpu.h"
#include "server/number/number.h"
#include "server/number/number_level.h"
#include "server/number/number_scan.h"
#include "server/text/flag.h"
#include "tests/support/fenced.h"
#include "tests/support/number_draw.h"
#include "tests/support/rounds.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

enum { DOCUMENTS = 200 * 1000 };

enum { MOST = FENCED_ROOM / 2, CANARY = 16 };

/* --- the two kinds of values, with one reader for each level, the last of them the chosen one ---
 */

enum { READERS = 3 };

typedef size_t read_function(const char *text, const char *end, int32_t *out, size_t room,
                             const char **stop);

/* Flags through the interface of integers, so that both are checked alike. */
#define READS_FLAGS(name, read)                                                                \
  static size_t name(const char *text, const char *end, int32_t *out, size_t room,             \
                     const char **stop) {                                                      \
    static uint8_t flag[MOST + CANARY];                                                        \
    memset(flag, 0xa5, (room < MOST ? room : MOST) + CANARY);                                  \
    size_t count = read(text, end, flag, room, stop);                                          \
    for (size_t i = 0; room < MOST && i < CANARY; i++) assert_int_equal(flag[room + i], 0xa5); \
    for (size_t i = 0; i < count; i++) out[i] = flag[i];                                       \
    return count;                                                                              \
  }
READS_FLAGS(flags_portable, flag_stretch_portable)
READS_FLAGS(flags_chosen, flag_read_stretch)
#if defined(__x86_64__)
READS_FLAGS(flags_avx2, flag_stretch_avx2)
#else
#define flags_avx2           flags_portable
#define number_integers_avx2 number_integers_portable
#endif

/* Reads the integer at `text` byte by byte; returns its length, 0: it is none of 32 bits that ends
 * before `end`. */
static size_t scan_integer(const char *text, const char *end, int32_t *value) {
  struct number_scan s;
  const char *p = text;
  enum number_scanned scanned = NUMBER_SCAN_TAKEN;
  number_scan_begin(&s);
  while (p < end && (scanned = number_scan_byte(&s, *p)) == NUMBER_SCAN_TAKEN) p++;
  if (p == end || scanned != NUMBER_SCAN_END || number_scan_integer(&s, value) != NUMBER_OK)
    return 0;
  return *p == ',' || *p == ']' || *p == '}' || is_blank(*p) ? (size_t)(p - text) : 0;
}

static size_t scan_flag(const char *text, const char *end, int32_t *value) {
  *value = *text == 't' || *text == '1';
  return text < end ? flag_length(text) : 0;
}

static char *write_integer(char *out, uint64_t x) {
  static const char *const odd[] = {"2147483647", "-2147483648", "2147483648",  "-2147483649",
                                    "-0",         "0",           "99999999999", "12345678",
                                    "-1234567",   "-12345678",   "123456789",   "1.0",
                                    "1e0",        "01",          "-",           "4294967296"};
  if (x % 64 == 0) return out + sprintf(out, "%s", odd[(x >> 8) % LENGTH(odd)]);
  const int64_t value = (int64_t)(x >> 32) >> (x >> 8) % 32;
  return out + sprintf(out, "%lld", (long long)(x & 32 ? -value / 2 : value / 2));
}

static char *write_flag(char *out, uint64_t x) {
  static const char *const word[] = {"0", "1", "true", "false"};
  static const char *const odd[] = {"tru", "True", "falsee", "2", "-0", "1.0", "10", "null"};
  if (x % 256 == 0) return out + sprintf(out, "%s", odd[(x >> 8) % LENGTH(odd)]);
  return out + sprintf(out, "%s", word[x >> 32 & 3]);
}

static const struct kind {
  read_function *read[READERS]; /* of each level; the last is chosen by the processor */
  size_t (*scan)(const char *text, const char *end, int32_t *value);
  char *(*write)(char *out, uint64_t x);
  const char *alphabet;
} INTEGERS = {{number_integers_portable, number_integers_avx2, number_read_integers},
              scan_integer,
              write_integer,
              "01-,] .e"},
  FLAGS = {{flags_portable, flags_avx2, flags_chosen}, scan_flag, write_flag, "01,] te"};
static const struct kind *const KINDS[] = {&INTEGERS, &FLAGS};

static bool reader_is_here(size_t reader) {
  return reader != CPU_AVX2 || cpu_text_level() >= CPU_AVX2;
}

/* --- what is right --- */

static struct truth {
  size_t count;
  int32_t value[MOST];
  size_t stop[MOST + 1]; /* [count]: the offset behind so many values */
} truth;
static struct fenced memory;

/* The longest stretch that may be read: one by one. */
static void find_truth(const struct kind *k, const char *text, size_t length) {
  const char *p = text, *end = text + length;
  truth.count = truth.stop[0] = 0;
  while (p < end) {
    const size_t used = k->scan(p, end, &truth.value[truth.count]);
    if (used == 0) return;
    p += used;
    truth.stop[++truth.count] = (size_t)(p - text);
    if (*p != ',') return;
    do p++;
    while (p < end && is_blank(*p));
  }
}

/* Every reader, at both ends of the memory; what it takes must be the truth. Returns how many
 * values the reader took that took fewest. */
static size_t check_readers(const struct kind *k, const char *text, size_t length, size_t room) {
  static int32_t out[MOST + CANARY];
  size_t fewest = SIZE_MAX;
  if (length > 0 && is_blank(*text)) return 0;
  for (size_t i = 0; i < 2 * READERS; i++) {
    const char *p = fenced_put(&memory, text, length, i % 2), *stop = NULL;
    if (!reader_is_here(i / 2)) continue;
    find_truth(k, p, length);
    const size_t most = room < truth.count ? room : truth.count;
    memset(out, 0xa5, (most + CANARY) * sizeof *out);
    const size_t count = k->read[i / 2](p, p + length, out, room, &stop);
    if (count > most || (size_t)(stop - p) != truth.stop[count] ||
        memcmp(out, truth.value, count * sizeof *out) != 0)
      fail_msg("reader %zu: %zu of %zu values, to %td: %.*s", i / 2, count, most, stop - p,
               (int)length, text);
    for (size_t j = 0; room <= truth.count && j < CANARY; j++)
      assert_int_equal((uint32_t)out[room + j], 0xa5a5a5a5);
    if (count < fewest) fewest = count;
  }
  return fewest;
}

/* --- tests --- */

static const char *const BETWEEN[] = {",", ", ", ",\n        ", ",\t\r\n"};

static const char *between(size_t style, uint64_t *seed) {
  return BETWEEN[style < LENGTH(BETWEEN) ? style : draw(seed) % LENGTH(BETWEEN)];
}

/* What is plain is read to its end by every reader, in whatever way it is written. */
static void test_reads_all_of_what_is_plain(void **state) {
  (void)state;
  static char text[4096 * 24];
  uint64_t seed = 1;
  for (size_t round = 0; round < rounds(400); round++) {
    const struct kind *k = KINDS[round % 2];
    const size_t count = 1 + draw(&seed) % (round < rounds(200) ? 40 : 4000), style = round / 2 % 6;
    char *out = text;
    for (size_t i = 0; i < count; i++) {
      if (i) out += sprintf(out, "%s", between(style, &seed));
      uint64_t x = draw(&seed) | 1;                             /* an odd one is never odd */
      if (style == 5 && k == &FLAGS) x &= ~(UINT64_C(2) << 32); /* digits alone */
      out = k->write(out, x);
    }
    *out++ = ']';
    assert_int_equal(check_readers(k, text, (size_t)(out - text), MOST), count);
    if (count > 1)
      assert_int_equal(check_readers(k, text, (size_t)(out - text), count - 1), count - 1);
  }
}

static size_t write_damaged(const struct kind *k, char *text, uint64_t *seed) {
  static const char byte[] = "0123456789.,-+eE[] \n\t\r}00.-,,\"x:\x80\xfftruefals";
  char *out = text;
  size_t style = draw(seed) % 8, values = 1 + draw(seed) % 60;
  for (size_t i = 0; i < values; i++) {
    if (i) out += sprintf(out, "%s", between(style < 4 ? 0 : style - 3, seed));
    out = k->write(out, draw(seed));
  }
  *out++ = "]}, \n"[draw(seed) % 5];
  return draw_damage(text, (size_t)(out - text), byte, seed);
}

static void test_takes_nothing_else_from_damaged_texts(void **state) {
  (void)state;
  static char text[8192];
  uint64_t seed = 2;
  for (size_t i = 0; i < rounds(DOCUMENTS); i++) {
    const struct kind *k = KINDS[i % 2];
    const size_t length = write_damaged(k, text, &seed);
    check_readers(k, text, length, draw(&seed) % 2 ? MOST : draw(&seed) % 48);
  }
}

/* Short forms of everything that the grammar allows and forbids, at every place of a block. */
static void test_judges_every_sequence_of_a_few_characters(void **state) {
  (void)state;
  enum { SIZE = 5 };
  for (size_t kind = 0; kind < LENGTH(KINDS); kind++) {
    const struct kind *k = KINDS[kind];
    const size_t letters = strlen(k->alphabet);
    size_t count = 1;
    for (size_t i = 0; i < SIZE; i++) count *= letters;
    for (size_t n = 0; n < count; n++) {
      char text[160];
      const size_t before = n * 7 % 65 * 2;
      for (size_t i = 0; i < before; i++) text[i] = i % 2 ? ',' : '1';
      char *out = text + before;
      for (size_t i = 0, rest = n; i < SIZE; i++, rest /= letters)
        *out++ = k->alphabet[rest % letters];
      check_readers(k, text, (size_t)(out - text), 1000);
      *out++ = ']';
      check_readers(k, text, (size_t)(out - text), 1000);
    }
  }
}

/* Blocks end within values, blanks and commas: every length, and gaps of all lengths. */
static void test_reads_texts_and_gaps_of_every_length(void **state) {
  (void)state;
  static char text[8192];
  uint64_t seed = 4;
  for (size_t round = 0; round < 12; round++) {
    const struct kind *k = KINDS[round % 2];
    char *out = text;
    while (out < text + 600) {
      out = k->write(out, draw(&seed) | 1);
      out += sprintf(out, "%s", between(round / 2, &seed));
    }
    for (size_t length = 0; length < 600; length++) check_readers(k, text, length, MOST);
  }
  for (size_t gap = 0; gap < 300; gap++) {
    const struct kind *k = KINDS[gap % 2];
    char *out = text;
    for (size_t i = 0; i < 12; i++) {
      out = k->write(out, draw(&seed) | 1);
      *out++ = ',';
      memset(out, ' ', gap * (i % 3));
      out += gap * (i % 3);
    }
    out += sprintf(out, "1]");
    check_readers(k, text, (size_t)(out - text), 100);
  }
}

static int set_up(void **state) {
  (void)state;
  fenced_init(&memory);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  fenced_done(&memory);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_reads_all_of_what_is_plain),
      cmocka_unit_test(test_takes_nothing_else_from_damaged_texts),
      cmocka_unit_test(test_judges_every_sequence_of_a_few_characters),
      cmocka_unit_test(test_reads_texts_and_gaps_of_every_length),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
