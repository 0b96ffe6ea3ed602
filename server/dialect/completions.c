/* completions: the fields of POST /v1/completions, and what they ask a model for: what
 * POST /v1/models/NAME/generate makes of the same prompts. */
#include "server/dialect/completions.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/run/clock.h"
#include "server/dialect/dialect_fields.h"
#include "server/stack/stack_choice_fields.h"

/* --- the contract --- */

enum completions_field {
  COMPLETIONS_PROMPT,
  COMPLETIONS_ARRAYS,
  COMPLETIONS_MODEL = COMPLETIONS_ARRAYS,
  COMPLETIONS_MAX_TOKENS,
  COMPLETIONS_TEMPERATURE,
  COMPLETIONS_TOP_P,
  COMPLETIONS_N,
  COMPLETIONS_STOP,
  COMPLETIONS_SEED,
  COMPLETIONS_ECHO,
  COMPLETIONS_STREAM,
  COMPLETIONS_STREAM_OPTIONS,
  COMPLETIONS_USER,
  COMPLETIONS_LOGPROBS,
  COMPLETIONS_SUFFIX,
  COMPLETIONS_BEST_OF,
  COMPLETIONS_PRESENCE_PENALTY,
  COMPLETIONS_FREQUENCY_PENALTY,
  COMPLETIONS_LOGIT_BIAS,
  COMPLETIONS_FIELDS
};

enum { MAX_TOKENS = 16 /* where the request does not say */ };

/* The small values as they were read, most of them in the struct of our own fields. */
struct completions_values {
  struct dialect_values common;
  struct stack_values native;
  struct dialect_logprobs logprobs;
  bool echo, tells_usage;
};

#define NAMED(name)     .pointer = "/" name, .name_length = sizeof name - 1
#define VALUE_AT(value) .at = offsetof(struct completions_values, value), .nullable = true
#define PASSED          .read = dialect_pass_nothing, .nullable = true

static const struct contract_field fields[COMPLETIONS_FIELDS] = {
    [COMPLETIONS_PROMPT] =
        {NAMED("prompt"),
         .rule = {.type = TENSOR_INTEGER, .depth_min = 1, .depth_max = 2, .ragged_depth = 2},
         .texts = true, .texts_form = TEXTS_ALONE},
    [COMPLETIONS_MODEL] = {NAMED("model"), .read = dialect_read_model,
                           .at = offsetof(struct completions_values, common)},
    [COMPLETIONS_MAX_TOKENS] = {NAMED("max_tokens"), .read = dialect_read_max_tokens,
                                VALUE_AT(native.max_tokens)},
    [COMPLETIONS_TEMPERATURE] = {NAMED("temperature"), .read = stack_read_temperature,
                                 VALUE_AT(native.choice.temperature)},
    [COMPLETIONS_TOP_P] = {NAMED("top_p"), .read = stack_read_share, VALUE_AT(native.choice.top_p)},
    [COMPLETIONS_N] = {NAMED("n"), .read = stack_read_number, VALUE_AT(native.returns)},
    [COMPLETIONS_STOP] = {NAMED("stop"), .read = stack_read_stop_texts, VALUE_AT(native)},
    [COMPLETIONS_SEED] = {NAMED("seed"), .read = contract_read_seed, VALUE_AT(native.choice.seed)},
    [COMPLETIONS_ECHO] = {NAMED("echo"), .read = contract_read_flag, VALUE_AT(echo)},
    [COMPLETIONS_STREAM] = {NAMED("stream"), .read = contract_read_flag, VALUE_AT(native.stream)},
    [COMPLETIONS_STREAM_OPTIONS] = {NAMED("stream_options"), .read = dialect_read_stream_options,
                                    VALUE_AT(tells_usage)},
    [COMPLETIONS_USER] = {NAMED("user"), .read = dialect_pass_text},
    [COMPLETIONS_LOGPROBS] = {NAMED("logprobs"), .read = dialect_read_logprobs, VALUE_AT(logprobs)},
    [COMPLETIONS_SUFFIX] = {NAMED("suffix"), PASSED},
    [COMPLETIONS_BEST_OF] = {NAMED("best_of"), PASSED},
    [COMPLETIONS_PRESENCE_PENALTY] = {NAMED("presence_penalty"), PASSED},
    [COMPLETIONS_FREQUENCY_PENALTY] = {NAMED("frequency_penalty"), PASSED},
    [COMPLETIONS_LOGIT_BIAS] = {NAMED("logit_bias"), PASSED},
};

static const char prompts_here[] = "it is \"prompt\"";
static const char more_there[] = "POST /v1/models/NAME/generate has it";

static const struct contract_stray strays[] = {
    {"text", prompts_here},
    {"input", prompts_here},
    {"tokens", prompts_here},
    {"messages", "there are no chats: a prompt that is one whole text is \"prompt\""},
    {"max_completion_tokens", "it is \"max_tokens\""},
    {"max_new_tokens", "it is \"max_tokens\""},
    {"top_k", more_there},
    {"min_tokens", more_there},
    {"repetition_penalty", more_there},
    {"beams", more_there},
};

static const struct contract contract = {.field = fields,
                                         .arrays = COMPLETIONS_ARRAYS,
                                         .fields = COMPLETIONS_FIELDS,
                                         .stray = strays,
                                         .strays = sizeof strays / sizeof *strays,
                                         .plan_cost = dialect_plan_cost};

/* As OpenAI's service has it, whatever the model's own choice is. */
static void init(void *values, struct arena *a) {
  struct completions_values *v = values;
  v->native.arena = a;
  v->native.max_tokens = MAX_TOKENS;
  v->native.returns = 1;
  v->native.choice.temperature = v->native.choice.top_p = 1;
}

/* --- what is asked --- */

static bool is_seen(const struct contract_reading *read, enum completions_field field) {
  return (read->seen & ~read->null) >> field & 1;
}

static enum status check_fields(const struct contract_reading *read) {
  const struct completions_values *v = read->values;
  if (!read->texts && !read->tensor[COMPLETIONS_PROMPT])
    return error_at(read->e, "/prompt", "the field \"prompt\" is missing");
  if (v->echo && v->logprobs.wanted)
    return error_at(read->e, "/echo",
                    "with \"logprobs\" there would be those of the prompt, too: POST "
                    "/v1/models/NAME/score has them");
  if (v->tells_usage && !v->native.stream)
    return error_at(read->e, "/stream_options", "it goes with \"stream\": true");
  return STATUS_OK;
}

/* A number that the model's positions do not have room for is refused; the default is cut. */
static void set_values(struct dialect_stack *s, const struct contract_reading *read) {
  const struct completions_values *v = read->values;
  struct stack_values *native = &s->values;
  if (is_seen(read, COMPLETIONS_MAX_TOKENS))
    native->max_tokens = v->native.max_tokens;
  else
    native->usual_tokens = v->native.max_tokens;
  native->choice.temperature = v->native.choice.temperature;
  native->choice.top_p = v->native.choice.top_p;
  native->choice.seed = v->native.choice.seed;
  native->returns = v->native.returns;
  native->stream = v->native.stream;
  native->stop = v->native.stop;
  native->stops = v->native.stops;
  native->text = true;
  native->top = v->logprobs.top;
  native->spelled = v->logprobs.wanted;
  dialect_stack_give(s, STACK_FIELD_TEMPERATURE);
  dialect_stack_give(s, STACK_FIELD_RETURN_TEXT);
}

static enum status ask(struct dialect_stack *s, const struct contract_reading *read,
                       struct stack_request *out) {
  static const struct dialect_name names[] = {
      {"/text", "/prompt"}, {"/tokens", "/prompt"}, {"/returns", "/n"}, {NULL, NULL}};
  if (check_fields(read)) return read->e->status;
  dialect_stack_give_items(s, read, COMPLETIONS_PROMPT);
  set_values(s, read);
  return dialect_stack_check(s, names, out);
}

/* --- the answer --- */

static struct tokenizer_text text_of(const struct texts *t, size_t item) {
  return (struct tokenizer_text){t->bytes + t->part[item].at, t->part[item].length};
}

static struct tokenizer_text spell(const struct contract_reading *read, const struct tokenizer *t,
                                   const int32_t *token, size_t count) {
  struct spell_text text = {NULL, 0, false};
  tokenizer_spell(t, token, count, true, read->arena, &text, read->e);
  return (struct tokenizer_text){text.bytes, text.length};
}

/* The prompts as they were sent; of tokens their text. */
static const struct tokenizer_text *find_prompts(const struct contract_reading *read,
                                                 const struct stack_request *r) {
  const struct tensor *tokens = read->tensor[COMPLETIONS_PROMPT];
  struct tokenizer_text *echo = arena_alloc(read->arena, r->texts, sizeof *echo, read->e);
  const int32_t *token = tokens ? tokens->data : NULL;
  for (size_t i = 0; i < r->texts && !read->e->status; i++) {
    const size_t count = !tokens              ? 0
                         : tokens->depth == 1 ? tokens->count
                                              : tensor_shape_at(tokens, i).dim[0];
    echo[i] =
        tokens ? spell(read, r->utter->terms.tokenizer, token, count) : text_of(read->texts, i);
    if (count) token += count;
  }
  return echo;
}

static const struct completions_told *tell(const struct contract_reading *read, const char *model,
                                           const struct stack_request *r) {
  const struct completions_values *v = read->values;
  struct completions_told *told = arena_alloc(read->arena, 1, sizeof *told, read->e);
  if (!told) return NULL;
  *told = (struct completions_told){.model = model,
                                    .request = r,
                                    .created = (int64_t)time(NULL),
                                    .tells_usage = v->tells_usage,
                                    .logprobs = v->logprobs.wanted};
  snprintf(told->id, sizeof told->id, "cmpl-%016llx", (unsigned long long)clock_now());
  if (v->echo) told->echo = find_prompts(read, r);
  return read->e->status ? NULL : told;
}

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

static enum status answer(struct answer *a, const struct contract_reading *read, const char *model,
                          const struct stack_request *r, size_t max_bytes) {
  const struct completions_told *told = tell(read, model, r);
  return told ? completions_answer(a, told, max_bytes, read->arena, read->e) : read->e->status;
}

static enum status stream(struct stack_stream *s, const struct contract_reading *read,
                          const char *model, const struct stack_request *r) {
  const struct completions_told *told = tell(read, model, r);
  return told ? completions_stream(s, told, read->arena, read->e) : read->e->status;
}

const struct dialect completions = {.contract = &contract,
                                    .values_bytes = sizeof(struct completions_values),
                                    .init = init,
                                    .ask = ask,
                                    .answer = answer,
                                    .stream = stream};
