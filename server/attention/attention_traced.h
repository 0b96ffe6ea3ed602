/* attention_traced: the query of a request whose weights are to be explained, of a layer alone or
 * of one within a whole model: how it is read, whether it is there, and what its trace adds to the
 * answer. */
#ifndef SERVER_ATTENTION_TRACED_H
#define SERVER_ATTENTION_TRACED_H

#include "core/attention/geometry.h"
#include "core/attention/layer.h"
#include "core/attention/trace.h"

struct json_t;

/* Which query's weights are to be explained, in which head; what is not there is refused later. */
struct attention_traced {
  bool asked;
  size_t item, head, query;
};

/* Why an answer with a trace cannot be safetensors, and what to do. */
extern const char attention_traced_is_json[];

/* Reads a trace, whose JSON Pointer is `pointer`. A model of several attentions has a member more,
 * "attention", which says which is meant: it is found here, and left to the caller. NULL: there is
 * one attention. */
enum status attention_traced_read(const struct json_t *value, const char *pointer,
                                  const struct json_t **attention, struct attention_traced *out,
                                  struct error *e);

/* Is the query there, in an attention of so many heads? Then its trace, in the arena; NULL with an
 * error at the member that is not. */
struct trace *attention_traced_find(const struct attention_traced *asked, const struct geometry *g,
                                    size_t heads, struct arena *a, struct error *e);

/* Adds the bytes of a trace's numbers, of `each` at most, to the sum: of a query with so many keys.
 * False: it overflows. */
bool attention_traced_count(size_t keys, const struct layer_shape *s, size_t each, size_t *sum);

#endif
