/* test_number_stretch: stretches of numbers are read as number_read and strtof read them, at every
 * level of instructions, from memory with nothing before it and the margin behind it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "core/base/cpu.h"
#include "server/json/tensor_json.h"
#include "server/number/number.h"
#include "server/number/number_level.h"
#include "tests/support/fenced.h"
#include "tests/support/number_draw.h"
#include "tests/support/rounds.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

enum { DOCUMENTS = 200 * 1000, RUNS = 200, CUT_DOCUMENTS = 1500 };

enum { RUN = 700 /* numbers */, CANARY = 16 };

typedef size_t stretch_function(const char *text, const char *end, float *out, size_t room,
                                const char **stop);

static stretch_function *const LEVEL[CPU_LEVEL_COUNT] = {
    [CPU_PORTABLE] = number_stretch_portable,
#if defined(__x86_64__)
    [CPU_AVX2] = number_stretch_avx2,
    [CPU_AVX512] = number_stretch_avx512,
#endif
};

/* --- numbers to read --- */

enum kind {
  NORMAL,
  ANY_SIZE,
  DOUBLE,
  INTEGER,
  TIE,
  NEAR_TIE,
  LONG_TIE,
  DENORMAL,
  PLACES,
  MIXED,
  KINDS
};

/* Writes a number of a kind; returns its end. All are below 2^127. */
static char *write_kind(char *out, enum kind kind, uint64_t *seed) {
  uint64_t x = draw(seed);
  uint32_t any = (uint32_t)x & 0xbfffffff;
  float common = float_of((any & 0x807fffff) | (uint32_t)(117 + (x >> 32) % 12) << 23);
  float tiny = float_of(any & 0x80ffffff);
  double halfway = ((double)common + (double)nextafterf(common, INFINITY)) / 2;
  switch (kind) {
  case NORMAL:
    out += sprintf(out, "%.*f", (int)(6 + (x >> 60) % 3), (double)common);
    break;
  case ANY_SIZE:
    return number_write(out, float_of(any));
  case DOUBLE:
    out += sprintf(out, "%.17g", (double)common * (1 + (double)(x >> 40) * 0x1p-50));
    break;
  case INTEGER:
    out += sprintf(out, "%lld", (long long)(x >> (x >> 3) % 62));
    break;
  case TIE:
    out += sprintf(out, "%.40f", halfway);
    while (out[-1] == '0') out--;
    if (out[-1] == '.') out--;
    break;
  case NEAR_TIE:
    out += sprintf(out, "%.*g", (int)(9 + (x >> 60)), halfway);
    break;
  case LONG_TIE:
    out += sprintf(out, "%.*f%s", (int)(20 + (x >> 58)), halfway, x & 1 ? "1" : "");
    break;
  case DENORMAL:
    halfway = ((double)tiny + (double)nextafterf(tiny, INFINITY)) / 2;
    out += sprintf(out, "%.*e", (int)(x >> 58), x & 1 ? halfway : (double)tiny);
    break;
  case PLACES: {
    int places = 1 + (int)(x % 17);
    uint64_t limit = 1;
    for (int i = 0; i < places; i++) limit *= 10;
    out += sprintf(out, "%s%llu.%0*llu", x >> 63 ? "-" : "", (unsigned long long)(x >> 8) % 1000,
                   places, (unsigned long long)((x >> 14) % limit));
    break;
  }
  default:
    return write_kind(out, x % 16 ? (enum kind)(x % 3 * (x >> 8 & 1)) : (enum kind)(x >> 8) % MIXED,
                      seed);
  }
  return out;
}

static const char *const BETWEEN[] = {",", ", ", ",\n        ", ",\t\r\n"};

static const char *between(size_t style, uint64_t *seed) {
  return style < LENGTH(BETWEEN) ? BETWEEN[style] : BETWEEN[draw(seed) % LENGTH(BETWEEN)];
}

/* --- what is right --- */

static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/* Where number_read says that the longest stretch ends that a level may read; out[] as well. */
struct truth {
  size_t count;
  float value[FENCED_ROOM / 2];
  size_t stop[FENCED_ROOM / 2 + 1]; /* [count]: its offset behind so many numbers */
};

static void find_truth(struct truth *t, const char *text, size_t length) {
  const char *p = text, *end = text + length, *next;
  t->count = t->stop[0] = 0;
  while (p < end && number_read(p, &next, t->value + t->count) == NUMBER_OK && next < end) {
    if (*next != ',' && *next != ']' && *next != '}' && !is_space(*next)) return;
    t->stop[++t->count] = (size_t)(next - text);
    if (*next != ',') return;
    p = next + 1;
    while (p < end && is_space(*p)) p++;
  }
}

/* Reads at one level; what it takes must be the truth. Returns how many. */
static size_t check_stretch(stretch_function *run, const struct truth *t, const char *text,
                            size_t length, size_t room) {
  static float out[FENCED_ROOM / 2 + CANARY];
  const char *stop = NULL;
  size_t most = room < t->count ? room : t->count;
  memset(out, 0xa5, (most + CANARY) * sizeof *out);
  size_t count = run(text, text + length, out, room, &stop);
  if (count > most) fail_msg("%zu numbers instead of %zu: %.*s", count, most, (int)length, text);
  if ((size_t)(stop - text) != t->stop[count])
    fail_msg("%zu numbers end at %td, not %zu: %.*s", count, stop - text, t->stop[count],
             (int)length, text);
  for (size_t i = 0; i < count; i++)
    if (memcmp(&out[i], &t->value[i], sizeof *out) != 0)
      fail_msg("number %zu is %a, not %a: %.*s", i, (double)out[i], (double)t->value[i],
               (int)length, text);
  if (room <= t->count)
    for (size_t i = 0; i < CANARY; i++)
      for (size_t k = 0; k < sizeof *out; k++)
        assert_int_equal(((unsigned char *)&out[room + i])[k], 0xa5);
  return count;
}

static struct truth truth;
static struct fenced memory;

/* Every level, at both ends of the memory. Returns what the best level took. A stretch starts with
 * a number: without one there is nothing to check. */
static size_t check_levels(const char *text, size_t length, size_t room) {
  size_t count = 0;
  if (length > 0 && !(*text >= '0' && *text <= '9') && *text != '-') return 0;
  for (size_t at_end = 0; at_end < 2; at_end++) {
    const char *p = fenced_put(&memory, text, length, at_end);
    if (!at_end) find_truth(&truth, p, length);
    for (size_t level = 0; level <= cpu_text_level(); level++)
      check_stretch(LEVEL[level], &truth, p, length, room);
    count = check_stretch(number_read_stretch, &truth, p, length, room);
  }
  return count;
}

/* --- tests --- */

/* number_read is checked against strtof; so are these numbers, as they are hard ones. */
static void test_reads_every_kind_of_number(void **state) {
  (void)state;
  static char text[RUN * 128];
  uint64_t seed = 1;
  for (size_t round = 0; round < rounds(RUNS); round++) {
    char *out = text;
    enum kind kind = (enum kind)(round % KINDS);
    /* Of what is often read alone fewer: the truth is found anew each time. */
    size_t numbers = kind == NORMAL || kind == DOUBLE || kind == INTEGER ? RUN : RUN / 10;
    for (size_t i = 0; i < numbers; i++) {
      if (i) out += sprintf(out, "%s", between(round / KINDS % 6, &seed));
      out = write_kind(out, kind, &seed);
    }
    *out++ = ']';
    /* All of it: where a level stops, the next number is read alone. */
    const char *p = fenced_put(&memory, text, (size_t)(out - text), round & 1),
               *end = p + (out - text);
    for (size_t level = 0; level <= cpu_text_level(); level++) {
      size_t count = 0, in_runs = 0;
      for (const char *at = p, *stop; count < numbers; count++, at = stop + 1) {
        while (is_space(*at)) at++;
        find_truth(&truth, at, (size_t)(end - at));
        size_t taken = check_stretch(LEVEL[level], &truth, at, (size_t)(end - at), numbers);
        const char *from = at;
        for (size_t i = 0; i < taken; i++) {
          char *behind;
          float expected = strtof(from, &behind);
          assert_memory_equal(&expected, &truth.value[i], sizeof expected);
          from = behind + 1;
        }
        in_runs += taken;
        count += taken;
        stop = at + truth.stop[taken];
        if (count == numbers) break;
        if (taken) at = stop + 1;
        while (is_space(*at)) at++;
        float value;
        assert_int_equal(number_read(at, &stop, &value), NUMBER_OK);
      }
      if (kind == NORMAL || kind == DOUBLE)
        assert_true(in_runs == numbers || level == CPU_PORTABLE);
    }
  }
}

/* Every digit counts: midpoints and what is next to them, in many notations. */
static void test_decides_ties_by_all_digits(void **state) {
  (void)state;
  static const char *const number[] = {
      "16777217",
      "16777219",
      "-16777217e0",
      "1677721.7e1",
      "1677721700e-2",
      "16777217000000e-6",
      "16777217.0000000000000000000000000000000000000000000000000000000001",
      "167772170e-1",
      "16777216.9999999999999999999999999999999999999",
      "1.6777217E+7",
      "0.00000016777217e14",
      "16777217000000000000000000000000000000e-30",
      "9007199791611904",
      "9007199791611905",
      "9007199791611903.99999999999999999999",
      "1180591691223594434560",
      "118059169122359443456e1",
      "1180591691223594434561",
      "11805916912235944345.6E2",
      "36893490034123046912",
      "340282356779733661637539395458142568447",
      "340282326356119256160033759537265639424",
      "0.5000000298023223876953125",
      "0.50000002980232238769531250",
      "0.50000008940696716308593750",
      "0.50000002980232238769531250000000000000000000000000000000000000000000000000000001",
      "7.006492321624085354618e-46",
      "7.0064923216240853546186479164495806564013097093825788587853e-46",
      "1.40129846432481707092372958328991613128026194187651577175706828388979108268586060148663e-"
      "45",
      "2.10194769648722560638559437493487419692039291281477365763560242583468662402879090222995e-"
      "45",
      "0.000000000000000000000000000000000000000000000700649232162408535461864791644958065640130970"
      "93825788587853",
  };
  for (size_t i = 0; i < LENGTH(number); i++) {
    char text[256 + NUMBER_READ_MARGIN];
    const char *stop = NULL;
    float value = -7, expected = strtof(number[i], NULL);
    size_t length = (size_t)sprintf(text, "%s,", number[i]);
    memset(text + length, '9', NUMBER_READ_MARGIN);
    assert_int_equal(number_read(text, &stop, &value), NUMBER_OK);
    if (memcmp(&value, &expected, sizeof value) != 0 || stop != text + length - 1)
      fail_msg("%s reads as %a, not %a", number[i], (double)value, (double)expected);
    check_levels(text, length, 10);
  }
}

/* A text of plain and odd numbers with some bytes changed, lost or added. */
static size_t write_damaged(char *text, uint64_t *seed) {
  static const char byte[] = "0123456789.,-+eE[] \n\t\r}00.-,,\"x:\x80\xff";
  char *out = text;
  size_t style = draw(seed) % 8, numbers = 1 + draw(seed) % 24;
  enum kind kind = (enum kind)(draw(seed) % KINDS);
  for (size_t i = 0; i < numbers; i++) {
    if (i) out += sprintf(out, "%s", between(style < 4 ? 0 : style - 3, seed));
    out = write_kind(out, kind, seed);
  }
  *out++ = "]}, \n"[draw(seed) % 5];
  return draw_damage(text, (size_t)(out - text), byte, seed);
}

static void test_takes_nothing_but_numbers_from_damaged_texts(void **state) {
  (void)state;
  static char text[8192];
  uint64_t seed = 2;
  for (size_t i = 0; i < rounds(DOCUMENTS); i++) {
    size_t length = write_damaged(text, &seed);
    check_levels(text, length, draw(&seed) % 2 ? SIZE_MAX / 8 : draw(&seed) % 48);
  }
}

/* Short forms of everything that the grammar allows and forbids, at every place of a block. */
static void test_judges_every_sequence_of_a_few_characters(void **state) {
  (void)state;
  static const char alphabet[] = "01.,-] e";
  enum { SIZE = 5 };
  size_t count = 1;
  for (size_t i = 0; i < SIZE; i++) count *= sizeof alphabet - 1;
  for (size_t n = 0; n < count; n++) {
    char text[160];
    size_t before = n * 7 % 131;
    for (size_t i = 0; i < before; i++) text[i] = i % 2 == before % 2 ? '7' : ',';
    if (before % 2) memcpy(text, "12", before < 2 ? before : 2);
    char *out = text + before;
    for (size_t i = 0, rest = n; i < SIZE; i++, rest /= sizeof alphabet - 1)
      *out++ = alphabet[rest % (sizeof alphabet - 1)];
    check_levels(text, (size_t)(out - text), 1000);
    *out++ = ']';
    check_levels(text, (size_t)(out - text), 1000);
  }
}

static void test_writes_no_more_than_there_is_room_for(void **state) {
  (void)state;
  static char text[8192];
  uint64_t seed = 3;
  for (size_t spaced = 0; spaced < 2; spaced++) {
    char *out = text;
    for (size_t i = 0; i < 201; i++) {
      out = write_kind(out, NORMAL, &seed);
      out += sprintf(out, "%s", BETWEEN[spaced]);
    }
    for (size_t room = 0; room <= 200; room++) {
      size_t taken = check_levels(text, (size_t)(out - text), room);
      if (cpu_text_level() > CPU_PORTABLE) assert_int_equal(taken, room);
    }
  }
}

/* Batches end within numbers, blanks and commas: every length, and numbers of all lengths. */
static void test_reads_texts_of_every_length(void **state) {
  (void)state;
  static char text[3 * 4096 + 128];
  uint64_t seed = 4;
  for (size_t style = 0; style < 3; style++) {
    char *out = text;
    while (out < text + 2 * 4096 + 1024) {
      out = write_kind(out, style == 1 ? INTEGER : style ? MIXED : NORMAL, &seed);
      out += sprintf(out, "%s", between(style == 2 ? 9 : style, &seed));
    }
    size_t all = (size_t)(out - text);
    for (size_t length = 0; length < 300; length++) check_levels(text, length, SIZE_MAX / 8);
    for (size_t length = 4096 - 70; length < 4096 + 140; length++)
      check_levels(text, length, SIZE_MAX / 8);
    for (size_t from = 0; from < 40; from++) {
      const char *p = strchr(text + from, ',') + 1;
      while (is_space(*p)) p++;
      check_levels(p, all - (size_t)(p - text), SIZE_MAX / 8);
    }
  }
}

static void test_gaps_of_any_length(void **state) {
  (void)state;
  static char text[8192];
  for (size_t gap = 0; gap < 300; gap++) {
    char *out = text;
    for (size_t i = 0; i < 12; i++) {
      out += sprintf(out, "%s-1.%zu,", i ? "" : "1,", i * i);
      memset(out, ' ', gap * (i % 3));
      out += gap * (i % 3);
    }
    out += sprintf(out, "3]");
    check_levels(text, (size_t)(out - text), 100);
  }
}

static void test_numbers_of_any_length(void **state) {
  (void)state;
  static char text[16 * 1024];
  for (size_t digits = 1; digits < 300; digits++) {
    for (size_t where = 0; where < 3; where++) {
      char *out = text;
      for (size_t i = 0; i < 11; i++) {
        out += sprintf(out, i % 2 ? "-1.5,2," : "1.25,");
        if (where == 1) out += sprintf(out, "0.");
        memset(out, '0' + (int)(i % 9) + 1, digits);
        out += digits;
        if (where == 2) out += sprintf(out, ".5");
        *out++ = ',';
      }
      check_levels(text, (size_t)(out - text), 100);
    }
  }
}

/* --- through the reader of tensors --- */

struct reading {
  enum status status;
  struct error error;
  struct arena arena;
  const struct tensor *tensor; /* NULL: refused, or not ended */
  size_t used;
};

static void feed(struct reading *got, const char *text, size_t length, size_t chunk) {
  const struct tensor_rule rule = {
      .field = "keys", .type = TENSOR_FLOAT, .depth_min = 2, .depth_max = 3, .ragged_depth = 3};
  *got = (struct reading){0};
  arena_init(&got->arena, NULL);
  struct tensor_json *r = tensor_json_new(&rule, &got->arena, &got->error);
  assert_non_null(r);
  bool complete = false;
  while (got->used < length && !complete) {
    size_t left = length - got->used, piece = chunk < left ? chunk : left, used = 0;
    /* No byte behind the chunk may be read. */
    char *p = memory.end - piece;
    memcpy(p, text + got->used, piece);
    got->status = tensor_json_feed(r, p, piece, got->used, &used, &complete, &got->error);
    if (got->status != STATUS_OK) return;
    got->used += used;
  }
  if (complete) got->tensor = tensor_json_view(r);
}

static void assert_same(const struct reading *a, const struct reading *b) {
  assert_int_equal(a->status, b->status);
  assert_string_equal(a->error.pointer, b->error.pointer);
  assert_string_equal(a->error.detail, b->error.detail);
  assert_int_equal(a->error.offset, b->error.offset);
  assert_int_equal(a->tensor != NULL, b->tensor != NULL);
  if (!a->tensor) return;
  assert_int_equal(a->used, b->used);
  assert_int_equal(a->tensor->count, b->tensor->count);
  assert_memory_equal(&a->tensor->common, &b->tensor->common, sizeof a->tensor->common);
  if (a->tensor->count)
    assert_memory_equal(a->tensor->data, b->tensor->data, a->tensor->count * sizeof(float));
}

static size_t write_document(char *text, uint64_t *seed) {
  size_t rows = 1 + draw(seed) % 4, width = 1 + draw(seed) % 30, style = draw(seed) % 8;
  enum kind kind = (enum kind)(draw(seed) % KINDS);
  char *out = text;
  *out++ = '[';
  for (size_t i = 0; i < rows * width; i++) {
    if (i % width == 0)
      out += sprintf(out, i ? "]%s[" : "[", between(style, seed));
    else
      out += sprintf(out, "%s", between(style < 4 ? 0 : style - 3, seed));
    out = write_kind(out, kind, seed);
  }
  out += sprintf(out, "]]");
  return (size_t)(out - text);
}

static void test_chunks_of_any_size_are_read_alike(void **state) {
  (void)state;
  static char text[128 * 256];
  static const char byte[] = "0123456789.,-+eE[] \n]]";
  static const size_t large[] = {127, 128, 129, 191, 192, 193, 500, 1000, 4096, 16384, 100000};
  uint64_t seed = 5;
  for (size_t i = 0; i < rounds(CUT_DOCUMENTS); i++) {
    size_t length = write_document(text, &seed);
    if (i % 4)
      for (size_t k = 0; k < i % 3; k++)
        text[draw(&seed) % length] = byte[draw(&seed) % (sizeof byte - 1)];
    struct reading bytewise, chunked;
    feed(&bytewise, text, length, 1);
    for (size_t k = 2; k <= 100 + LENGTH(large); k++) {
      feed(&chunked, text, length, k <= 100 ? k : large[k - 101]);
      assert_same(&bytewise, &chunked);
      arena_free(&chunked.arena);
    }
    arena_free(&bytewise.arena);
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
      cmocka_unit_test(test_reads_every_kind_of_number),
      cmocka_unit_test(test_decides_ties_by_all_digits),
      cmocka_unit_test(test_takes_nothing_but_numbers_from_damaged_texts),
      cmocka_unit_test(test_judges_every_sequence_of_a_few_characters),
      cmocka_unit_test(test_writes_no_more_than_there_is_room_for),
      cmocka_unit_test(test_reads_texts_of_every_length),
      cmocka_unit_test(test_gaps_of_any_length),
      cmocka_unit_test(test_numbers_of_any_length),
      cmocka_unit_test(test_chunks_of_any_size_are_read_alike),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
