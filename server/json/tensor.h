/* tensor: an array field of a request as it was read, from text or bytes, and the rule that it must
 * satisfy. The arrays are in the request's arena. */
#ifndef SERVER_TENSOR_H
#define SERVER_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/arena.h"

enum { TENSOR_DEPTH_MAX = 4 };

struct tensor_base64;

enum tensor_type {
  TENSOR_FLOAT,  /* number, finite as float32 -> float */
  TENSOR_FLAG,   /* true, false, 1, 0 -> uint8_t */
  TENSOR_INTEGER /* integer without fraction or exponent, of int32's range -> int32_t */
};

/* The rule of an array field. Its reader rejects any other value, with a pointer to it. */
struct tensor_rule {
  const char *field; /* name, for pointers: "keys" */
  enum tensor_type type;
  bool nullable;      /* the value may be null */
  unsigned depth_min; /* 0: a bare number is a tensor */
  unsigned depth_max;
  unsigned ragged_depth;  /* least depth at which elements may differ in shape */
  size_t width;           /* length of the innermost arrays; 0: any */
  const char *width_name; /* name of that length, for messages; or NULL */
  size_t max_elements; /* most elements of the outermost array if it is a batch (max_items); 0: any.
                          At a depth below `ragged_depth` it has the rows of one item: any number */
  size_t max_count;    /* most numbers, given the fields before it; 0: any. Text is not read far
                          beyond it */
};

/* The shape of one element of the outermost array: dim[0] is the next level's length. Levels that
 * are missing, or that an empty array hides, are 0. */
struct tensor_shape {
  size_t dim[TENSOR_DEPTH_MAX - 1];
};

struct tensor {
  bool null;                   /* the value was null: everything else is empty */
  unsigned depth;              /* brackets around a number; without numbers, the most: `[]` is 1 */
  size_t elements;             /* elements of the outermost array; 0 for depth 0 */
  size_t count;                /* numbers */
  void *data;                  /* [count] of the rule's type */
  struct tensor_shape common;  /* shape of all elements, unless ragged */
  struct tensor_shape *ragged; /* [elements], or NULL if all elements have the common shape */
  bool shaped; /* its shape was explicit: no level is hidden by an empty array, and `[0, 4]` is one
                  item without rows */
  bool unjudged;              /* floats that came as bytes: some may be infinite or NaN */
  struct tensor_base64 *late; /* not NULL: `data` are no numbers before tensor_base64_convert */
};

static inline struct tensor_shape tensor_shape_at(const struct tensor *t, size_t element) {
  return t->ragged ? t->ragged[element] : t->common;
}

#endif
