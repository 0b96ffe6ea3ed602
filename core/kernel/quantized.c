/* quantized: a matrix in bytes, and rows as it reads them. */
#include "core/kernel/quantized.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/huge.h"
#include "core/base/size.h"
#include "core/base/team.h"
#include "core/kernel/narrow.h"

enum {
  DEPTH_MOST = 66000, /* of a whole column: |S| <= 255 127 depth < 2^31 */
  ROW_MULTIPLE = 64   /* numbers; a kernel may write as many past a row's end */
};

/* --- packing --- */

struct quantizing {
  struct quantized *q;
  const float *weight;
};

/* The greatest magnitude: as integers, the bits of finite numbers without sign have their order. */
static float greatest(const float *x, size_t count) {
  int32_t most = 0; /* every machine has vector instructions that compare signed integers */
  float out;
  for (size_t i = 0; i < count; i++) {
    int32_t bits;
    memcpy(&bits, x + i, sizeof bits);
    bits &= INT32_MAX;
    most = bits > most ? bits : most;
  }
  memcpy(&out, &most, sizeof out);
  return out;
}

/* Rounds BYTES_BLOCK numbers below 2^22 as rintf does, without a call for each. */
static void round_to_even(const float *x, float by, uint8_t *to) {
  const float magic = 0x1.8p23f; /* adding it rounds to an integer, kept in the low bits */
  for (size_t k = 0; k < BYTES_BLOCK; k++) {
    const float sum = x[k] * by + magic;
    uint32_t bits;
    memcpy(&bits, &sum, sizeof bits);
    to[k] = (uint8_t)(BYTES_ZERO + bits);
  }
}

/* The same, but as roundf does: halves away from zero. */
static void round_away(const float *x, float by, uint8_t *to) {
  for (size_t k = 0; k < BYTES_BLOCK; k++) {
    const float scaled = x[k] * by;
    const int whole = (int)scaled;
    const float rest = scaled - (float)whole; /* exact */
    to[k] = (uint8_t)(BYTES_ZERO + whole + (rest >= 0.5f) - (rest <= -0.5f));
  }
}

/* Quantizes at most BYTES_BLOCK numbers of a column, which begin a four, to their places: `to` is
 * that of the first one. Further numbers of the last four are zeros. */
static void quantize_some(const struct quantized *q, const float *from, size_t count, float by,
                          uint8_t *to) {
  float filled[BYTES_BLOCK] = {0};
  uint8_t bytes[BYTES_BLOCK];
  if (count < BYTES_BLOCK) from = memcpy(filled, from, count * sizeof *from);
  q->blocks ? round_away(from, by, bytes) : round_to_even(from, by, bytes);
  for (size_t k = 0; k < count; k += BYTES_FOUR) memcpy(to + k * q->columns, bytes + k, BYTES_FOUR);
}

/* One scale for the column: the greatest magnitude becomes 127. */
static void quantize_whole(const struct quantized *q, const float *from, uint8_t *panel,
                           size_t column, float *scale) {
  const float most = greatest(from, q->in);
  *scale = most < BYTES_LEAST ? 0 : most / 127;
  const float by = *scale == 0 ? 0 : 1 / *scale;
  for (size_t k = 0; k < q->in; k += BYTES_BLOCK)
    quantize_some(q, from + k, size_min(BYTES_BLOCK, q->in - k), by,
                  panel + k * q->columns + column * BYTES_FOUR);
}

/* Blocks with the scales and the rounding of llama.cpp's Q8_0. */
static enum status quantize_blocks(const struct quantized *q, const float *from, uint8_t *panel,
                                   size_t column, struct error *e) {
  for (size_t b = 0; b < q->scales; b++) {
    const size_t first = b * BYTES_BLOCK, count = size_min(BYTES_BLOCK, q->in - first);
    uint8_t *record = panel + b * (q->panel_bytes / q->scales);
    const float most = greatest(from + first, count), scale = most / 127;
    const float by = most < BYTES_LEAST ? 0 : 1 / scale; /* float16 has no smaller scale but 0 */
    const uint16_t half = narrow_nearest_float16(scale);
    if (half == NARROW_INFINITE)
      return error_set(e, STATUS_CONFIG, "a weight of %g is too large for int8-block; use int8",
                       (double)most);
    memcpy(record + column * sizeof half, &half, sizeof half);
    quantize_some(q, from + first, count, by,
                  record + q->columns * sizeof half + column * BYTES_FOUR);
  }
  return STATUS_OK;
}

/* Packs one panel. Columns past the last one, and the end of the depth, are zeros. */
static enum status pack_panel(void *of, size_t index, struct error *e) {
  const struct quantizing *p = of;
  const struct quantized *q = p->q;
  const size_t group = index / q->panels, first = index % q->panels * q->columns;
  uint8_t *panel = q->weight + index * q->panel_bytes;
  memset(panel, BYTES_ZERO, q->panel_bytes);
  for (size_t b = 0; q->blocks && b < q->scales; b++)
    memset(panel + b * (q->panel_bytes / q->scales), 0, q->columns * sizeof(uint16_t));
  for (size_t j = 0; j < q->columns && first + j < q->out && !e->status; j++) {
    const float *from = p->weight + (group * q->out + first + j) * q->in;
    if (q->blocks)
      quantize_blocks(q, from, panel, j, e);
    else
      quantize_whole(q, from, panel, j, q->scale + index * q->columns + j);
  }
  return e->status;
}

size_t quantized_bytes(size_t out, size_t in, bool blocks) {
  const size_t depth = size_round_up(in, blocks ? BYTES_BLOCK : BYTES_FOUR);
  const size_t scales = blocks ? depth / BYTES_BLOCK * sizeof(uint16_t) : sizeof(float);
  return size_round_up(out, BYTES_COLUMNS_MAX) * (depth + scales);
}

bool quantized_make(struct quantized *q, const struct byte_kernel *kernel, size_t out, size_t in,
                    size_t groups, bool blocks, const float *weight, struct error *e) {
  *q = (struct quantized){.out = out / groups, .in = in / groups, .groups = groups};
  q->blocks = blocks;
  q->kernel = kernel;
  q->columns = blocks ? q->kernel->block_columns : q->kernel->whole_columns;
  q->depth = size_round_up(q->in, blocks ? BYTES_BLOCK : BYTES_FOUR);
  q->scales = blocks ? q->depth / BYTES_BLOCK : 1;
  q->panels = size_round_up(q->out, BYTES_COLUMNS_MAX) / q->columns;
  q->panel_bytes = q->columns * (q->depth + (blocks ? q->scales * sizeof(uint16_t) : 0));
  if (!blocks && q->in > DEPTH_MOST) {
    error_set(e, STATUS_CONFIG,
              "int8 has at most %d inputs of a matrix, and this one has %zu; use int8-block",
              DEPTH_MOST, q->in);
    return false;
  }
  size_t weights, panels = groups * q->panels;
  if (size_mul(panels, q->panel_bytes, &weights) && weights <= SIZE_MAX / 2) {
    q->bytes = groups * quantized_bytes(q->out, q->in, blocks);
    q->weight = huge_alloc(size_max(weights, 1));
    q->scale = blocks ? NULL : calloc(panels * q->columns + 1, sizeof *q->scale);
  }
  if (!q->weight || (!blocks && !q->scale)) {
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a weight of %zu times %zu", out, in);
    return false;
  }
  team_split(panels, pack_panel, &(struct quantizing){q, weight}, e);
  return e->status == STATUS_OK;
}

void quantized_free(struct quantized *q) {
  free(q->weight);
  free(q->scale);
}

void quantized_weights_of(const struct quantized *q, size_t out, float *weights) {
  must(q->blocks && q->groups == 1);
  const uint8_t *record = q->weight + out / q->columns * q->panel_bytes;
  const size_t column = out % q->columns, step = q->panel_bytes / q->scales;
  for (size_t first = 0; first < q->in; first += BYTES_BLOCK, record += step) {
    const uint8_t *four = record + q->columns * sizeof(uint16_t) + column * BYTES_FOUR;
    uint16_t half;
    memcpy(&half, record + column * sizeof half, sizeof half);
    const float scale = narrow_widen(KERNEL_FLOAT16, half);
    for (size_t k = 0; k < size_min(BYTES_BLOCK, q->in - first); k++)
      weights[first + k] =
          (float)(four[k / BYTES_FOUR * q->columns * BYTES_FOUR + k % BYTES_FOUR] - BYTES_ZERO) *
          scale;
  }
}

/* --- rows --- */

/* The places of quantized rows in their memory. */
struct row_places {
  size_t row;     /* numbers from one row to the next */
  size_t scales;  /* of a row */
  char *numbers;  /* [rows, groups] */
  float *scale;   /* [rows, scales] */
  int32_t *start; /* the same */
  size_t floats;  /* all of it */
};

static struct row_places places_of(const struct quantized *q, size_t rows, float *memory) {
  struct row_places p = {.row = q->groups * size_round_up(q->depth, ROW_MULTIPLE) + ROW_MULTIPLE,
                         .scales = q->groups * q->scales};
  const size_t numbers = rows * p.row * q->kernel->number / sizeof *memory;
  const size_t scales = size_round_up(rows * p.scales, 16);
  p.floats = numbers + 2 * scales;
  if (!memory) return p;
  p.numbers = (char *)memory;
  p.scale = memory + numbers;
  p.start = (int32_t *)(p.scale + scales);
  return p;
}

size_t quantized_floats(const struct quantized *q, size_t rows) {
  return places_of(q, rows, NULL).floats;
}

void quantized_rows(const struct quantized *q, size_t rows, const float *x, size_t x_stride,
                    float *memory) {
  const struct row_places p = places_of(q, rows, memory);
  const size_t size = q->kernel->number, part = size_round_up(q->depth, ROW_MULTIPLE);
  for (size_t i = 0; i < rows; i++)
    for (size_t g = 0; g < q->groups; g++)
      q->kernel->quantize(q->in, q->blocks ? BYTES_BLOCK : q->depth, x + i * x_stride + g * q->in,
                          p.numbers + (i * p.row + g * part) * size,
                          p.scale + i * p.scales + g * q->scales,
                          p.start + i * p.scales + g * q->scales);
}

void quantized_run(const struct quantized *q, size_t group, size_t first, size_t columns,
                   size_t rows, const float *memory, const float *bias, float *y, size_t y_row) {
  const struct row_places p = places_of(q, rows, (float *)memory);
  const size_t part = size_round_up(q->depth, ROW_MULTIPLE);
  for (size_t c = 0; c < columns; c += q->columns) {
    const size_t panel = group * q->panels + (first + c) / q->columns;
    const struct byte_product product = {.rows = rows,
                                         .depth = q->depth,
                                         .weights = q->weight + panel * q->panel_bytes,
                                         .scale = q->scale ? q->scale + panel * q->columns : NULL,
                                         .bias = bias + c,
                                         .x = p.numbers + group * part * q->kernel->number,
                                         .x_row = p.row,
                                         .x_scale = p.scale + group * q->scales,
                                         .x_start = p.start + group * q->scales,
                                         .scale_row = p.scales,
                                         .y = y + c,
                                         .y_row = y_row};
    (q->blocks ? q->kernel->blocks : q->kernel->whole)(&product);
  }
}
