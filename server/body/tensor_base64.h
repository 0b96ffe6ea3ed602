/* tensor_base64: an array of floats in JSON as base64:
 * {"dtype":"F32","shape":[2,3],"base64":"..."}, or a list of such objects, one for each element of
 * the outermost array.
 *
 * The keys come in any order. The bytes go straight from the text into a growing array of the
 * request's arena, one for all objects of a list. Where type and shape come before them, numbers
 * are made of them as they arrive. */
#ifndef SERVER_TENSOR_BASE64_H
#define SERVER_TENSOR_BASE64_H

#include "server/json/tensor.h"

/* One reader reads one value. */
struct tensor_base64;

/* The rule is one of floats. `list`: the '[' of a list has been read, and an object follows. */
struct tensor_base64 *tensor_base64_new(const struct tensor_rule *rule, bool list, struct arena *a,
                                        struct error *e);

/* As tensor_json_feed: reads on in text[0 .. length), which is at `offset` of the body. *used is
 * how many bytes belong to the value, *complete whether it has ended.
 *
 *   invalid-json (offset)      a byte or an escape that no JSON text could have there
 *   invalid-request (pointer)  an unknown, duplicate or missing key, a type or shape that does not
 *                              keep the rule, text that is no base64 (offset, too), bytes that are
 *                              more or fewer than the shape asks for
 *   too-large (limit max_items), overloaded, out-of-memory */
enum status tensor_base64_feed(struct tensor_base64 *r, const char *text, size_t length,
                               size_t offset, size_t *used, bool *complete, struct error *e);

/* After *complete. */
const struct tensor *tensor_base64_view(const struct tensor_base64 *r);

/* Makes numbers of the bytes that came before their type, for a tensor that is `late`: it takes as
 * long as there are bytes. overloaded, out-of-memory. */
enum status tensor_base64_convert(struct tensor_base64 *r, struct error *e);

#endif
