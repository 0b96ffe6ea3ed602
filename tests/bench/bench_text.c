/* bench_text: nanoseconds per number, read and written, beside simdjson, the C++ library, Jansson
 * and strtof, and as base64 beside a loop with a table and memcpy, at the level of instructions
 * that ATTEND_CPU allows.
 *
 * The reader is fed as the server feeds it. Least of several rounds of each, taken alternately. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/clock.h"
#include "core/base/cpu.h"
#include "server/json/tensor_json.h"
#include "server/number/number.h"
#include "server/text/base64.h"
#include "tests/bench/text_bodies.h"
#include "tests/bench/text_rivals.h"
#include "tests/support/level_asked.h"

enum { CHUNK = 16 * 1024, ROUNDS = 15, ROUNDS_JANSSON = 2, WRITTEN = 512 * 100 * 6 };

static void check(bool fine, const char *what) {
  if (fine) return;
  fprintf(stderr, "bench_text: %s\n", what);
  exit(1);
}

static double least(double a, double b) { return a < b ? a : b; }

/* What is wanted of each level, times as fast as the rival; 0: nothing. */
typedef const double wanted[CPU_LEVEL_COUNT];

static void print_row(const char *title, double ours, double rival, const double *want) {
  const enum cpu_level level = cpu_text_level();
  const double factor = want ? want[level] : 0, ratio = rival / ours;
  char figure[80], goal[16] = "-";
  snprintf(figure, sizeof figure, "%s: %s", cpu_level_name(level), title);
  if (factor > 0) snprintf(goal, sizeof goal, ">= %g", factor);
  printf("%-66s | %9.2f ns | %11.2f ns | %7.2f | %-9s | %s\n", figure, ours, rival, ratio, goal,
         factor > 0 ? (ratio >= factor ? "yes" : "NO") : "");
  fflush(stdout);
}

/* --- reading --- */

/* Reads the value at `text`, chunk by chunk; the numbers are the arena's. */
static const struct tensor *read_value(const struct tensor_rule *rule, const char *text,
                                       size_t length, struct arena *a) {
  struct error e = {0};
  struct tensor_json *r = tensor_json_new(rule, a, &e);
  bool complete = false;
  for (size_t at = 0; r && !complete && at < length;) {
    size_t piece = length - at < CHUNK ? length - at : CHUNK, used;
    check(tensor_json_feed(r, text + at, piece, at, &used, &complete, &e) == STATUS_OK, e.detail);
    at += used;
  }
  check(complete, "the tensor does not end");
  return tensor_json_view(r);
}

static void read_tensor(const struct body *b, size_t field, bool verify) {
  const struct tensor_rule rule = {.field = "keys",
                                   .type = TENSOR_FLOAT,
                                   .depth_min = 2,
                                   .depth_max = 3,
                                   .ragged_depth = 3,
                                   .width = BODY_WIDTH,
                                   .max_elements = 4096};
  struct arena a;
  arena_init(&a, NULL);
  const struct tensor *t =
      read_value(&rule, b->text + b->tensor[field], b->length - b->tensor[field], &a);
  if (verify) {
    const size_t count = b->count / BODY_FIELDS;
    check(t->count == count, "wrong count");
    check(memcmp(t->data, b->value + field * count, count * sizeof *b->value) == 0,
          "wrong numbers");
  }
  arena_free(&a);
}

static double time_ours(const struct body *b) {
  const uint64_t start = clock_now();
  for (size_t f = 0; f < BODY_FIELDS; f++) read_tensor(b, f, false);
  return (double)(clock_now() - start) / (double)b->count;
}

typedef size_t reader(const char *text, size_t length, float *out);

static size_t read_strtof(const char *text, size_t length, float *out) {
  const float *begin = out;
  for (const char *end = text + length; text < end;) {
    if (*text == '-' || (*text >= '0' && *text <= '9'))
      *out++ = strtof(text, (char **)&text);
    else
      text++;
  }
  return (size_t)(out - begin);
}

static size_t read_jansson(const char *text, size_t length, float *out) {
  (void)out; /* kind to the rival: its numbers stay in their objects */
  json_t *document = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
  const size_t count = json_object_size(document) == BODY_FIELDS ? SIZE_MAX : 0;
  json_decref(document);
  return count;
}

static double time_rival(reader *read, const struct body *b, float *out) {
  const uint64_t start = clock_now();
  const size_t count = read(b->text, b->length, out);
  const double spent = (double)(clock_now() - start) / (double)b->count;
  check(count == b->count || (count == SIZE_MAX && read == read_jansson), "a rival's count");
  return spent;
}

struct reading {
  const char *title;
  enum body_kind kind;
  size_t items;
  reader *rival;
  const double *wanted;
};

static void measure_reading(const struct reading *r) {
  struct body b = body_make(r->kind, r->items);
  float *out = malloc(b.count * sizeof *out);
  check(out != NULL, "no memory");
  for (size_t f = 0; f < BODY_FIELDS; f++) read_tensor(&b, f, true);
  double ours = 1e18, rival = 1e18;
  for (int round = r->rival == read_jansson ? ROUNDS - ROUNDS_JANSSON : 0; round < ROUNDS;
       round++) {
    ours = least(ours, time_ours(&b));
    rival = least(rival, time_rival(r->rival, &b, out));
    ours = least(ours, time_ours(&b));
  }
  char title[64];
  snprintf(title, sizeof title, r->title, (double)b.length / 1e6);
  print_row(title, ours, rival, r->wanted);
  free(out);
  body_free(&b);
}

static void measure_all_reading(void) {
  static wanted plain = {1.8, 3, 8}, spaced = {0, 0, 3}, jansson = {12, 12, 12}, equal = {1, 1, 1};
  const struct reading reading[] = {
      {"read a body of %.1f MB; simdjson", BODY_NORMAL, 8, rival_simdjson, plain},
      {"the same; from_chars", BODY_NORMAL, 8, rival_from_chars, NULL},
      {"the same; json_loadb", BODY_NORMAL, 8, read_jansson, jansson},
      {"with \", \", %.1f MB; simdjson", BODY_SPACED, 8, rival_simdjson, spaced},
      {"17-digit doubles, %.1f MB; simdjson", BODY_DOUBLES, 8, rival_simdjson, NULL},
      {"integers 0 to 9, %.1f MB; simdjson", BODY_DIGITS, 8, rival_simdjson, NULL},
      {"ties of 40 digits; strtof", BODY_TIES, 1, read_strtof, equal},
      {"denormals; strtof", BODY_DENORMALS, 1, read_strtof, equal},
      {"1e-400; strtof", BODY_TINY, 1, read_strtof, equal},
      {"1 and 17 digits in turn; strtof", BODY_ALTERNATING, 1, read_strtof, equal}};
  for (size_t i = 0; i < sizeof reading / sizeof *reading; i++) measure_reading(&reading[i]);
}

/* --- reading integers and flags --- */

static double time_list(const struct list *l, const struct tensor_rule *rule) {
  struct arena a;
  arena_init(&a, NULL);
  const uint64_t start = clock_now();
  const struct tensor *t = read_value(rule, l->text, l->length, &a);
  const double spent = (double)(clock_now() - start) / (double)l->count;
  check(t->count == l->count, "wrong count");
  for (size_t i = 0; i < l->count; i++)
    check(l->value[i] ==
              (rule->type == TENSOR_FLAG ? ((uint8_t *)t->data)[i] : ((int32_t *)t->data)[i]),
          "a wrong value");
  arena_free(&a);
  return spent;
}

static void measure_list(const char *title, enum list_kind kind, const double *want) {
  static const struct tensor_rule integers = {
      .field = "valid_lens", .type = TENSOR_INTEGER, .depth_max = 2, .ragged_depth = 2};
  static const struct tensor_rule flags = {
      .field = "mask", .type = TENSOR_FLAG, .depth_min = 2, .depth_max = 3, .ragged_depth = 3};
  struct list l = list_make(kind, 1024);
  int32_t *out = malloc(l.count * sizeof *out);
  check(out != NULL, "no memory");
  double ours = 1e18, rival = 1e18;
  for (int round = 0; round < ROUNDS; round++) {
    ours = least(ours, time_list(&l, kind == LIST_INTEGERS ? &integers : &flags));
    const uint64_t start = clock_now();
    check(rival_integers(l.text, l.length, out) == l.count, "the rival's count");
    rival = least(rival, (double)(clock_now() - start) / (double)l.count);
  }
  print_row(title, ours, rival, want);
  free(out);
  list_free(&l);
}

static void measure_lists(void) {
  static wanted more = {0, 1.5, 1.5}, much = {1, 2, 2};
  measure_list("integers 0 to 999, with \", \"; from_chars", LIST_INTEGERS, more);
  measure_list("flags 0 and 1, with \", \"; from_chars", LIST_DIGITS, much);
  measure_list("flags true and false, with \", \"; a look at the letter", LIST_WORDS, NULL);
}

/* --- writing --- */

static double time_writing(char *(*write)(char *, const float *, size_t, size_t), char *out,
                           const float *value, size_t width, size_t *length) {
  const uint64_t start = clock_now();
  *length = (size_t)(write(out, value, WRITTEN / width, width) - out);
  return (double)(clock_now() - start) / WRITTEN;
}

static double time_dumps(const float *value) {
  json_t *array = json_array();
  for (size_t i = 0; i < WRITTEN; i++) json_array_append_new(array, json_real((double)value[i]));
  const uint64_t start = clock_now();
  char *text = json_dumps(array, JSON_COMPACT | JSON_REAL_PRECISION(9));
  const double spent = (double)(clock_now() - start) / WRITTEN;
  check(text != NULL, "json_dumps");
  free(text);
  json_decref(array);
  return spent;
}

static void measure_writing(const char *title, const float *value, size_t width, bool jansson,
                            const double *want) {
  const size_t room = (size_t)WRITTEN * (NUMBER_TEXT_MAX + 4) + NUMBER_WRITE_MARGIN;
  char *out = malloc(room), *other = malloc(room);
  check(out && other, "no memory");
  double ours = 1e18, rival = 1e18;
  size_t length, other_length;
  for (int round = 0; round < ROUNDS; round++) {
    ours = least(ours, time_writing(number_write_rows, out, value, width, &length));
    const double theirs = time_writing(rival_to_chars, other, value, width, &other_length);
    check(length == other_length && memcmp(out, other, length) == 0, "not what to_chars writes");
    if (!jansson) rival = least(rival, theirs);
    if (jansson && round < ROUNDS_JANSSON) rival = least(rival, time_dumps(value));
  }
  print_row(title, ours, rival, want);
  free(out);
  free(other);
}

/* Rows of 64 weights that sum to one, of scores of deviation 2, the last keys hidden. */
static void make_weights(float *value, const float *score) {
  for (size_t row = 0; row < WRITTEN; row += 64) {
    const size_t seen = 32 + row / 64 % 33;
    float sum = 0;
    for (size_t i = 0; i < 64; i++) {
      value[row + i] = i < seen ? expf(2 * score[row + i]) : 0;
      sum += value[row + i];
    }
    for (size_t i = 0; i < 64; i++) value[row + i] /= sum;
  }
}

static void measure_all_writing(void) {
  static wanted plain = {1.6, 2.5, 9}, jansson = {8, 8, 8};
  float *value = malloc(WRITTEN * sizeof *value), *weight = malloc(WRITTEN * sizeof *weight);
  check(value && weight, "no memory");
  body_normals(value, WRITTEN);
  make_weights(weight, value);
  measure_writing("write rows of 512; to_chars", value, 512, false, plain);
  measure_writing("write rows of 100; to_chars", value, 100, false, plain);
  measure_writing("write rows of 6; to_chars", value, 6, false, NULL);
  measure_writing("write weights of a softmax, rows of 64; to_chars", weight, 64, false, NULL);
  measure_writing("write rows of 512; json_dumps, 9 digits", value, 512, true, jansson);
  free(value);
  free(weight);
}

/* --- base64 --- */

static const char ALPHABET[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void loop_write(char *out, const unsigned char *bytes, size_t size) {
  for (size_t i = 0; i < size; i += 3) {
    const unsigned bits = (unsigned)bytes[i] << 16 | (unsigned)bytes[i + 1] << 8 | bytes[i + 2];
    for (unsigned k = 0; k < 4; k++) *out++ = ALPHABET[bits >> (18 - 6 * k) & 63];
  }
}

static bool loop_read(const char *text, size_t length, unsigned char *out,
                      const unsigned char number[256]) {
  const unsigned char *c = (const unsigned char *)text;
  unsigned strange = 0;
  for (size_t i = 0; i < length; i += 4) {
    const unsigned a = number[c[i]], b = number[c[i + 1]], d = number[c[i + 2]];
    const unsigned last = number[c[i + 3]], bits = a << 18 | b << 12 | d << 6 | last;
    strange |= a | b | d | last;
    *out++ = (unsigned char)(bits >> 16);
    *out++ = (unsigned char)(bits >> 8);
    *out++ = (unsigned char)bits;
  }
  return strange < 64;
}

struct base64_bench {
  unsigned char *bytes, *read;
  char *text, *other;
  size_t size, length;
  unsigned char number[256];
  double write, read_back, loop, loop_back, copy;
};

static void time_base64(struct base64_bench *b) {
  uint64_t start = clock_now();
  check(base64_write(b->text, b->bytes, b->size) == b->text + b->length, "base64: length");
  b->write = least(b->write, (double)(clock_now() - start));
  start = clock_now();
  check(base64_read(b->text, b->length, b->read) == b->length, "base64: not all is read");
  b->read_back = least(b->read_back, (double)(clock_now() - start));
  check(memcmp(b->read, b->bytes, b->size) == 0, "base64: wrong bytes");
  start = clock_now();
  loop_write(b->other, b->bytes, b->size);
  b->loop = least(b->loop, (double)(clock_now() - start));
  check(memcmp(b->other, b->text, b->length) == 0, "base64: wrong characters");
  start = clock_now();
  check(loop_read(b->text, b->length, b->read, b->number), "the loop");
  b->loop_back = least(b->loop_back, (double)(clock_now() - start));
  start = clock_now();
  memcpy(b->read, b->bytes, b->size);
  b->copy = least(b->copy, (double)(clock_now() - start));
}

static void measure_base64(void) {
  static wanted much = {1.5, 4, 4};
  const double count = WRITTEN, most = 1e18;
  struct base64_bench b = {.size = WRITTEN * sizeof(float),
                           .write = most,
                           .read_back = most,
                           .loop = most,
                           .loop_back = most,
                           .copy = most};
  b.length = base64_length(b.size);
  b.bytes = malloc(b.size);
  b.read = malloc(b.size + BASE64_READ_MARGIN);
  b.text = malloc(b.length + BASE64_WRITE_MARGIN);
  b.other = malloc(b.length);
  check(b.bytes && b.read && b.text && b.other, "no memory");
  body_normals((float *)(void *)b.bytes, WRITTEN);
  memset(b.number, 64, sizeof b.number);
  for (unsigned char i = 0; i < 64; i++) b.number[(unsigned char)ALPHABET[i]] = i;
  for (int round = 0; round < 4 * ROUNDS; round++) time_base64(&b);
  print_row("base64 write; a loop with a table", b.write / count, b.loop / count, much);
  print_row("the same; memcpy of the numbers", b.write / count, b.copy / count, NULL);
  print_row("base64 read; a loop with a table", b.read_back / count, b.loop_back / count, much);
  print_row("the same; memcpy of the numbers", b.read_back / count, b.copy / count, NULL);
  free(b.bytes);
  free(b.read);
  free(b.text);
  free(b.other);
}

int main(void) {
  if (!level_asked_is_here()) return 0;
  measure_all_reading();
  measure_lists();
  measure_all_writing();
  measure_base64();
  return 0;
}
