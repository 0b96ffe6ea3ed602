/* completions_told: an answer's name and its prompts, and words of OpenAI's. */
#include "server/dialect/openai/completions_told.h"
#include "server/model/answer/stack_detokenizer.h"

#include <time.h>

/* --- prompts --- */

static struct tokenizer_text text_of(const struct texts *t, size_t item) {
  return (struct tokenizer_text){t->bytes + t->part[item].at, t->part[item].length};
}

static struct tokenizer_text spell(const struct contract_reading *read, const struct tokenizer *t,
                                   const int32_t *token, size_t count) {
  struct decoder_text text = {NULL, 0, false};
  tokenizer_decode(t, token, count, true, read->arena, &text, read->e);
  return (struct tokenizer_text){text.bytes, text.length};
}

static void spell_tokens(const struct contract_reading *read, const struct tensor *tokens,
                         const struct tokenizer *t, struct tokenizer_text *echo, size_t count) {
  const int32_t *token = tokens->data;
  for (size_t i = 0; i < count && !read->e->status; i++) {
    const size_t length = tokens->depth == 1 ? tokens->count : tensor_shape_at(tokens, i).dim[0];
    echo[i] = spell(read, t, token, length);
    token += length;
  }
}

/* The prompts as they were sent; of tokens their text. */
static const struct tokenizer_text *find_prompts(const struct contract_reading *read,
                                                 const struct tensor *tokens,
                                                 const struct stack_request *r) {
  struct tokenizer_text *echo = arena_alloc(read->arena, r->texts, sizeof *echo, read->e);
  if (!echo) return NULL;
  if (!read->texts) spell_tokens(read, tokens, r->detokenizer->terms.tokenizer, echo, r->texts);
  for (size_t i = 0; read->texts && i < r->texts; i++) echo[i] = text_of(read->texts, i);
  return echo;
}

/* --- all --- */

const struct completions_told *completions_tell(const struct completions_wishes *wishes,
                                                const struct contract_reading *read,
                                                const struct tensor *tokens, const char *model,
                                                const struct stack_request *r) {
  struct completions_told *told = arena_alloc(read->arena, 1, sizeof *told, read->e);
  if (!told) return NULL;
  *told = (struct completions_told){.model = model,
                                    .request = r,
                                    .created = (int64_t)time(NULL),
                                    .tells_usage = wishes->usage,
                                    .logprobs = wishes->logprobs.wanted};
  dialect_answer_id("cmpl", told->id);
  if (wishes->echo) told->echo = find_prompts(read, tokens, r);
  return read->e->status ? NULL : told;
}

/* --- words --- */

const char *completions_finish(enum stack_finish finish) {
  return finish == STACK_FINISH_LENGTH ? "length" : "stop";
}

char *completions_usage(char *out, const struct answer_usage *u) {
  const size_t generated = u->generated(u->of);
  out = answer_write_text(out, "{\"prompt_tokens\":");
  out = number_write_integer(out, (int64_t)u->tokens);
  out = answer_write_text(out, ",\"completion_tokens\":");
  out = number_write_integer(out, (int64_t)generated);
  out = answer_write_text(out, ",\"total_tokens\":");
  out = number_write_integer(out, (int64_t)(u->tokens + generated));
  return answer_write_text(out, "}");
}
