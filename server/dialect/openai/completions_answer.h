/* completions_answer: the response to POST /v1/completions and /v1/chat/completions, at once or as
 * a stream. */
#ifndef SERVER_COMPLETIONS_ANSWER_H
#define SERVER_COMPLETIONS_ANSWER_H

#include "server/answer/answer.h"
#include "server/dialect/dialect_fields.h"
#include "server/model/answer/stack_stream.h"
#include "server/model/fields/stack_request.h"

/* The options that only a response needs. */
struct completions_wishes {
  struct dialect_logprobs logprobs;
  bool echo;  /* whether the prompt is before each text */
  bool usage; /* whether a stream has an event of its usage */
};

/* The format of the response. */
struct completions_form;
extern const struct completions_form completions_of_prompts, completions_of_chat;

/* The request to respond to. */
struct completions_asked {
  const struct completions_form *form;
  const struct completions_wishes *wishes;
  const struct contract_reading *read; /* memory is its arena's, errors go to its `e` */
  const struct tensor *tokens;         /* the prompts; NULL: they are texts */
  const char *model;                   /* its name */
  const struct stack_request *request; /* its run is prepared */
};

/* Plan the response or begin the stream. Fail without memory, or if a decoder's pattern takes too
 * long; completions_answer also as answer_plan does. */
enum status completions_answer(struct answer *a, const struct completions_asked *asked,
                               size_t max_bytes);
enum status completions_stream(struct stack_stream *s, const struct completions_asked *asked);

#endif
