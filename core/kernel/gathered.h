/* gathered: rows of several runs that go through a matrix together, and where their products go.
 *
 * Few rows, of all runs of a batch, do not occupy all threads: then the columns of the matrix are
 * shared out. A product's bits are the same both ways (gemm.h). */
#ifndef CORE_GATHERED_H
#define CORE_GATHERED_H

#include "core/kernel/gemm.h"
#include "core/kernel/kernel.h"
#include "core/run/run.h"

enum {
  GATHERED_ROWS = 128,   /* most rows that go through a matrix together */
  SHARED_ROWS = 128,     /* of a batch: with more, cutting by rows occupies all threads */
  SHARED_WORK = 4000000, /* operations of a unit of columns: some tens of microseconds */
  SHARED_COLUMNS = 256   /* least columns of such a unit */
};

/* Consecutive rows of a run. */
struct gathered_part {
  struct run *run;
  size_t row, rows;  /* `row` is their number in the run, for faults */
  const float *from; /* the first row; the others follow it */
  float *to;         /* the place of the first product, `to_row` floats before that of the next */
  size_t to_row;
  size_t bad;   /* the first row whose product is not finite; `rows`: none */
  uint32_t top; /* bits of the greatest magnitude among the products */
};

/* The rows of all parts, which have `width` numbers each, as one matrix: in place if they are
 * adjacent, else in `copy`. */
const float *gathered_rows(const struct gathered_part *part, size_t parts, size_t width,
                           float *copy);

/* Updates `top` and `bad` with the greatest magnitude of some columns, which are at `x`, with
 * `x_row` floats from one row to the next. Only if it is not finite, the first row with such a
 * number is searched.
 */
void gathered_update(struct gathered_part *p, uint32_t top, size_t columns, const float *x,
                     size_t x_row);

/* An activation of products; with a gate it is that of the products with the gate, a matrix of the
 * same size, and is multiplied by the others. */
struct gathered_activation {
  enum activation kind;
  const struct gemm *gate; /* NULL: none */
  float *gated;            /* [rows, gemm_stripe(gate)] scratch for it */
};

/* A product of rows with some columns of a matrix. */
struct gathered_product {
  const struct gemm *matrix;
  size_t first, end; /* columns */
  const float *x;    /* [rows of all parts, in] with row stride x_row */
  size_t x_row;
  float *scratch; /* gemm_scratch_floats(matrix, rows): a stripe, and the rows as it reads them */
  const struct gathered_activation *activation; /* NULL: none */
  float cap; /* without an activation: a product x becomes cap tanh(x / cap); 0: it stays */
};

/* Computes the product, a stripe at a time, and copies it to the places of the parts, which are
 * those of column `first`. Without an activation it updates `top` and `bad`. */
void gathered_multiply(const struct gathered_product *p, struct gathered_part *part, size_t parts);

/* Records the first fault of each part, as its row. */
void gathered_record_faults(const struct gathered_part *part, size_t parts, unsigned step);

/* How many of all `columns` make a unit where they are shared out, if the rows' product with one
 * column is `work` operations: at least `least` times as many as are worth a unit, and a multiple
 * of `whole`. */
size_t shared_columns(size_t columns, double work, size_t least, size_t whole);

#endif
