/* layout: which tensors of a checkpoint make the layer.
 *
 * The families of names are in layout_family.c; layout_place.h says which layer is meant. The
 * parameters of a score have plain's names where a family has none of its own. They are called
 * exactly so or have .weight behind; a .bias beside one is refused.
 * A `tensors` map names the roles instead: a tensor of exactly that name is taken as it is and
 * alone; otherwise the name is a stem for .weight and, if there is one, .bias. */
#ifndef CONFIG_LAYOUT_H
#define CONFIG_LAYOUT_H

#include "config/checkpoint.h"
#include "config/layout_place.h"

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

size_t layout_out(const struct layout_matrix *m);
size_t layout_in(const struct layout_matrix *m);

struct layout {
  const char *name;   /* "plain", "bert", ..., "tensors" (the map), "none" if no role needs one */
  struct place place; /* without a family where the name is "tensors" or "none" */
  struct layout_matrix matrix[ROLE_COUNT];
};

/* Finds the roles that the definition has, and settles what it does not say by what is usual in
 * that family. `file` NULL: there is no checkpoint, and no role is found. STATUS_CONFIG naming the
 * key or the tensor. */
enum status layout_find(struct layout *l, const struct checkpoint *file, struct definition *d,
                        struct error *e);

#endif
