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

#include "server/json/tensor.h"

/* One reader reads one value. */
struct tensor_json;

struct tensor_json *tensor_json_new(const struct tensor_rule *rule, struct arena *a,
                                    struct error *e);

/* Reads on in text[0 .. length). `offset` is the place of text[0] in the body, for messages. At
 * most `length` bytes are used: *used is how many. Bytes behind the value are left to the caller.
 * *complete is whether the value has ended. A number at depth 0 or `null` ends at the first byte
 * that is no part of it, which may be in the next chunk. After an error the reader is dead.
 *
 *   invalid-json (offset)      a byte that no JSON text could have there, a malformed number, ...
 *   invalid-request (pointer)  a string, object, bool or null where a number belongs, the wrong
 *                              depth, a row of the wrong width, ragged inside an element, beyond
 *                              float32, no integer
 *   too-large (limit max_items), overloaded, out-of-memory */
enum status tensor_json_feed(struct tensor_json *r, const char *text, size_t length, size_t offset,
                             size_t *used, bool *complete, struct error *e);

/* After *complete: what was read; the arrays are the arena's. */
const struct tensor *tensor_json_view(const struct tensor_json *r);

#endif
