/* attention_trace: a trace in the answer: one query's way to its weights, as an object. */
#ifndef SERVER_ATTENTION_TRACE_H
#define SERVER_ATTENTION_TRACE_H

#include "core/attention/trace.h"
#include "core/base/arena.h"
#include "server/answer/answer_section.h"

/* The section "trace" of a call that is prepared. What it needs besides lives in the arena; without
 * memory it has no items, and an error is set. */
struct answer_section attention_trace_section(const struct trace *t, struct arena *a,
                                              struct error *e);

#endif
