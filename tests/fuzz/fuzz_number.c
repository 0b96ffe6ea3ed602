/* fuzz_number: numbers and flags read, and numbers written, by every level of this processor's
 * instructions, held against the C library.
 *
 * The first byte says what follows: `r` the text of numbers, `f` that of flags, `w` the bytes of
 * floats, in rows of as many as the second byte says. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/cpu.h"
#include "server/number/number.h"
#include "server/number/number_level.h"
#include "server/number/number_scan.h"
#include "server/text/flag.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/rfc8259.h"

enum { NUMBERS = 2048 };

typedef size_t run_function(const char *text, const char *end, float *out, size_t room,
                            const char **stop);
typedef size_t integers_function(const char *text, const char *end, int32_t *out, size_t room,
                                 const char **stop);
typedef size_t flags_function(const char *text, const char *end, uint8_t *out, size_t room,
                              const char **stop);
typedef char *rows_function(char *out, const float *value, size_t rows, size_t width);

static const struct {
  run_function *run;
  integers_function *integers;
  flags_function *flags;
  rows_function *rows;
} levels[CPU_LEVEL_COUNT] = {
    [CPU_PORTABLE] = {number_stretch_portable, number_integers_portable, flag_stretch_portable,
                      number_rows_portable},
#if defined(__x86_64__)
    [CPU_AVX2] = {number_stretch_avx2, number_integers_avx2, flag_stretch_avx2, number_rows_avx2},
    [CPU_AVX512] = {number_stretch_avx512, number_integers_avx2, flag_stretch_avx2,
                    number_rows_avx512},
#endif
};

static bool same(float a, float b) { return memcmp(&a, &b, sizeof a) == 0; }

/* --- reading --- */

static void integer_must_agree(const struct number_scan *s, const char *text) {
  int32_t value = 0;
  const enum number_verdict verdict = number_scan_integer(s, &value);
  const bool plain = text[strspn(text, "-0123456789")] == '\0';
  must((verdict == NUMBER_MALFORMED) == !plain);
  const long long expected = plain ? strtoll(text, NULL, 10) : 0;
  if (verdict == NUMBER_OK) must(value == expected);
  if (verdict == NUMBER_TOO_LARGE) must(expected > INT32_MAX || expected < INT32_MIN);
}

static void read_one(const char *text) {
  struct number_scan s;
  enum number_scanned last = NUMBER_SCAN_TAKEN;
  size_t length = 0;
  number_scan_begin(&s);
  while ((last = number_scan_byte(&s, text[length])) == NUMBER_SCAN_TAKEN) length++;
  const char *end;
  float value = 0, scanned = 0;
  const enum number_verdict verdict = number_read(text, &end, &value);
  must((last == NUMBER_SCAN_MALFORMED) == (verdict == NUMBER_MALFORMED));
  if (verdict != NUMBER_TOO_LARGE) must(end == text + length);
  /* Up to the byte that should not be there, or the number alone. */
  const size_t judged = length + (last == NUMBER_SCAN_MALFORMED);
  char *whole = input_text((struct input){text, judged});
  const struct rfc8259 judge = rfc8259_check(whole, judged);
  must(judge.json == (last == NUMBER_SCAN_END));
  must(judge.json || judge.offset == length);
  if (judge.json) {
    const float expected = strtof(whole, NULL);
    must(number_scan_float(&s, &scanned) == verdict);
    must((verdict == NUMBER_TOO_LARGE) == !isfinite(expected));
    if (verdict == NUMBER_OK) must(same(value, expected) && same(scanned, expected));
    integer_must_agree(&s, whole);
  }
  free(whole);
}

/* The value behind the comma and the blanks at `at`, or, of the first, there. */
static const char *next_value(const char *at, size_t index) {
  if (index == 0) return at;
  must(*at == ',');
  do at++;
  while (is_blank(*at));
  return at;
}

/* What a run has taken is what number_read takes, one after the other. */
static void read_run(run_function *run, const char *text, const char *end) {
  static float out[NUMBERS];
  const char *stop, *at = text;
  const size_t count = run(text, end, out, NUMBERS, &stop);
  must(count <= NUMBERS && stop >= text && stop <= end);
  for (size_t i = 0; i < count; i++) {
    float value;
    at = next_value(at, i);
    must(number_read(at, &at, &value) == NUMBER_OK && same(value, out[i]));
    must(at < end && (*at == ',' || is_blank(*at) || *at == ']' || *at == '}'));
  }
  must(stop == at);
}

/* The same of integers: each is what strtoll reads, of its digits alone. */
static void read_integers(integers_function *run, const char *text, const char *end) {
  static int32_t out[NUMBERS];
  const char *stop, *at = text;
  const size_t count = run(text, end, out, NUMBERS, &stop);
  must(count <= NUMBERS && stop >= text && stop <= end);
  for (size_t i = 0; i < count; i++) {
    char *behind;
    at = next_value(at, i);
    const char *digit = at + (*at == '-');
    const size_t digits = strspn(digit, "0123456789");
    must(digits > 0 && (digits == 1 || *digit != '0'));
    must(strtoll(at, &behind, 10) == out[i] && behind == digit + digits);
    at = behind;
    must(at < end && (*at == ',' || is_blank(*at) || *at == ']' || *at == '}'));
  }
  must(stop == at);
}

static void read_flags(flags_function *run, const char *text, const char *end) {
  static uint8_t out[NUMBERS];
  const char *stop, *at = text;
  const size_t count = run(text, end, out, NUMBERS, &stop);
  must(count <= NUMBERS && stop >= text);
  for (size_t i = 0; i < count; i++) {
    at = next_value(at, i);
    must(at < end && flag_length(at) > 0 && out[i] == (*at == 't' || *at == '1'));
    at += flag_length(at);
  }
  must(stop == at);
}

static void read_text(struct input in, bool flags, enum cpu_level most) {
  char *text = calloc(in.size + NUMBER_READ_MARGIN + 1, 1);
  must(text);
  if (in.size) memcpy(text, in.bytes, in.size);
  const char *end = text + in.size;
  const bool numbers = !flags && (*text == '-' || (*text >= '0' && *text <= '9'));
  if (numbers) read_one(text);
  for (unsigned level = 0; level <= most; level++) {
    if (flags && !is_blank(*text)) read_flags(levels[level].flags, text, end);
    if (numbers) read_run(levels[level].run, text, end);
    if (numbers) read_integers(levels[level].integers, text, end);
  }
  free(text);
}

/* --- writing --- */

static void write_one(float value) {
  char text[NUMBER_TEXT_MAX + NUMBER_WRITE_MARGIN + 1] = {0};
  char *end = number_write(text, value);
  must(end > text && end - text <= NUMBER_TEXT_MAX);
  *end = '\0';
  must(same(strtof(text, NULL), value));
  must(rfc8259_check(text, (size_t)(end - text)).json);
}

static void write_floats(struct input in, size_t width, enum cpu_level most) {
  static float value[NUMBERS];
  size_t count = 0;
  for (; in.size >= sizeof *value && count < NUMBERS; in.size -= sizeof *value) {
    memcpy(&value[count], in.bytes, sizeof *value);
    in.bytes += sizeof *value;
    if (isfinite(value[count])) write_one(value[count++]);
  }
  const size_t rows = count / width;
  const size_t room = rows * (3 + width * (NUMBER_TEXT_MAX + 1)) + NUMBER_WRITE_MARGIN;
  char *first = malloc(room), *text = malloc(room);
  must(first && text);
  const char *end = number_rows_portable(first, value, rows, width);
  for (unsigned level = 1; level <= most; level++) {
    const size_t length = (size_t)(levels[level].rows(text, value, rows, width) - text);
    must(length == (size_t)(end - first) && memcmp(first, text, length) == 0);
  }
  free(first);
  free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input in = {(const char *)data, size};
  const enum cpu_level most = cpu_text_level_with(cpu_features());
  const unsigned char what = input_byte(&in);
  if (what == 'w')
    write_floats(in, 1u + input_byte(&in) % 40, most);
  else
    read_text(in, what == 'f', most);
  return 0;
}
