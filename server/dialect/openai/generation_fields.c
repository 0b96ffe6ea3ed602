/* generation_fields: the fields that OpenAI's completions and chat completions have in common. */
#include "server/dialect/openai/generation_fields.h"

void generation_fields_init(struct generation_values *v, const struct completions_form *form,
                            struct arena *a) {
  v->form = form;
  v->native.arena = a;
  v->native.returns = 1;
  v->native.truncate = STACK_TRUNCATE_UNSAID;
}

enum status generation_fields_set(struct dialect_stack *s, const struct contract_reading *read) {
#define SET(id, word, ...) \
  if (generation_field_is_seen(read, GENERATION_##id)) own->word = v->native.choice.word;
  const struct generation_values *v = read->values;
  struct stack_values *native = &s->values;
  struct stack_choice *own = &native->choice;
  WHOLE_SAMPLING(SET)
  if (generation_field_is_seen(read, GENERATION_MAX_TOKENS))
    native->max_tokens = v->native.max_tokens;
  own->seed = v->native.choice.seed;
  own->bias = v->native.choice.bias;
  own->biases = v->native.choice.biases;
  native->ignores_end = v->native.ignores_end;
  native->returns = v->native.returns;
  native->stream = v->native.stream;
  native->stop = v->native.stop;
  native->stops = v->native.stops;
  native->text = true;
  native->top = v->logprobs.top;
  native->token_texts = v->logprobs.wanted;
  dialect_stack_mark(s, STACK_FIELD_TEMPERATURE);
  dialect_stack_mark(s, STACK_FIELD_RETURN_TEXT);
  if (native->returns > 1 && own->temperature == 0)
    return error_at(read->e, "/n",
                    "greedy decoding would return %zu identical texts: set \"temperature\" above 0",
                    native->returns);
  if (v->usage && !native->stream)
    return error_at(read->e, "/stream_options", "it requires \"stream\": true");
  return STATUS_OK;
}

uint64_t generation_fields_cost(const struct contract_reading *read) {
  enum { LAYERS = 48 };
  const struct generation_values *v = read->values;
  const size_t texts = read->texts ? read->texts->items : 1;
  return dialect_plan_cost(read) + stack_sequences_cost(texts, v->native.returns, LAYERS);
}
