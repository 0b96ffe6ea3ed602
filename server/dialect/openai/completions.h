/* completions: OpenAI's POST /v1/completions: prompts, texts or tokens, go on, at once or as a
 * stream. */
#ifndef SERVER_COMPLETIONS_H
#define SERVER_COMPLETIONS_H

#include "server/dialect/dialect.h"
#include "server/dialect/openai/completions_told.h"

extern const struct dialect completions;

/* --- for the files of completions alone --- */

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
