/* tensor_json: one JSON value made of nested arrays of numbers, read chunk by chunk into an array.
 *
 * The text is never stored: what a chunk cuts off (a part of one number) is kept in the reader. The
 * numbers go straight into a growing array of the request's arena; no object is made per number.
 * Nothing is ever larger than the numbers that were accepted.
 *
 * The outermost array's elements may differ in shape (a ragged batch: one element is one item);
 * within an element everything is rectangular. Elements of depth below `ragged_depth` must agree:
 * a tensor of depth 2 with rows of two lengths is refused at once. */
#ifndef SERVER_TENSOR_JSON_H
#define SERVER_TENSOR_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"

enum { TENSOR_DEPTH_MAX = 4 };

enum tensor_type {
  TENSOR_FLOAT,  /* number, finite as float32 -> float */
  TENSOR_FLAG,   /* true, false, 1, 0 -> uint8_t */
  TENSOR_INTEGER /* integer without fraction or exponent, of int32's range -> int32_t */
};

/* What the field's contract says; the reader refuses anything else, saying where. */
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
};

/* One reader reads one value. */
struct tensor_reader;

struct tensor_reader *tensor_reader_new(const struct tensor_rule *rule, struct arena *a,
                                        struct error *e);

/* Reads on in text[0 .. length). `offset` is the place of text[0] in the body, for messages. At
 * most `length` bytes are used: *used says how many. Bytes behind the value are left to the caller.
 * *complete tells that the value has ended. A number at depth 0 or `null` ends at the first byte
 * that is no part of it, which may be in the next chunk. After an error the reader is dead.
 *
 *   invalid-json (offset)      a byte that no JSON text could have there, a malformed number, ...
 *   invalid-request (pointer)  a string, object, bool or null where a number belongs, the wrong
 *                              depth, a row of the wrong width, ragged inside an element, beyond
 *                              float32, no integer
 *   too-large (limit max_items), overloaded, out-of-memory */
enum status tensor_reader_feed(struct tensor_reader *r, const char *text, size_t length,
                               size_t offset, size_t *used, bool *complete, struct error *e);

/* After *complete: what was read; the arrays are the arena's. */
const struct tensor *tensor_reader_view(const struct tensor_reader *r);

static inline struct tensor_shape tensor_shape_at(const struct tensor *t, size_t element) {
  return t->ragged ? t->ragged[element] : t->common;
}

#endif
