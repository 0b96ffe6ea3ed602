/* attention_trace: the trace of one query's weights, in a single layer or in one attention of a
 * whole model: how it is read, whether the query exists, and what it adds to the response. */
#ifndef SERVER_ATTENTION_TRACE_H
#define SERVER_ATTENTION_TRACE_H

#include "core/attention/geometry.h"
#include "core/attention/layer.h"
#include "core/attention/trace.h"
#include "core/base/arena.h"
#include "server/answer/answer_section.h"

struct json_t;

/* The query whose weights are traced, in one head. Not yet checked against the request's shapes. */
struct attention_traced {
  bool asked;
  size_t item, head, query;
};

/* Why a response with a trace cannot be safetensors, and what to do. */
extern const char attention_traced_is_json[];

/* Reads a trace, whose JSON Pointer is `pointer`. With `attention`, for a model of several
 * attentions, a member "attention" is required: its value is left there, unread. NULL: there is one
 * attention. Returns the status of `e`. */
enum status attention_traced_read(const struct json_t *value, const char *pointer,
                                  const struct json_t **attention, struct attention_traced *out,
                                  struct error *e);

/* Returns the trace to be computed, in the arena. NULL with an error at the member that is out of
 * range. */
struct trace *attention_traced_find(const struct attention_traced *asked, const struct geometry *g,
                                    size_t heads, struct arena *a, struct error *e);

/* Adds the most bytes of the numbers of a trace, of a query with this many keys. Returns false if
 * the sum overflows. */
bool attention_traced_count(size_t keys, const struct layer_shape *s, size_t *sum);

/* Returns the section "trace" of a prepared call. Its parts are in the arena; without memory it has
 * no items, and `e` has the error. */
struct answer_section attention_trace_section(const struct trace *t, struct arena *a,
                                              struct error *e);

#endif
