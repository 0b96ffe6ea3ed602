/* bench_text: nanoseconds per number, read and written, beside Jansson and the C++ library. */
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/arena.h"
#include "server/text/number.h"
#include "server/tensor_json.h"
#include "tests/support/text_yardstick.h"

enum {
  FIELDS = 3,
  ITEMS = 8,
  ROWS = 64,
  WIDTH = 512,
  NUMBERS = FIELDS * ITEMS * ROWS * WIDTH,
  WRITTEN = 262144,
  CHUNK = 16 * 1024,
  ROUNDS = 5,
  ROOM = 32 /* bytes per number */
};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void check(bool fine, const char *what) {
  if (fine) return;
  fprintf(stderr, "bench_text: %s\n", what);
  exit(1);
}

/* Normally distributed, from a fixed seed (Box and Muller). */
static void fill_normal(float *out, size_t count) {
  uint64_t state = 1;
  for (size_t i = 0; i < count; i++) {
    double u[2];
    for (size_t k = 0; k < 2; k++) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      u[k] = ((double)(state >> 11) + 0.5) * 0x1p-53;
    }
    out[i] = (float)(sqrt(-2 * log(u[0])) * cos(6.283185307179586 * u[1]));
  }
}

/* [ITEMS][ROWS][WIDTH] of numbers as text; `comma` between the numbers of a row. */
static char *write_tensor(char *out, const float *value, const char *comma) {
  *out++ = '[';
  for (size_t i = 0; i < ITEMS; i++) {
    if (i) *out++ = ',';
    *out++ = '[';
    for (size_t k = 0; k < ROWS; k++) {
      if (k) *out++ = ',';
      *out++ = '[';
      for (size_t c = 0; c < WIDTH; c++) {
        if (c) out = stpcpy(out, comma);
        out = yardstick_write(out, *value++);
      }
      *out++ = ']';
    }
    *out++ = ']';
  }
  *out++ = ']';
  return out;
}

/* The body of a request, and where its tensors start. */
struct body {
  char *text;
  size_t length, tensor[FIELDS];
};

static void body_write(struct body *b, const float *value, const char *comma) {
  static const char *const name[FIELDS] = {"queries", "keys", "values"};
  b->text = malloc((size_t)NUMBERS * ROOM);
  check(b->text != NULL, "no memory");
  char *out = b->text;
  for (size_t f = 0; f < FIELDS; f++) {
    out += sprintf(out, "%c\"%s\":", f ? ',' : '{', name[f]);
    b->tensor[f] = (size_t)(out - b->text);
    out = write_tensor(out, value + f * (NUMBERS / FIELDS), comma);
  }
  *out++ = '}';
  b->length = (size_t)(out - b->text);
}

static void read_tensor(const struct body *b, size_t from, const float *expected) {
  const struct tensor_rule rule = {.field = "keys",
                                   .type = TENSOR_FLOAT,
                                   .depth_min = 2,
                                   .depth_max = 3,
                                   .ragged_depth = 3,
                                   .width = WIDTH,
                                   .max_elements = 4096};
  struct arena a;
  struct error e = {0};
  arena_init(&a, NULL);
  struct tensor_reader *r = tensor_reader_new(&rule, &a, &e);
  bool complete = false;
  for (size_t at = from; r && !complete && at < b->length;) {
    size_t length = b->length - at < CHUNK ? b->length - at : CHUNK, used;
    check(tensor_reader_feed(r, b->text + at, length, at, &used, &complete, &e) == STATUS_OK,
          e.detail);
    at += used;
  }
  check(complete, "the tensor does not end");
  if (expected) {
    const struct tensor *t = tensor_reader_view(r);
    check(t->count == NUMBERS / FIELDS, "wrong count");
    check(memcmp(t->data, expected, t->count * sizeof *expected) == 0, "wrong numbers");
  }
  arena_free(&a);
}

static double time_ours_reading(const struct body *b, const float *expected) {
  double start = now();
  for (size_t f = 0; f < FIELDS; f++) read_tensor(b, b->tensor[f], NULL);
  double spent = now() - start;
  for (size_t f = 0; f < FIELDS; f++)
    read_tensor(b, b->tensor[f], expected + f * (NUMBERS / FIELDS));
  return spent / NUMBERS;
}

static double time_jansson_reading(const struct body *b) {
  double start = now();
  json_error_t error;
  json_t *document = json_loadb(b->text, b->length, JSON_REJECT_DUPLICATES, &error);
  check(document != NULL, error.text);
  json_decref(document);
  return (now() - start) / NUMBERS;
}

/* from_chars given each number's place, which it would have to find first. */
static double time_library_reading(const float *value) {
  char *text = malloc((size_t)NUMBERS * ROOM), *out = text;
  uint32_t *end = malloc(NUMBERS * sizeof *end);
  check(text && end, "no memory");
  for (size_t i = 0; i < NUMBERS; i++) {
    out = yardstick_write(out, value[i]);
    end[i] = (uint32_t)(out - text);
  }
  double start = now();
  uint32_t from = 0;
  for (size_t i = 0; i < NUMBERS; from = end[i++]) {
    float back;
    check(yardstick_read(text + from, end[i] - from, &back) && back == value[i], "from_chars");
  }
  double spent = now() - start;
  free(text);
  free(end);
  return spent / NUMBERS;
}

static double time_ours_writing(const float *value, char *out) {
  double start = now();
  char *end = number_write_rows(out, value, 1, WRITTEN);
  double spent = now() - start;
  check(end > out, "nothing written");
  return spent / WRITTEN;
}

static double time_library_writing(const float *value, char *out) {
  double start = now();
  for (size_t i = 0; i < WRITTEN; i++) {
    if (i) *out++ = ',';
    out = yardstick_write(out, value[i]);
  }
  return (now() - start) / WRITTEN;
}

static double time_jansson_writing(const float *value) {
  json_t *array = json_array();
  for (size_t i = 0; i < WRITTEN; i++) json_array_append_new(array, json_real(value[i]));
  double start = now();
  char *text = json_dumps(array, JSON_COMPACT | JSON_REAL_PRECISION(9));
  double spent = now() - start;
  check(text != NULL, "json_dumps");
  free(text);
  json_decref(array);
  return spent / WRITTEN;
}

static double least(double a, double b) { return a < b ? a : b; }

static void print_row(const char *figure, double ours, double yardstick, const char *wanted) {
  printf("%-52s | %7.2f ns | %7.2f ns | %6.1f x | %s\n", figure, ours, yardstick, yardstick / ours,
         wanted);
}

int main(void) {
  float *value = malloc(NUMBERS * sizeof *value);
  char *out = malloc((size_t)WRITTEN * ROOM), *library_out = malloc((size_t)WRITTEN * ROOM);
  check(value && out && library_out, "no memory");
  fill_normal(value, NUMBERS);
  struct body tight, spaced;
  body_write(&tight, value, ",");
  body_write(&spaced, value, ", ");

  double ours[3] = {1e9, 1e9, 1e9}, jansson[3] = {1e9, 1e9, 1e9}, library[2] = {1e9, 1e9};
  for (size_t i = 0; i < ROUNDS; i++) {
    ours[0] = least(ours[0], time_ours_reading(&tight, value));
    ours[1] = least(ours[1], time_ours_reading(&spaced, value));
    jansson[0] = least(jansson[0], time_jansson_reading(&tight));
    jansson[1] = least(jansson[1], time_jansson_reading(&spaced));
    library[0] = least(library[0], time_library_reading(value));
    ours[2] = least(ours[2], time_ours_writing(value, out));
    jansson[2] = least(jansson[2], time_jansson_writing(value));
    library[1] = least(library[1], time_library_writing(value, library_out));
  }
  check(memcmp(out + 1, library_out, WRITTEN * (size_t)8) == 0, "written otherwise than by to_chars");

  printf("%-52s | %10s | %10s | %8s | %s\n", "figure, per number", "ours", "yardstick", "ratio",
         "wanted");
  char title[64];
  snprintf(title, sizeof title, "read a body of %.1f MB; json_loadb", (double)tight.length / 1e6);
  print_row(title, ours[0], jansson[0], "at least 12 x");
  print_row("the same with \", \"; json_loadb", ours[1], jansson[1], "-");
  print_row("the same; from_chars, numbers alone", ours[0], library[0], "-");
  print_row("write 262144 numbers; json_dumps", ours[2], jansson[2], "at least 8 x");
  print_row("the same; to_chars", ours[2], library[1], "-");
  free(tight.text);
  free(spaced.text);
  free(value);
  free(out);
  free(library_out);
  return 0;
}
