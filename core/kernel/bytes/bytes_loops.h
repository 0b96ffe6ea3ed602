/* bytes_loops: the loops of one table of products of bytes.
 *
 * A template: bytes_<word>.c defines its parameters and includes it once.
 *
 *   BYTES      the table's name
 *   LANES      columns of a vector: 4, 8 or 16
 *   VECTORS    vectors of a panel of whole columns; one of blocks has BLOCK_VECTORS
 *   HAVE_...   operations of kernel_vector.h
 *
 * and one of two ways to multiply four bytes of the depth in each column. `sum` and `w` are vectors
 * of LANES 32-bit integers:
 *
 *   HAVE_FOURS fours(sum, w, x): sum + the products of four unsigned bytes with four signed ones
 *   HAVE_PAIRS pairs(sum, w, x): sum + the products of two pairs of 16-bit integers. A row consists
 *              of such integers, in each four in the order 0 2 1 3: the even bytes of w are masked,
 *              the odd ones shifted down
 *
 * Without either, four products are computed one by one. All sums are exact: they have the same
 * bits at every level. */
#include "core/kernel/bytes.h"

#include <stdbool.h>

#include "core/base/size.h"
#include "core/kernel/kernel_form.h"

#define UNIFORM
#include "core/kernel/loops/kernel_vector.h"

enum { ROWS = 6, LINE = 64, STEP = BYTES_FOUR * LANES /* bytes of a vector */ };

/* Prefetched lines go to the second cache where a panel fills the first one: they would be gone
 * before they are read. Narrow panels go to the first one: with AVX2 8 rows take 0.78 of the time.
 */
enum { AHEAD = LANES == 16 ? 2048 : 4096, LOCALITY = LANES == 16 ? 2 : 3 };

#ifdef HAVE_PAIRS
typedef int16_t number;
#else
typedef int8_t number;
#endif

/* --- rows --- */

typedef number numbers_anywhere __attribute__((vector_size(LANES * sizeof(number)), aligned(1)));

#define LANE_ORDER(i) (((i) & ~3) | ((i)&1) << 1 | ((i)&2) >> 1)
#define LANES_4(i)    LANE_ORDER(i), LANE_ORDER(i + 1), LANE_ORDER(i + 2), LANE_ORDER(i + 3)

/* Numbers in the order in which they are multiplied. */
INLINE ivec in_order(ivec q) {
#ifdef HAVE_PAIRS
#if LANES == 16
  return __builtin_shuffle(q, (ivec){LANES_4(0), LANES_4(4), LANES_4(8), LANES_4(12)});
#else
  return __builtin_shuffle(q, (ivec){LANES_4(0), LANES_4(4)});
#endif
#else
  return q;
#endif
}

#undef LANE_ORDER
#undef LANES_4

INLINE int32_t greatest_magnitude(size_t count, const float *x) {
  const ivec magnitude = ivec_all(INT32_MAX);
  ivec most = {0};
  size_t i = 0;
  for (; i + LANES <= count; i += LANES)
    most = vec_max_int((ivec)vec_load(x + i) & magnitude, most);
  if (i < count) most = vec_max_int((ivec)vec_load_some(x + i, count - i) & magnitude, most);
  return vec_greatest_int(most);
}

/* Quantizes a vector of finite numbers, and stores it. Adding `magic` rounds to an integer, which
 * is in the low bits then. */
INLINE ivec quantize_vector(vec x, float by, number *to) {
  const vec magic = vec_all(0x1.8p23f);
  const ivec q = (ivec)(x * vec_all(by) + magic) - (ivec)magic;
  *(numbers_anywhere *)to = __builtin_convertvector(in_order(q), numbers_anywhere);
  return q;
}

/* The sum of the lanes. */
INLINE int32_t lanes_sum(ivec v) {
#pragma GCC unroll 8
  for (int s = LANES / 2; s > 0; s /= 2) v += (ivec)vec_across((vec)v, s);
  return v[0];
}

/* Quantizes one block of `count` numbers, filled up to `block`. */
INLINE void quantize_block(size_t count, size_t block, const float *x, number *to, float *scale,
                           int32_t *start) {
  const int32_t bits = greatest_magnitude(count, x);
  float most;
  memcpy(&most, &bits, sizeof most);
  if (!(most >= BYTES_LEAST && isfinite(most))) {
    memset(to, 0, block * sizeof *to);
    *scale = isfinite(most) ? 0 : NAN;
    *start = 0;
    return;
  }
  const float by = 127.0f / most;
  ivec sum = {0};
  size_t i = 0;
  for (; i + LANES <= count; i += LANES) sum += quantize_vector(vec_load(x + i), by, to + i);
  for (; i < block; i += LANES) /* the last numbers of the row */
    sum += quantize_vector(i < count ? vec_load_some(x + i, count - i) : vec_all(0), by, to + i);
  *scale = most * (1.0f / 127.0f);
  *start = -BYTES_ZERO * lanes_sum(sum);
}

static void quantize(size_t count, size_t block, const float *x, void *to, float *scale,
                     int32_t *start) {
  number *at = to;
  for (size_t i = 0; i < count; i += block, at += block)
    quantize_block(count - i < block ? count - i : block, block, x + i, at, scale++, start++);
}

/* --- integer sums --- */

INLINE ivec load_bytes(const uint8_t *w) {
  ivec v;
  memcpy(&v, w, sizeof v);
  return v;
}

INLINE ivec all_lanes(const void *x) {
  int32_t four;
  memcpy(&four, x, sizeof four);
  return ivec_all(four);
}

#if !defined HAVE_FOURS && !defined HAVE_PAIRS
INLINE ivec fours(ivec sum, ivec w, const int8_t *x) {
  for (int i = 0; i < BYTES_FOUR; i++) sum += (w >> (8 * i) & 255) * x[i];
  return sum;
}
#elif defined HAVE_FOURS
INLINE ivec fours(ivec sum, ivec w, const int8_t *x) { return fours_of(sum, w, all_lanes(x)); }
#endif

/* Adds the products of `steps` fours of R rows with V vectors of columns to their sums. In each
 * step it prefetches `lines` lines, beginning at `next`. */
INLINE void add_products(const int R, const int V, size_t steps, const uint8_t *w, const number *x,
                         size_t x_row, ivec *sum, const char *next, size_t lines) {
  for (size_t k = 0; k < steps; k++, w += V * STEP, x += BYTES_FOUR) {
    for (size_t i = 0; i < lines; i++, next += LINE) __builtin_prefetch(next, 0, LOCALITY);
#ifdef HAVE_PAIRS
#pragma GCC unroll 2
    for (int odd = 0; odd < 2; odd++) {
      ivec b[VECTORS];
#pragma GCC unroll 4
      for (int v = 0; v < V; v++)
        b[v] = odd ? upper_bytes(load_bytes(w + v * STEP)) : lower_bytes(load_bytes(w + v * STEP));
#pragma GCC unroll 6
      for (int r = 0; r < R; r++) {
        const ivec pair = all_lanes(x + (size_t)r * x_row + 2 * odd);
#pragma GCC unroll 4
        for (int v = 0; v < V; v++) sum[r * V + v] = pairs(sum[r * V + v], b[v], pair);
      }
    }
#else
    ivec b[VECTORS];
#pragma GCC unroll 4
    for (int v = 0; v < V; v++) b[v] = load_bytes(w + v * STEP);
#pragma GCC unroll 6
    for (int r = 0; r < R; r++)
#pragma GCC unroll 4
      for (int v = 0; v < V; v++)
        sum[r * V + v] = fours(sum[r * V + v], b[v], x + (size_t)r * x_row);
#endif
  }
}

INLINE void begin_sums(const int R, const int V, const int32_t *start, size_t start_row,
                       ivec *sum) {
#pragma GCC unroll 6
  for (int r = 0; r < R; r++)
#pragma GCC unroll 4
    for (int v = 0; v < V; v++) sum[r * V + v] = ivec_all(start[(size_t)r * start_row]);
}

/* --- a pass of R rows over a panel --- */

struct ask {
  const char *next; /* the first line to prefetch */
  size_t lines;     /* in each step */
};

INLINE void pass_whole(const int R, const struct byte_product *p, struct ask ask) {
  ivec sum[ROWS * VECTORS];
  begin_sums(R, VECTORS, p->x_start, p->scale_row, sum);
  add_products(R, VECTORS, p->depth / BYTES_FOUR, p->weights, p->x, p->x_row, sum, ask.next,
               ask.lines);
#pragma GCC unroll 6
  for (int r = 0; r < R; r++)
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; v++) {
      const vec by = vec_load(p->scale + v * LANES) * vec_all(p->x_scale[(size_t)r * p->scale_row]);
      vec_store(p->y + (size_t)r * p->y_row + v * LANES,
                vec_fma(__builtin_convertvector(sum[r * VECTORS + v], vec), by,
                        vec_load(p->bias + v * LANES)));
    }
}

enum {
  BLOCK_COLUMNS = BLOCK_VECTORS * LANES,
  RECORD = BLOCK_COLUMNS * 2 + BYTES_BLOCK * BLOCK_COLUMNS
};

INLINE void pass_blocks(const int R, const struct byte_product *p, struct ask ask) {
  const uint8_t *record = p->weights;
  const number *x = p->x;
  vec y[ROWS * BLOCK_VECTORS];
#pragma GCC unroll 6
  for (int r = 0; r < R; r++)
#pragma GCC unroll 2
    for (int v = 0; v < BLOCK_VECTORS; v++)
      y[r * BLOCK_VECTORS + v] = vec_load(p->bias + v * LANES);
  for (size_t b = 0; b < p->depth / BYTES_BLOCK; b++, record += RECORD, x += BYTES_BLOCK) {
    ivec sum[ROWS * BLOCK_VECTORS];
    begin_sums(R, BLOCK_VECTORS, p->x_start + b, p->scale_row, sum);
    add_products(R, BLOCK_VECTORS, BYTES_BLOCK / BYTES_FOUR, record + 2 * BLOCK_COLUMNS, x,
                 p->x_row, sum, ask.next, ask.lines);
    ask.next += ask.lines * LINE * (BYTES_BLOCK / BYTES_FOUR);
#pragma GCC unroll 2
    for (int v = 0; v < BLOCK_VECTORS; v++) {
      const vec scale = vec_float16((const uint16_t *)record + v * LANES);
#pragma GCC unroll 6
      for (int r = 0; r < R; r++) {
        const vec by = scale * vec_all(p->x_scale[(size_t)r * p->scale_row + b]);
        vec *to = &y[r * BLOCK_VECTORS + v];
        *to = vec_fma(__builtin_convertvector(sum[r * BLOCK_VECTORS + v], vec), by, *to);
      }
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < R; r++)
#pragma GCC unroll 2
    for (int v = 0; v < BLOCK_VECTORS; v++)
      vec_store(p->y + (size_t)r * p->y_row + v * LANES, y[r * BLOCK_VECTORS + v]);
}

typedef void pass_fn(const struct byte_product *p, struct ask ask);
#define PASS(kind, rows) \
  static void kind##_##rows(const struct byte_product *p, struct ask ask) { kind(rows, p, ask); }
#define PASSES(kind) \
  PASS(kind, 1) PASS(kind, 2) PASS(kind, 3) PASS(kind, 4) PASS(kind, 5) PASS(kind, 6)
#define NAMES(kind) \
  { kind##_1, kind##_2, kind##_3, kind##_4, kind##_5, kind##_6 }
PASSES(pass_whole)
PASSES(pass_blocks)
static pass_fn *const wholes[ROWS] = NAMES(pass_whole);
static pass_fn *const in_blocks[ROWS] = NAMES(pass_blocks);
#undef PASS
#undef PASSES
#undef NAMES

/* --- all rows --- */

/* Computes passes of nearly equal height. Together they prefetch the next panel, which follows this
 * one in memory; a single pass prefetches what follows a little later, as it reads in order. */
INLINE void all_rows(const struct byte_product *all, pass_fn *const *pass, size_t bytes,
                     size_t lines) {
  const size_t passes = (all->rows + ROWS - 1) / ROWS;
  const size_t height = passes ? all->rows / passes : 0, taller = passes ? all->rows % passes : 0;
  struct byte_product p = *all;
  struct ask ask = {(const char *)p.weights + (passes > 1 || bytes < AHEAD ? bytes : AHEAD), 0};
  size_t left = lines;
  for (size_t i = 0; i < passes; i++) {
    const size_t rows = height + (i < taller);
    ask.lines = left ? (lines + passes - 1) / passes : 0;
    left -= ask.lines < left ? ask.lines : left;
    pass[rows - 1](&p, ask);
    ask.next += ask.lines * LINE * (p.depth / BYTES_FOUR);
    p.x = (const number *)p.x + rows * p.x_row;
    p.x_scale += rows * p.scale_row, p.x_start += rows * p.scale_row;
    p.y += rows * p.y_row;
  }
}

static void whole(const struct byte_product *p) {
  all_rows(p, wholes, p->depth * VECTORS * LANES, size_max(VECTORS * STEP / LINE, 1));
}

static void blocks(const struct byte_product *p) {
  all_rows(p, in_blocks, p->depth / BYTES_BLOCK * RECORD, size_max(BLOCK_VECTORS * STEP / LINE, 1));
}

extern const struct byte_kernel BYTES;
const struct byte_kernel BYTES = {.number = sizeof(number),
                                  .whole_columns = VECTORS * LANES,
                                  .block_columns = BLOCK_COLUMNS,
                                  .quantize = quantize,
                                  .whole = whole,
                                  .blocks = blocks};
