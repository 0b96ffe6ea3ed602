/* layout_matrix: where the numbers of one role lie in a checkpoint. */
#ifndef CONFIG_LAYOUT_MATRIX_H
#define CONFIG_LAYOUT_MATRIX_H

#include "config/checkpoint/checkpoint.h"

/* A part of a tensor: some rows and columns of a matrix, or some numbers of a vector, which is one
 * row. No size is 0. */
struct layout_part {
  const struct checkpoint_entry *tensor; /* the checkpoint's */
  size_t row, column;                    /* where it begins */
  size_t rows, columns;
};

/* One role. */
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

#endif
