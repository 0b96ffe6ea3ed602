/* tensor: an array field of a request as it was read, from text or from bytes, and the rule that it
 * has to keep. The arrays are the request's arena's. */
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

/* What an array field may hold. Its reader refuses anything else, with a pointer to it. */
struct tensor_rule {
  const char *field; /* name, for pointers: "keys" */
  enum tensor_type type;
  bool nullable;      /* the value may be null */
  unsigned depth_min; /* 0: a bare number is a tensor */
  unsigned depth_max;
  unsigned ragged_depth;  /* least depth at which elements may differ in shape */
  size_t width;           /* length of the innermost arrays; 0: any */
  const char *width_name; /* what that length is called, for messages; or NULL */
  size_t max_elements;    /* of the outermost array, where it is a batch (max_items); 0: any. At a
                             depth below `ragged_depth` it holds the rows of one item: unbounded */
  size_t max_count;       /* numbers that there may be beside what the request has already; 0: any.
                             Text is not read far beyond it */
};

/* The shape inside one element of the outermost array: dim[0] is the next level's length. Levels
 * that the element does not have, or that an empty array hides, are 0. */
struct tensor_shape {
  size_t dim[TENSOR_DEPTH_MAX - 1];
};

struct tensor {
  bool null;                  /* the value was null: everything else is empty */
  unsigned depth;             /* of the numbers; without any, of the innermost bracket: `[]` is 1 */
  size_t elements;            /* of the outermost array; for depth 0 it is 0 */
  size_t count;               /* numbers */
  void *data;                 /* [count] of the rule's type */
  struct tensor_shape common; /* of all elements, unless ragged */
  struct tensor_shape *ragged; /* [elements], or NULL if all elements have the common shape */
  bool shaped;   /* its shape was given: no level is hidden by an empty array, and `[0, 4]` is one
                    item without rows */
  bool unjudged; /* floats that came as bytes: some may be infinite or NaN */
  struct tensor_base64 *late; /* not NULL: `data` are not numbers before tensor_base64_settle */
};

static inline struct tensor_shape tensor_shape_at(const struct tensor *t, size_t element) {
  return t->ragged ? t->ragged[element] : t->common;
}

#endif
