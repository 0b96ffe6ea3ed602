/* layout_matrix: where in a checkpoint the numbers of one role lie, and how they are read. */
#ifndef CONFIG_LAYOUT_MATRIX_H
#define CONFIG_LAYOUT_MATRIX_H

#include "config/checkpoint/checkpoint.h"

/* A part of a tensor: some rows and columns of a matrix, or some numbers of a vector, which counts
 * as one row. No size is 0. */
struct layout_part {
  const struct checkpoint_entry *tensor; /* the checkpoint's */
  size_t row, column;                    /* where it begins */
  size_t rows, columns;
};

/* The weight of one role, and its bias. */
struct layout_matrix {
  bool found, has_bias;
  bool transposed; /* the weight is [in, out]; else [out, in] */
  struct layout_part weight;
  struct layout_part bias; /* one row, as long as the weight has outputs */
};

static inline size_t layout_matrix_out(const struct layout_matrix *m) {
  return m->transposed ? m->weight.columns : m->weight.rows;
}

static inline size_t layout_matrix_in(const struct layout_matrix *m) {
  return m->transposed ? m->weight.rows : m->weight.columns;
}

/* Reads the part as [rows, columns] row-major, or transposed as [columns, rows], whichever way it
 * lies in the file. A team reads it together (core/base/team.h). Errors are those of
 * checkpoint_read_floats. */
enum status layout_matrix_read(struct checkpoint *file, const struct layout_part *part,
                               bool transposed, float *out, struct error *e);

#endif
