/* kernel: the inner loops, compiled for each set of instructions, behind one table that is chosen
 * when the program starts.
 *
 * The loops are written once, over vectors of any width (kernel_loops.h), and compiled once for
 * each level by kernel_portable.c, kernel_avx2.c and kernel_avx512.c. Within a level a row's bits
 * do not depend on the rows computed beside it, be they many, few or none: every sum has one order,
 * whatever lies in the lanes. */
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
  KERNEL_PASS_MAX = 6    /* most rows that go down a whole panel at once, at any level */
};

/* C = start + A B. A is [rows, depth] with any two strides; B and C have `vectors` vectors of
 * columns; row i of C begins as row i of `start` (stride 0: the same row for all, stride of C with
 * start == c: adds to C). Strides are in numbers. */
struct kernel_product {
  size_t rows, depth, vectors;
  const float *a;
  size_t a_row, a_step;
  const void *b;         /* floats; in `weights` numbers of any form, */
  enum kernel_form form; /* which is this */
  size_t b_row;
  const float *start;
  size_t start_row;
  float *c;
  size_t c_row;
};

/* How rows go through a matrix that comes from memory (kernel_weights.h). */
struct kernel_plan {
  size_t rows;  /* for products of up to so many rows ... */
  size_t size;  /* ... and matrices of more bytes than these: others probably lie in cache */
  size_t pass;  /* at most so many rows go down a panel at once: 1 .. KERNEL_PASS_MAX */
  size_t ahead; /* bytes between what is multiplied and what is asked for, no less than a line of a
                   panel. Rows of more than one pass go over so many bytes before any goes on. Of
                   numbers of 16 bits half as many are as far */
};

/* The product with whole panels of columns, packed one after the other. */
struct kernel_weights {
  struct kernel_product first;    /* that with the first of them */
  size_t panels;                  /* so many, side by side in C and `start` ... */
  size_t panel_step;              /* ... and so many numbers from the last one in B */
  bool more;                      /* in B one more follows */
  const struct kernel_plan *plan; /* NULL: whole panels, and nothing is asked for */
};

/* Keys and values whose whole blocks lie apart. There are places, so many floats from one to the
 * next, and a block lies in one of them where it would lie if they all did. */
struct kernel_blocks {
  const uint32_t *place; /* [turned / KERNEL_KEYS] of each block */
  size_t key_step, value_step;
  const float *key, *value; /* the rows behind the blocks, end to end */
};

/* Attention of some queries of one head over the keys of one item. Rows are [n, size] with a
 * stride. Keys that a query may not see are multiplied by an exact zero: their numbers must be
 * finite, but for the bias, and do not show. The context and the weights of a query that sees
 * nothing are zero. */
struct kernel_tile {
  size_t queries, keys;
  size_t head_size, value_head_size; /* the first is not 0 */
  const float *query, *key, *value;
  size_t query_row, key_row, value_row;
  /* The first so many keys, whole blocks of KERNEL_KEYS, are turned: each block is [head_size,
   * KERNEL_KEYS], where its rows would lie end to end. Not with segments. */
  size_t turned;
  /* `key` and `value` are those of place 0, whose rows lie end to end; NULL: there is one place. */
  const struct kernel_blocks *blocks;
  /* [head_size] the score is vector.tanh(query + key); NULL: scale query.key. */
  const float *vector;
  float scale;
  bool sigmoid;             /* the weight is 1 / (1 + e^-score): no softmax */
  const int32_t *from, *to; /* [queries] the keys that each may see */
  const uint8_t *mask;      /* [queries, keys] by mask_row, or NULL */
  size_t mask_row;
  const float *bias; /* [queries, keys] by bias_row, or NULL */
  size_t bias_row;
  /* Added to the scores as well, by how far a key lies after its query, or NULL. It points to row
   * 0; row i begins i floats before it. Behind the rows of the queries lie KERNEL_LANES_MAX - 1
   * more, of any finite numbers. */
  const float *relative;
  bool careful; /* scores may leave float32: look at each one */
  bool huge;    /* so may sums of values, and on two levels of keys, by their weights: where one
                   does, its query is computed again by weights that are less */
  enum select select;
  const float *chance;        /* [queries] 0 .. 1, for SELECT_SAMPLE */
  size_t segments;            /* of attention on two levels */
  const int32_t *segment_end; /* [segments] keys; NULL: one level. With a softmax and SELECT_SOFT */

  float *context; /* [queries, value_head_size] by context_row */
  size_t context_row;
  float context_factor; /* multiplies the context */
  float *weights;       /* [queries, keys] by weights_row, or NULL */
  size_t weights_row;
  float weights_factor;
  bool weights_add;       /* add to what is there */
  float *segment_weights; /* [queries, segments], or NULL */
  int32_t *pointers; /* [queries] the heaviest or drawn key, -1 where nothing is seen; or NULL */

  /* [queries] what makes a score a weight, e^(score - top) factor: attend writes them, measure
   * reads them; or NULL. The factor is 0 where nothing is seen. On two levels they make a segment's
   * score its weight; with sigmoids and where a key is chosen they mean nothing. */
  float *top, *factor;
  float *greatest; /* [queries] the greatest weight of each, for measures; or NULL */
  /* [queries] `top` and `factor` within the segment in which the last stretch of keys ended: one
   * call of measure writes them, the next one reads them. On two levels only. */
  float *segment_top, *segment_factor;
};

/* Measures of all heads over some queries of one item. Every sum is over the queries that see
 * something, and is added to what is there. */
struct kernel_measure {
  size_t heads;
  const struct kernel_tile *head; /* [heads] of the same queries and keys, top and factor filled */
  size_t row;                     /* of the first query within its item */
  size_t from, to;                /* the stretch of keys; one call's begins where the last ended */
  double *entropy;    /* [heads] of the weights, over the logarithm of how many keys are seen */
  double *distance;   /* [heads] means of |query row - key row| under the weights */
  double *divergence; /* [heads (heads - 1) / 2] of the pairs (0, 1), (0, 2), ... (1, 2), ...
                         Jensen-Shannon. NULL: the weights do not sum to one, and the entropy is
                         left alone, too */
};

/* Rows that are normalised: (x - mean) / sqrt(variance + epsilon), or x / sqrt(mean square +
 * epsilon), times a factor for each column. */
struct kernel_norm {
  size_t rows, count; /* count is not 0 */
  bool rms;
  float epsilon;
  const float *factor, *shift; /* [count]; the shift may be NULL. Without a factor there is no norm,
                                  but a branch */
  const float *x;
  size_t x_row;
  const float *branch; /* added to x first, with the stride of x; or NULL */
  float *sum;          /* where that goes, with the stride of y; may be y, x or the branch */
  float *y;            /* may be x */
  size_t y_row;
};

struct kernel {
  enum cpu_level level;
  size_t lanes;   /* floats of a vector */
  size_t vectors; /* of a panel */
  void (*product)(const struct kernel_product *p);
  void (*weights)(const struct kernel_weights *w);
  const struct kernel_plan *plans; /* by ascending rows; the last is for any number of them */
  /* What numbers of 16 bits are that lie one behind the other, not as kernel_place has them. */
  void (*widen)(enum kernel_form form, size_t count, const uint16_t *from, float *to);
  /* Queries that one call of attend takes at most, and the scratch floats it needs. */
  size_t (*attend_queries)(size_t head_size, size_t value_head_size);
  size_t (*attend_scratch)(size_t head_size, size_t value_head_size);
  /* Heads of the same queries and keys, as `heads` tiles. False if a score that a query may see is
   * beyond float32. `scratch` is 64-byte aligned. */
  bool (*attend)(size_t heads, const struct kernel_tile *head, float *scratch);
  /* Turns KERNEL_KEYS rows of so many numbers, [KERNEL_KEYS, size], to [size, KERNEL_KEYS]. */
  void (*turn_keys)(size_t size, const float *rows, float *block);
  /* Copies rows of `count` floats; returns the bits of the greatest magnitude among them. That of a
   * number that is not finite is greater than all others. */
  uint32_t (*carry)(size_t rows, size_t count, const float *from, size_t from_row, float *to,
                    size_t to_row);
  /* The same of one row without copying. */
  uint32_t (*peak)(size_t count, const float *x);
  /* The cosines [half], then the sines [half], of p by[t]; |p by[t]| <= KERNEL_ANGLE_MAX. Behind
   * its `half` numbers `by` has more, all finite, up to a multiple of KERNEL_LANES_MAX. */
  void (*angles)(double p, size_t half, const double *by, float *angle);
  /* Turns pairs (x[t], x[half + t]) of each row by the angles of that row; returns what carry does,
   * of the result. */
  uint32_t (*rotate)(size_t rows, size_t half, const float *angle, float *x, size_t x_row);
  /* Returns what carry does, of the result. */
  uint32_t (*norm)(const struct kernel_norm *n);
  /* z becomes its activation, times `times` [count] where a layer is gated, or NULL. Of finite z
   * and without `times` the result is finite, of any other it is not. */
  void (*activate)(enum activation kind, size_t count, float *z, const float *times);
  /* Queries that one call of measure takes at most, and the scratch floats it needs. */
  size_t (*measure_queries)(size_t head_size, size_t heads);
  size_t (*measure_scratch)(size_t head_size, size_t heads);
  void (*measure)(const struct kernel_measure *m, float *scratch); /* 64-byte aligned */
  /* Sum of x[i] y[i], in double. */
  double (*dot)(size_t count, const float *x, const float *y);
  /* out[i] = e^x[i] as the softmax computes it, for x <= 6 or so. */
  void (*exp)(size_t count, const float *x, float *out);
  /* The same for the additive score: tanh of any number. */
  void (*tanh)(size_t count, const float *x, float *out);
  /* And for the measures: ln x of normal x > 0. */
  void (*log)(size_t count, const float *x, float *out);
};

static inline size_t kernel_panel(const struct kernel *k) { return k->lanes * k->vectors; }

/* Where a column lies in a row of a whole panel in this form: in bfloat16 two vectors lie side by
 * side, the first one's numbers in the lower halves of lanes as wide as float32's. */
static inline size_t kernel_place(const struct kernel *k, enum kernel_form form, size_t column) {
  const size_t pair = column / (2 * k->lanes), lane = column % k->lanes;
  if (form != KERNEL_BFLOAT16) return column;
  return 2 * (pair * k->lanes + lane) + column / k->lanes % 2;
}

/* For so many rows and a matrix of so many bytes; NULL: it needs none. */
static inline const struct kernel_plan *kernel_plan(const struct kernel *k, size_t rows,
                                                    size_t bytes) {
  const struct kernel_plan *plan = k->plans;
  while (plan->rows < rows) plan++;
  return bytes > plan->size ? plan : NULL;
}

#define KERNEL_ANGLE_MAX 0x1p32

/* The least bits of a magnitude that is not finite. */
#define KERNEL_NOT_FINITE 0x7f800000u

/* The kernel of a level; NULL if this build has none for it. */
const struct kernel *kernel_at(enum cpu_level level);

/* The kernel of cpu_level(). */
const struct kernel *kernel_best(void);

/* While computing, numbers below float32's normal range count as zero: they would cost a hundred
 * times more. Enter returns what leave needs. */
unsigned kernel_enter(void);
void kernel_leave(unsigned mode);

#endif
