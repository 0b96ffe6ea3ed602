/* kernel: the inner loops, compiled for each instruction set, behind a table that is chosen when
 * the program starts.
 *
 * The loops are written once, over vectors of any width (kernel_loops.h), and compiled for each
 * level by kernel_portable.c, kernel_avx2.c and kernel_avx512.c. Within a level a row's bits do not
 * depend on the rows computed with it: every sum has one order, whatever the other lanes hold. */
#ifndef CORE_KERNEL_H
#define CORE_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/cpu.h"
#include "core/kernel/kernel_activation.h"
#include "core/kernel/kernel_form.h"
#include "core/kernel/kernel_select.h"

enum {
  KERNEL_KEYS = 64,      /* keys of a block of scores */
  KERNEL_LANES_MAX = 16, /* floats of a vector at any level */
  KERNEL_PANEL_MAX = 64, /* most columns of a panel at any level */
  KERNEL_PASS_MAX = 6    /* most rows of a pass over a whole panel, at any level */
};

/* C = start + A B. A is [rows, depth] with any two strides; B and C have `vectors` vectors of
 * columns; row i of C begins as row i of `start` (stride 0: the same row for all, stride of C with
 * start == c: adds to C). Strides are in numbers. */
struct kernel_product {
  size_t rows, depth, vectors;
  const float *a;
  size_t a_row, a_step;
  const void *b; /* floats; for `weights` numbers of the form below */
  enum kernel_form form;
  size_t b_row;
  const float *start;
  size_t start_row;
  float *c;
  size_t c_row;
};

/* How rows are multiplied with a matrix that is read from memory (kernel_weights.h). */
struct kernel_plan {
  size_t rows;  /* most rows of the products for which this plan is used */
  size_t size;  /* least bytes of their matrices: smaller ones are probably in cache */
  size_t pass;  /* most rows of a pass: 1 .. KERNEL_PASS_MAX */
  size_t ahead; /* bytes between multiplied and prefetched numbers, at least a line of a panel; half
                   of it for 16-bit numbers. With several passes, the bytes of a chunk */
};

/* A product with whole panels of columns, packed one after the other. */
struct kernel_weights {
  struct kernel_product first;    /* the product with the first panel */
  size_t panels;                  /* how many panels, side by side in C and `start` */
  size_t panel_step;              /* numbers from one panel to the next in B */
  bool more;                      /* whether one more panel follows in B */
  const struct kernel_plan *plan; /* NULL: one pass over each panel, without prefetching */
};

/* Keys and values whose complete blocks are in several places, key_step and value_step floats
 * apart. A block has the same offset in its place as it would have in the only place. */
struct kernel_blocks {
  const uint32_t *place; /* [turned / KERNEL_KEYS] place of each block */
  size_t key_step, value_step;
  const float *key, *value; /* the rows after the blocks, end to end */
};

/* DeBERTa's disentangled scores, of one head: the sum query.key also has query.p and r.key, before
 * it is scaled. The rows p and r of two tables belong to the distance from key to query. */
struct kernel_disentangled {
  const float *key;   /* [rows, head_size] p; NULL: none */
  const float *query; /* [head_size, rows] by query_row: r, transposed and scaled; NULL: none */
  size_t query_row;   /* at least rows + KERNEL_PANEL_MAX + 2 KERNEL_LANES_MAX */
  /* row[x] is the row of distance x, row[x + 1] the same one or the next: for every x from
   * -reach - KERNEL_LANES_MAX to reach + KERNEL_LANES_MAX. All distances from `reach` on have one
   * row, and so have those up to -reach. */
  const int32_t *row;
  int32_t reach;
  int64_t first; /* the distance from key 0 to query 0 */
};

/* Attention of some queries of one head over the keys of one item. Rows are [n, size] with a
 * stride. Masked keys have a weight of exactly 0: their numbers, except for the bias, must be
 * finite, and do not matter. A query whose keys are all masked has a context and weights of 0. */
struct kernel_tile {
  size_t queries, keys;
  size_t head_size, value_head_size; /* the first is not 0 */
  const float *query, *key, *value;
  size_t query_row, key_row, value_row;
  /* How many leading keys, in complete blocks of KERNEL_KEYS, are transposed: each block is
   * [head_size, KERNEL_KEYS] in the memory of its rows, which lie end to end. Not with segments. */
  size_t turned;
  /* If not NULL, `key` and `value` are those of place 0, whose rows lie end to end. */
  const struct kernel_blocks *blocks;
  /* [head_size] the score is vector.tanh(query + key); NULL: scale query.key. */
  const float *vector;
  float scale;
  float cap;                /* above 0: a scaled score s becomes cap tanh(s / cap) before biases */
  bool sigmoid;             /* the weight is 1 / (1 + e^-score): no softmax */
  const int32_t *from, *to; /* [queries] keys outside of from .. to - 1 are masked */
  const uint8_t *mask;      /* [queries, keys] by mask_row, or NULL */
  size_t mask_row;
  const float *bias; /* [queries, keys] by bias_row, or NULL */
  size_t bias_row;
  /* Also added to the scores, by how far a key is after its query, or NULL. It points to row 0; row
   * i begins i floats before it. The rows of the queries are followed by KERNEL_LANES_MAX - 1 more
   * rows of any finite numbers. */
  const float *relative;
  struct kernel_disentangled disentangled; /* without a `row`: none. Not with a vector */
  bool careful;                            /* scores may overflow: check each one */
  bool huge; /* weighted sums of values, or on two levels of keys, may overflow: a query for which
                one does is computed again with scaled-down weights */
  enum select select;
  const float *chance;        /* [queries] 0 .. 1, for SELECT_SAMPLE */
  size_t segments;            /* if attention has two levels */
  const int32_t *segment_end; /* [segments] keys; NULL: one level. With a softmax and SELECT_SOFT */

  float *context; /* [queries, value_head_size] by context_row */
  size_t context_row;
  float context_factor; /* multiplies the context */
  float *weights;       /* [queries, keys] by weights_row, or NULL */
  size_t weights_row;
  float weights_factor;
  bool weights_add;       /* add to the weights instead of writing them */
  float *segment_weights; /* [queries, segments], or NULL */
  int32_t *pointers; /* [queries] the key with the greatest weight, or the sampled one; -1 if all
                        are masked; or NULL */

  /* [queries] a weight is e^(score - top) factor: attend writes them, measure reads them; or NULL.
   * The factor is 0 if all keys are masked. On two levels they are those of a segment's weight;
   * with sigmoids and if a key is chosen they are undefined. */
  float *top, *factor;
  float *greatest; /* [queries] the greatest weight of each, for measures; or NULL */
  /* [queries] `top` and `factor` within the segment in which the last stretch of keys ended: a call
   * of measure writes them, the next one reads them. On two levels only. */
  float *segment_top, *segment_factor;
};

/* Measures of all heads over some queries of one item. Every sum is over the queries with a visible
 * key, and is added to the old value. */
struct kernel_measure {
  size_t heads;
  const struct kernel_tile *head; /* [heads] of the same queries and keys, top and factor filled */
  size_t row;                     /* of the first query within its item */
  size_t from, to;                /* keys; a call's stretch begins where the last one's ended */
  double *entropy;    /* [heads] of the weights, divided by the logarithm of how many are visible */
  double *distance;   /* [heads] means of |query row - key row| under the weights */
  double *divergence; /* [heads (heads - 1) / 2] of the pairs (0, 1), (0, 2), ... (1, 2), ...
                         Jensen-Shannon. NULL: the weights do not sum to one; then the entropy is
                         not computed, either */
};

/* A norm of rows: (x - mean) / sqrt(variance + epsilon), or x / sqrt(mean square + epsilon), times
 * a factor for each column. */
struct kernel_norm {
  size_t rows, count; /* count is not 0 */
  bool rms;
  float epsilon;
  const float *factor, *shift; /* [count]; the shift may be NULL. Without a factor only the branch
                                  is added */
  const float *x;
  size_t x_row;
  const float *branch; /* added to x first, with the stride of x; or NULL */
  float *sum;          /* receives this sum, with the stride of y; may be y, x or the branch */
  float *y;            /* may be x */
  size_t y_row;
};

/* Which bits kernels compute. */
enum kernel_bits {
  KERNEL_FASTEST, /* those of the level's fastest formulas */
  KERNEL_UNIFORM, /* the same at every level */
  KERNEL_BITS
};

struct kernel {
  enum cpu_level level;
  enum kernel_bits bits;
  size_t lanes;   /* floats of a vector */
  size_t vectors; /* of a panel */
  void (*product)(const struct kernel_product *p);
  void (*weights)(const struct kernel_weights *w);
  const struct kernel_plan *plans; /* by ascending rows; the last one is for any number of rows */
  /* Widens 16-bit numbers that are in order, not in that of kernel_place. */
  void (*widen)(enum kernel_form form, size_t count, const uint16_t *from, float *to);
  /* Most queries of one call of attend, and the scratch floats it needs. */
  size_t (*attend_queries)(size_t head_size, size_t value_head_size);
  size_t (*attend_scratch)(size_t head_size, size_t value_head_size);
  /* Computes attention of `heads` tiles, heads of the same queries and keys. False if the score of
   * a visible key exceeds the float32 range. `scratch` is 64-byte aligned. */
  bool (*attend)(size_t heads, const struct kernel_tile *head, float *scratch);
  /* Transposes a block of keys, [KERNEL_KEYS, size], to [size, KERNEL_KEYS]. */
  void (*turn_keys)(size_t size, const float *rows, float *block);
  /* Copies rows of `count` floats; returns the bits of the greatest magnitude among them, at least
   * KERNEL_NOT_FINITE if one is not finite. */
  uint32_t (*carry)(size_t rows, size_t count, const float *from, size_t from_row, float *to,
                    size_t to_row);
  /* Each number of `to` becomes the greatest of itself and those of the rows in its place; returns
   * as carry does, of the rows. */
  uint32_t (*greatest)(size_t rows, size_t count, const float *from, size_t from_row, float *to);
  /* Returns the same for one row, without copying it. */
  uint32_t (*peak)(size_t count, const float *x);
  /* Computes the cosines [half], then the sines [half], of p by[t]; |p by[t]| <= KERNEL_ANGLE_MAX.
   * `by` is padded with finite numbers to a multiple of KERNEL_LANES_MAX. */
  void (*angles)(double p, size_t half, const double *by, float *angle);
  /* Rotates pairs (x[t], x[half + t]) of each row by the angles of that row; returns as carry does,
   * of the result. */
  uint32_t (*rotate)(size_t rows, size_t half, const float *angle, float *x, size_t x_row);
  /* Returns as carry does, of the result. */
  uint32_t (*norm)(const struct kernel_norm *n);
  /* z becomes its activation, multiplied by `times` [count] in a gated layer; or NULL. Without
   * `times` the result is finite exactly if z is. */
  void (*activate)(enum activation kind, size_t count, float *z, const float *times);
  /* x becomes cap tanh(x / cap); a number that is not finite stays what it is. */
  void (*cap)(float cap, size_t count, float *x);
  /* Most queries of one call of measure, and the scratch floats it needs. */
  size_t (*measure_queries)(size_t head_size, size_t heads);
  size_t (*measure_scratch)(size_t head_size, size_t heads);
  void (*measure)(const struct kernel_measure *m, float *scratch); /* 64-byte aligned */
  /* Returns the sum of x[i] y[i], in double. */
  double (*dot)(size_t count, const float *x, const float *y);
  /* out[i] = e^x[i] as in the softmax, for x <= 6 or so. */
  void (*exp)(size_t count, const float *x, float *out);
  /* out[i] = tanh x[i] as in additive scores, of any number. */
  void (*tanh)(size_t count, const float *x, float *out);
  /* out[i] = ln x[i] as in measures, of normal x > 0. */
  void (*log)(size_t count, const float *x, float *out);
};

static inline size_t kernel_panel(const struct kernel *k) { return k->lanes * k->vectors; }

/* The index of a column in a row of a whole panel in this form. In bfloat16 two vectors are
 * interleaved: the first one's numbers are in the lower halves of lanes as wide as float32. */
static inline size_t kernel_place(const struct kernel *k, enum kernel_form form, size_t column) {
  const size_t pair = column / (2 * k->lanes), lane = column % k->lanes;
  if (form != KERNEL_BFLOAT16) return column;
  return 2 * (pair * k->lanes + lane) + column / k->lanes % 2;
}

/* The plan for `rows` rows and a matrix of `bytes` bytes; NULL: it needs none. */
static inline const struct kernel_plan *kernel_plan(const struct kernel *k, size_t rows,
                                                    size_t bytes) {
  const struct kernel_plan *plan = k->plans;
  while (plan->rows < rows) plan++;
  return bytes > plan->size ? plan : NULL;
}

#define KERNEL_ANGLE_MAX 0x1p32

/* The smallest bits of a magnitude that is not finite. */
#define KERNEL_NOT_FINITE 0x7f800000u

/* The kernel of a level; NULL if this build has none for it. */
const struct kernel *kernel_at(enum cpu_level level, enum kernel_bits bits);

/* The kernel of cpu_level(). */
const struct kernel *kernel_best(enum kernel_bits bits);

/* Begin and end a computation in which subnormal numbers count as zero: they would cost a hundred
 * times more. kernel_leave takes the result of kernel_enter. */
unsigned kernel_enter(void);
void kernel_leave(unsigned mode);

#endif
