/* quantized: a matrix in bytes, and rows as it reads them. A part of gemm.c.
 *
 * Numbers, formulas and kernels are those of core/kernel/bytes.h. */
#ifndef CORE_QUANTIZED_H
#define CORE_QUANTIZED_H

#include <stdbool.h>

#include "core/base/status.h"
#include "core/kernel/bytes.h"

/* Sizes are those of one group of the columns, which reads its part of the inputs alone. */
struct quantized {
  size_t out, in, groups;
  bool blocks; /* scales of blocks of the depth; else of whole columns */
  const struct byte_kernel *kernel;
  size_t depth;              /* `in`, filled up with zeros */
  size_t scales;             /* of a row: 1, or one of each block */
  size_t columns, panels;    /* of a panel; panels of a stripe's multiple of columns */
  size_t panel_bytes, bytes; /* of a panel, and of all weights with their scales */
  uint8_t *weight;           /* [groups, panels] */
  float *scale;              /* [groups, panels, columns] of whole columns, or NULL */
};

/* Quantizes a matrix [out, in / groups]; neither is 0. False with an error: there is no memory, or
 * a number is too large for float16's scales, or the depth for int32's sums. A team packs it
 * together. */
bool quantized_make(struct quantized *q, const struct byte_kernel *kernel, size_t out, size_t in,
                    size_t groups, bool blocks, const float *weight, struct error *e);
void quantized_free(struct quantized *q);

/* Bytes of the weights and scales of a matrix with one group. */
size_t quantized_bytes(size_t out, size_t in, bool blocks);

/* Copies the weights [in] of a column, as floats, of a matrix in blocks with one group. */
void quantized_weights_of(const struct quantized *q, size_t out, float *weights);

/* Floats of the memory for `rows` quantized rows. */
size_t quantized_floats(const struct quantized *q, size_t rows);

/* Quantizes rows [rows, groups, in] into this memory. */
void quantized_rows(const struct quantized *q, size_t rows, const float *x, size_t x_stride,
                    float *memory);

/* Computes columns first .. first + columns - 1 of a group, whole panels, for such rows: y [rows,
 * columns] with row stride y_row. `bias` is that of the first column. */
void quantized_run(const struct quantized *q, size_t group, size_t first, size_t columns,
                   size_t rows, const float *memory, const float *bias, float *y, size_t y_row);

#endif
