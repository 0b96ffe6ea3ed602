/* layout_matrix: the tensors of one role in a checkpoint, and the reading of their numbers. */
#ifndef CONFIG_LAYOUT_MATRIX_H
#define CONFIG_LAYOUT_MATRIX_H

#include "config/checkpoint/checkpoint.h"

/* A part of a tensor: rows and columns of a matrix, or numbers of a vector, which is one row. No
 * size is 0. */
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
  struct layout_part bias; /* one row of as many numbers as the weight has outputs */
};

static inline size_t layout_matrix_out(const struct layout_matrix *m) {
  return m->transposed ? m->weight.columns : m->weight.rows;
}

static inline size_t layout_matrix_in(const struct layout_matrix *m) {
  return m->transposed ? m->weight.rows : m->weight.columns;
}

/* Reads the part as [rows, columns] row-major, or transposed as [columns, rows], in whatever order
 * it is stored. A team reads it together (core/base/team.h). Errors are those of
 * checkpoint_read_floats. */
enum status layout_matrix_read(struct checkpoint *file, const struct layout_part *part,
                               bool transposed, float *out, struct error *e);

#endif
