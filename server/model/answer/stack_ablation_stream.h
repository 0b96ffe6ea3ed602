/* stack_ablation_stream: the events of a request that measures heads, while it is computed: each
 * head as it is measured, and in the end the whole answer, or what went wrong. */
#ifndef SERVER_STACK_ABLATION_STREAM_H
#define SERVER_STACK_ABLATION_STREAM_H

#include "server/answer/answer.h"
#include "server/model/fields/stack_request.h"

struct stack_ablation_stream {
  const struct stack_request *of;
  const struct answer *answer;
  size_t sent; /* heads whose events were written */

  /* Behind the heads: the answer's event, part by part. */
  size_t part;
  const char *text; /* that is being given, of which `left` bytes are still due */
  size_t left;
  char *held; /* events that are made one by one lie here */
};

/* For a request that is prepared, and its answer, whose pieces are written before the stream is
 * `done`. */
enum status stack_ablation_stream_init(struct stack_ablation_stream *s,
                                       const struct stack_request *of, const struct answer *answer,
                                       struct arena *a, struct error *e);

/* Was a head measured? From then on there is an answer. */
bool stack_ablation_stream_has_begun(const struct stack_ablation_stream *s);

/* As stack_stream_write. */
size_t stack_ablation_stream_write(struct stack_ablation_stream *s, bool done, const char *problem,
                                   char *out, size_t room);

#endif
