/* tensor_base64: an array of floats in JSON as base64:
 * {"dtype":"F32","shape":[2,3],"base64":"..."}, or a list of such objects, one for each element of
 * the outermost array.
 *
 * The keys come in any order. The bytes go straight from the text into a growing array of the
 * request's arena, one for all objects of a list. If type and shape come first, the bytes become
 * numbers as they arrive. */
#ifndef SERVER_TENSOR_BASE64_H
#define SERVER_TENSOR_BASE64_H

#include "server/json/tensor.h"

/* One reader reads one value. */
struct tensor_base64;

/* The rule must be one of floats. `list`: the '[' of a list has been read, and an object follows.
 * Returns NULL with an error. */
struct tensor_base64 *tensor_base64_new(const struct tensor_rule *rule, bool list, struct arena *a,
                                        struct error *e);

/* Continues with text[0 .. length), which is at `offset` of the body. *used is how many bytes
 * belong to the value, *complete whether it has ended. Returns the status of `e`.
 *
 *   invalid-json (offset)      a byte or an escape that JSON cannot have there
 *   invalid-request (pointer)  an unknown, duplicate or missing key, a type or shape that violates
 *                              the rule, text that is not base64 (with an offset), more or fewer
 * bytes than the shape requires too-large (limit max_items), overloaded, out-of-memory */
enum status tensor_base64_feed(struct tensor_base64 *r, const char *text, size_t length,
                               size_t offset, size_t *used, bool *complete, struct error *e);

/* Returns the tensor, after *complete. */
const struct tensor *tensor_base64_view(const struct tensor_base64 *r);

/* Converts the bytes that came before their type, for a tensor that is `late`. The time is in
 * proportion to the bytes. Returns the status of `e`: overloaded, out-of-memory. */
enum status tensor_base64_convert(struct tensor_base64 *r, struct error *e);

#endif
