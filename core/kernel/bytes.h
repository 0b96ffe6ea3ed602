/* bytes: products of quantized rows with quantized weights, compiled for each instruction set,
 * behind a table that is chosen when the program starts.
 *
 * A weight is a byte u = q + 128, and a number of a row is a signed q with |q| <= 127. The integer
 * sum S of a product is exact, so its bits depend on no order and no level:
 *
 *   S = sum of (u - 128) q = sum of u q - 128 (sum of q)
 *
 * The second part belongs to the row: it is where the sum of each column starts. Then
 * y = float(S) (scale of the column) (scale of the row) + bias, where the product of the scales is
 * rounded, and the rest is one fused multiply-add. Where the depth is cut into blocks, y begins as
 * the bias, and each block's S is added in this way, block after block.
 *
 * A row x is quantized by the greatest magnitude m among its numbers, or those of a block:
 * q = round(x (127 / m)), to even, with the scale m (1 / 127). If m is not finite, all q are 0 and
 * the scale is NaN, so that the products are NaN, too. If m is below 2^-100, all q and the scale
 * are 0. */
#ifndef CORE_BYTES_H
#define CORE_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/cpu.h"

enum {
  BYTES_ZERO = 128,      /* the weight 0 */
  BYTES_BLOCK = 32,      /* numbers of a block of the depth */
  BYTES_FOUR = 4,        /* numbers of the depth that are multiplied at once */
  BYTES_COLUMNS_MAX = 64 /* of a panel, at any level */
};

#define BYTES_LEAST 0x1p-100f /* smaller magnitudes count as zero */

/* The product of some quantized rows with one panel of columns. Strides are in numbers. */
struct byte_product {
  size_t rows;
  size_t depth;           /* a multiple of BYTES_FOUR, or of BYTES_BLOCK */
  const uint8_t *weights; /* see struct byte_kernel */
  const float *scale;     /* [columns], where a column has one */
  const float *bias;      /* [columns] */
  const void *x;          /* [rows, depth] by x_row */
  size_t x_row;
  const float *x_scale;   /* [rows, 1] or [rows, blocks], by scale_row */
  const int32_t *x_start; /* the same: -128 (sum of q) */
  size_t scale_row;
  float *y; /* [rows, columns] by y_row */
  size_t y_row;
};

/* The panels of a matrix follow each other. A panel of whole columns is
 * [depth / 4][columns][4 bytes]. One of blocks is a record for each block: the scales of the
 * columns as float16, and then [8][columns][4 bytes]. */
struct byte_kernel {
  size_t number;                       /* bytes of a number of a quantized row */
  size_t whole_columns, block_columns; /* of a panel; they divide BYTES_COLUMNS_MAX */
  /* Quantizes `count` numbers in blocks of `block`, a multiple of BYTES_FOUR; the last one is
   * filled up with zeros. `to` has room for 64 numbers more. */
  void (*quantize)(size_t count, size_t block, const float *x, void *to, float *scale,
                   int32_t *start);
  void (*whole)(const struct byte_product *p);
  void (*blocks)(const struct byte_product *p);
};

/* The kernel of a word of ATTEND_CPU; NULL if this build has none for it. */
const struct byte_kernel *byte_kernel_at(const struct cpu_word *word);

/* The kernel of cpu_word(). */
const struct byte_kernel *byte_kernel_best(void);

#endif
