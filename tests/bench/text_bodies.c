/* text_bodies: bodies of plain and of hostile numbers, lists of integers and flags. */
#include "tests/bench/text_bodies.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/status.h"
#include "tests/bench/text_rivals.h"
#include "tests/support/text_yardstick.h"

enum { ROOM = 64 /* bytes per number */ };

static double uniform(uint64_t *state) { /* 0 < u < 1 */
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return ((double)(*state >> 11) + 0.5) * 0x1p-53;
}

static double normal(uint64_t *state) { /* Box and Muller */
  const double radius = sqrt(-2 * log(uniform(state)));
  return radius * cos(6.283185307179586 * uniform(state));
}

void body_normals(float *out, size_t count) {
  uint64_t state = 1;
  for (size_t i = 0; i < count; i++) out[i] = (float)normal(&state);
}

/* Halfway between two neighbours of 24 bits about 4e-7, which takes 40 digits; every second one is
 * then moved by one in its last place. */
static char *write_tie(char *out, uint64_t *state) {
  const double odd = 2 * floor(0x1p23 + uniform(state) * 0x1p23) + 1;
  out += sprintf(out, "%.46f", odd * 0x1p-46);
  const double aside = uniform(state);
  if (aside < 0.5) out[-1] += aside < 0.25 ? 1 : -1;
  return out;
}

static char *write_number(char *out, enum body_kind kind, size_t index, uint64_t *state) {
  switch (kind) {
  case BODY_NORMAL:
  case BODY_SPACED:
    return yardstick_write(out, (float)normal(state));
  case BODY_DOUBLES:
    return out + sprintf(out, "%.17g", normal(state));
  case BODY_DIGITS:
    return out + sprintf(out, "%d", (int)(10 * uniform(state)));
  case BODY_TIES:
    return write_tie(out, state);
  case BODY_DENORMALS:
    return out + sprintf(out, "%.9g", uniform(state) * 0x1p-126);
  case BODY_TINY:
    return out + sprintf(out, "%.6fe-400", 1 + 9 * uniform(state));
  case BODY_ALTERNATING:
    return write_number(out, index % 2 ? BODY_DOUBLES : BODY_DIGITS, index, state);
  }
  return out;
}

static char *write_tensor(struct body *b, char *out, enum body_kind kind, size_t items,
                          uint64_t *state) {
  const size_t row = BODY_WIDTH, item = row * BODY_ROWS, count = items * item;
  *out++ = '[';
  for (size_t i = 0; i < count; i++) {
    if (i && i % row == 0) *out++ = ']';
    if (i && i % item == 0) *out++ = ']';
    if (i) *out++ = ',';
    if (i && kind == BODY_SPACED) *out++ = ' ';
    if (i % item == 0) *out++ = '[';
    if (i % row == 0) *out++ = '[';
    char *number = out;
    out = write_number(out, kind, i, state);
    *out = '\0'; /* for strtof */
    b->value[b->count++] = strtof(number, NULL);
  }
  *out++ = ']', *out++ = ']', *out++ = ']';
  return out;
}

struct body body_make(enum body_kind kind, size_t items) {
  static const char *const name[BODY_FIELDS] = {"queries", "keys", "values"};
  const size_t count = BODY_FIELDS * items * BODY_ROWS * BODY_WIDTH;
  struct body b = {.text = calloc(count + 64, ROOM), .value = calloc(count, sizeof *b.value)};
  must(b.text && b.value);
  uint64_t state = 1;
  char *out = b.text;
  for (size_t f = 0; f < BODY_FIELDS; f++) {
    out += sprintf(out, "%c\"%s\":", f ? ',' : '{', name[f]);
    b.tensor[f] = (size_t)(out - b.text);
    out = write_tensor(&b, out, kind, items, &state);
  }
  *out++ = '}', *out = '\0';
  b.length = (size_t)(out - b.text);
  must(b.length + RIVAL_PADDING <= (count + 64) * ROOM);
  return b;
}

void body_free(struct body *b) {
  free(b->text);
  free(b->value);
}

struct list list_make(enum list_kind kind, size_t rows) {
  const size_t count = rows * BODY_WIDTH;
  struct list l = {.text = calloc(count + 64, 8), .count = count};
  l.value = malloc(count * sizeof *l.value);
  must(l.text && l.value);
  uint64_t state = 1;
  char *out = l.text;
  *out++ = '[';
  for (size_t i = 0; i < count; i++) {
    if (i % BODY_WIDTH == 0) out += sprintf(out, i ? "], [" : "[");
    if (i % BODY_WIDTH) out += sprintf(out, ", ");
    l.value[i] = (int32_t)(uniform(&state) * (kind == LIST_INTEGERS ? 1000 : 2));
    if (kind == LIST_WORDS)
      out += sprintf(out, "%s", l.value[i] ? "true" : "false");
    else
      out += sprintf(out, "%d", (int)l.value[i]);
  }
  out += sprintf(out, "]]");
  l.length = (size_t)(out - l.text);
  must(l.length + RIVAL_PADDING <= (count + 64) * 8);
  return l;
}

void list_free(struct list *l) {
  free(l->text);
  free(l->value);
}
