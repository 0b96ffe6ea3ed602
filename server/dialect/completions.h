/* completions: OpenAI's POST /v1/completions: prompts, texts or tokens, go on, at once or as a
 * stream. */
#ifndef SERVER_COMPLETIONS_H
#define SERVER_COMPLETIONS_H

#include "server/dialect/dialect.h"

extern const struct dialect completions;

/* --- for the files of completions alone --- */

enum { COMPLETIONS_ID_SIZE = 32 };

/* What an answer says beside its texts. */
struct completions_told {
  const char *model;
  const struct stack_request *request;
  const struct tokenizer_text
      *echo;       /* [texts] the prompts, if each is repeated in front of its text; or NULL */
  int64_t created; /* seconds since 1970 */
  char id[COMPLETIONS_ID_SIZE];
  bool tells_usage; /* of a stream: in an event of its own */
  bool logprobs;    /* of each token */
};

/* OpenAI's word for it: "stop" or "length". */
const char *completions_finish(enum stack_finish finish);

/* {"prompt_tokens":…,"completion_tokens":…,"total_tokens":…} */
char *completions_usage(char *out, const struct answer_usage *u);

/* ,"logprobs":… of the tokens of a sequence from one on, before another; and the most bytes of so
 * many, SIZE_MAX: too many to count. */
char *completions_logprobs(const struct completions_told *told, size_t item, size_t from,
                           size_t before, char *out);
size_t completions_logprobs_room(const struct completions_told *told, size_t tokens);

/* The dialect's `answer` and `stream`. */
enum status completions_answer(struct answer *a, const struct completions_told *told,
                               size_t max_bytes, struct arena *arena, struct error *e);
enum status completions_stream(struct stack_stream *s, const struct completions_told *told,
                               struct arena *arena, struct error *e);

#endif
