/* stack_ablation_answer: the response to an ablation of heads, at once or as a stream of events:
 * each head as it is measured, and in the end the whole response or an error. A stream is written
 * by one thread while workers compute. */
#ifndef SERVER_STACK_ABLATION_ANSWER_H
#define SERVER_STACK_ABLATION_ANSWER_H

#include "server/answer/answer.h"
#include "server/body/body_terms.h"
#include "server/model/fields/stack_request.h"

/* Plans the response, from the model of this name, to a request whose runs are prepared. Fails as
 * answer_plan does. */
enum status stack_ablation_answer_plan(struct answer *a, const char *model,
                                       const struct stack_request *r,
                                       const struct body_limits *limits, struct arena *arena,
                                       struct error *e);

struct stack_ablation_stream {
  const struct stack_request *of;
  const struct answer *answer;
  size_t sent; /* heads whose events were written */

  /* After the heads: the event of the response, part by part. */
  size_t part;      /* the next one */
  const char *text; /* the part that is being written, of which `left` bytes are still due */
  size_t left;
  char *held; /* memory for the events of heads and of an error */
};

/* Begins the stream of a request that is prepared, and of its response, whose pieces are written
 * before the stream is `done`. Fails without memory. */
enum status stack_ablation_stream_init(struct stack_ablation_stream *s,
                                       const struct stack_request *of, const struct answer *answer,
                                       struct arena *a, struct error *e);

/* Whether a head was measured: from then on there are events. */
bool stack_ablation_stream_has_begun(const struct stack_ablation_stream *s);

/* Writes events as stack_stream_write does. */
size_t stack_ablation_stream_write(struct stack_ablation_stream *s, bool done, const char *problem,
                                   char *out, size_t room);

#endif
