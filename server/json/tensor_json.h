/* tensor_json: one JSON value of nested arrays of numbers, read chunk by chunk into an array.
 *
 * The text is not stored, except the part of a number that a chunk cuts. The numbers go straight
 * into a growing array of the request's arena; no object is made per number, and memory is in
 * proportion to the numbers that were accepted.
 *
 * The elements of the outermost array may differ in shape (a ragged batch: one element is one
 * item); each element is rectangular. Elements of depth below `ragged_depth` must agree: a tensor
 * of depth 2 with rows of two lengths is rejected at once. */
#ifndef SERVER_TENSOR_JSON_H
#define SERVER_TENSOR_JSON_H

#include "server/json/tensor.h"

/* One reader reads one value. */
struct tensor_json;

struct tensor_json *tensor_json_new(const struct tensor_rule *rule, struct arena *a,
                                    struct error *e);

/* Continues with text[0 .. length), which is at `offset` of the body. *used is how many bytes were
 * read, and *complete whether the value has ended; bytes after it are left to the caller. A number
 * at depth 0 ends at the first byte that is not part of it, which may be in the next chunk. Returns
 * the status of `e`; after a failure the reader must not be used.
 *
 *   invalid-json (offset)      a byte that JSON cannot have there, a malformed number, ...
 *   invalid-request (pointer)  a string, object, bool or null where a number belongs, the wrong
 *                              depth, a row of the wrong width, ragged inside an element, beyond
 *                              float32, no integer
 *   too-large (limit max_items), overloaded, out-of-memory */
enum status tensor_json_feed(struct tensor_json *r, const char *text, size_t length, size_t offset,
                             size_t *used, bool *complete, struct error *e);

/* Returns the tensor, after *complete. Its arrays are in the arena. */
const struct tensor *tensor_json_view(const struct tensor_json *r);

#endif
