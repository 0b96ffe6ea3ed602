/* completions_told: what an answer to POST /v1/completions says, at once or as a stream, beside its
 * texts. */
#ifndef SERVER_COMPLETIONS_TOLD_H
#define SERVER_COMPLETIONS_TOLD_H

#include "server/answer/answer.h"
#include "server/dialect/dialect_answer.h"
#include "server/dialect/dialect_fields.h"
#include "server/model/fields/stack_request.h"

/* What a request wants to be told. */
struct completions_wishes {
  struct dialect_logprobs logprobs;
  bool echo;  /* the prompt in front of each text */
  bool usage; /* of a stream: in an event of its own */
};

struct completions_told {
  const char *model;
  const struct stack_request *request;
  const struct tokenizer_text *echo; /* [texts] the prompts; or NULL */
  int64_t created;                   /* seconds since 1970 */
  char id[DIALECT_ID_SIZE];
  bool tells_usage, logprobs;
};

/* `tokens` are those of prompts that are no texts. All is in the arena of what was read. NULL with
 * an error: no memory, or a decoder's pattern takes too long. */
const struct completions_told *completions_tell(const struct completions_wishes *wishes,
                                                const struct contract_reading *read,
                                                const struct tensor *tokens, const char *model,
                                                const struct stack_request *r);

/* OpenAI's word for it: "stop" or "length". */
const char *completions_finish(enum stack_finish finish);

/* {"prompt_tokens":…,"completion_tokens":…,"total_tokens":…} */
char *completions_usage(char *out, const struct answer_usage *u);

#endif
