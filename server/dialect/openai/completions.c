/* completions: the fields of POST /v1/completions, and the request that they make: the one that
 * POST /v1/models/NAME/generate makes of the same prompts. */
#include "server/dialect/dialect.h"

#include <stddef.h>

#include "server/dialect/dialect_fields.h"
#include "server/dialect/openai/completions_answer.h"
#include "server/model/fields/stack_choice_fields.h"

/* --- the contract --- */

#define FIELD_OF_OPTION(id, ...) COMPLETIONS_##id,
enum completions_field {
  COMPLETIONS_PROMPT,
  COMPLETIONS_ARRAYS,
  COMPLETIONS_MODEL = COMPLETIONS_ARRAYS,
  COMPLETIONS_MAX_TOKENS,
  COMPLETIONS_N,
  COMPLETIONS_STOP,
  COMPLETIONS_SEED,
  COMPLETIONS_ECHO,
  COMPLETIONS_STREAM,
  COMPLETIONS_STREAM_OPTIONS,
  COMPLETIONS_USER,
  COMPLETIONS_TRUNCATE,
  COMPLETIONS_LOGPROBS,
  COMPLETIONS_SUFFIX,
  COMPLETIONS_BEST_OF,
  COMPLETIONS_LOGIT_BIAS,
  COMPLETIONS_IGNORE_EOS,
  WHOLE_SAMPLING(FIELD_OF_OPTION) COMPLETIONS_FIELDS
};

enum { MAX_TOKENS = 16 }; /* the default of "max_tokens" */

/* The small values as they were read. */
struct completions_values {
  struct dialect_values common;
  struct stack_values native;
  struct completions_wishes wishes;
};

#define VALUE_AT(value) .at = offsetof(struct completions_values, value), .nullable = true
#define OPTION(id, word, ...) \
  [COMPLETIONS_##             \
      id] = {DIALECT_NAMED(#word), .read = stack_read_option, VALUE_AT(native.choice.word)},

_Static_assert(offsetof(struct completions_values, common) == 0, "dialect_values are first");

/* "best_of": 0 or 1, as each text is the only candidate. */
static enum status pass_one(const struct json_t *value, const struct contract_field *field,
                            void *to, struct error *e) {
  size_t count;
  if (stack_read_count(value, field, &count, e) || count <= 1) return e->status;
  return dialect_pass_nothing(value, field, to, e);
}

static const struct contract_field fields[COMPLETIONS_FIELDS] = {
    [COMPLETIONS_PROMPT] = {DIALECT_NAMED("prompt"), DIALECT_TEXTS_OR_TOKENS},
    [COMPLETIONS_MODEL] = DIALECT_MODEL,
    [COMPLETIONS_MAX_TOKENS] = {DIALECT_NAMED("max_tokens"), .read = dialect_read_max_tokens,
                                VALUE_AT(native.max_tokens)},
    [COMPLETIONS_N] = {DIALECT_NAMED("n"), .read = stack_read_number, VALUE_AT(native.returns)},
    [COMPLETIONS_STOP] = {DIALECT_NAMED("stop"), .read = stack_read_stop_texts, VALUE_AT(native),
                          .longest = STACK_STOPS_LONGEST},
    [COMPLETIONS_SEED] = {DIALECT_NAMED("seed"), .read = contract_read_seed,
                          VALUE_AT(native.choice.seed)},
    [COMPLETIONS_ECHO] = {DIALECT_NAMED("echo"), .read = contract_read_flag, VALUE_AT(wishes.echo)},
    [COMPLETIONS_STREAM] = {DIALECT_NAMED("stream"), .read = contract_read_flag,
                            VALUE_AT(native.stream)},
    [COMPLETIONS_STREAM_OPTIONS] = {DIALECT_NAMED("stream_options"),
                                    .read = dialect_read_stream_options, VALUE_AT(wishes.usage)},
    [COMPLETIONS_USER] = DIALECT_USER,
    [COMPLETIONS_TRUNCATE] = {DIALECT_NAMED("truncate"), .read = stack_fields_truncate,
                              VALUE_AT(native.truncate)},
    [COMPLETIONS_LOGPROBS] = {DIALECT_NAMED("logprobs"), .read = dialect_read_logprobs,
                              VALUE_AT(wishes.logprobs)},
    [COMPLETIONS_SUFFIX] = {DIALECT_NAMED("suffix"), .read = dialect_pass_nothing,
                            .nullable = true},
    [COMPLETIONS_BEST_OF] = {DIALECT_NAMED("best_of"), .read = pass_one, .nullable = true},
    [COMPLETIONS_LOGIT_BIAS] = {DIALECT_NAMED("logit_bias"), .read = stack_read_bias,
                                VALUE_AT(native), .longest = STACK_BIAS_LONGEST},
    [COMPLETIONS_IGNORE_EOS] = {DIALECT_NAMED("ignore_eos"), .read = contract_read_flag,
                                VALUE_AT(native.ignores_end)},
    WHOLE_SAMPLING(OPTION)};

static const char prompts_here[] = "use \"prompt\"";
static const char more_there[] = "it is supported by POST /v1/models/NAME/generate";

static const struct contract_stray strays[] = {
    {"text", prompts_here},
    {"input", prompts_here},
    {"tokens", prompts_here},
    {"messages", "chat is not supported: render the chat template and send the text as \"prompt\""},
    {"max_completion_tokens", "use \"max_tokens\""},
    {"max_new_tokens", "use \"max_tokens\""},
    {"banned_tokens", more_there},
    {"beams", more_there},
};

/* Assumes a large model. */
static uint64_t plan_cost(const struct contract_reading *r) {
  enum { LAYERS = 48 };
  const struct completions_values *v = r->values;
  const size_t texts = r->texts ? r->texts->items : 1;
  return dialect_plan_cost(r) + stack_sequences_cost(texts, v->native.returns, LAYERS);
}

static const struct contract contract = {DIALECT_CONTRACT, .arrays = COMPLETIONS_ARRAYS,
                                         .plan_cost = plan_cost};

/* OpenAI's defaults, which replace the model's. */
static void init(void *values, struct arena *a) {
  struct completions_values *v = values;
  v->native.arena = a;
  v->native.max_tokens = MAX_TOKENS;
  v->native.returns = 1;
  v->native.truncate = STACK_TRUNCATE_UNSAID;
  v->native.choice.temperature = 1;
}

/* --- what is asked --- */

static bool is_seen(const struct contract_reading *read, enum completions_field field) {
  return (read->seen & ~read->null) >> field & 1;
}

static enum status check_fields(const struct contract_reading *read) {
  const struct completions_values *v = read->values;
  if (!read->texts && !read->tensor[COMPLETIONS_PROMPT])
    return error_at(read->e, "/prompt", "the field \"prompt\" is missing");
  if (v->wishes.echo && v->wishes.logprobs.wanted)
    return error_at(read->e, "/echo",
                    "\"echo\" with \"logprobs\" is not supported: POST /v1/models/NAME/score "
                    "returns the log probabilities of a prompt");
  if (v->native.returns > 1 && v->native.choice.temperature == 0)
    return error_at(read->e, "/n",
                    "greedy decoding would return %zu identical texts: set \"temperature\" above 0",
                    v->native.returns);
  if (read->tensor[COMPLETIONS_PROMPT] && is_seen(read, COMPLETIONS_TRUNCATE))
    return error_at(read->e, "/truncate",
                    "\"truncate\" requires texts, but \"prompt\" contains token ids");
  if (v->wishes.usage && !v->native.stream)
    return error_at(read->e, "/stream_options", "it requires \"stream\": true");
  return STATUS_OK;
}

static void set_values(struct dialect_stack *s, const struct contract_reading *read) {
#define SET(id, word, ...) \
  if (is_seen(read, COMPLETIONS_##id)) own->word = v->native.choice.word;
  const struct completions_values *v = read->values;
  struct stack_values *native = &s->values;
  struct stack_choice *own = &native->choice;

  /* More tokens than the model has positions for are rejected; the default is reduced to these. */
  if (is_seen(read, COMPLETIONS_MAX_TOKENS))
    native->max_tokens = v->native.max_tokens;
  else
    native->usual_tokens = v->native.max_tokens;

  /* OpenAI's temperature and top_p; the model's other options, unless the request overrides them.
   */
  own->temperature = own->top_p = 1;
  WHOLE_SAMPLING(SET)
  own->seed = v->native.choice.seed;
  own->bias = v->native.choice.bias;
  own->biases = v->native.choice.biases;
  native->ignores_end = v->native.ignores_end;
  native->returns = v->native.returns;
  dialect_stack_truncate(s, v->native.truncate, 0);
  native->stream = v->native.stream;
  native->stop = v->native.stop;
  native->stops = v->native.stops;
  native->text = true;
  native->top = v->wishes.logprobs.top;
  native->token_texts = v->wishes.logprobs.wanted;
  dialect_stack_mark(s, STACK_FIELD_TEMPERATURE);
  dialect_stack_mark(s, STACK_FIELD_RETURN_TEXT);
}

static enum status ask(struct dialect_stack *s, const struct contract_reading *read,
                       struct stack_request *out) {
  static const struct dialect_name names[] = {
      {"/text", "/prompt"}, {"/tokens", "/prompt"}, {"/returns", "/n"}, {NULL, NULL}};
  if (check_fields(read)) return read->e->status;
  dialect_stack_set_items(s, read, COMPLETIONS_PROMPT);
  set_values(s, read);
  return dialect_stack_check(s, names, out);
}

/* --- the response --- */

static struct completions_asked asked(const struct contract_reading *read, const char *model,
                                      const struct stack_request *r) {
  const struct completions_values *v = read->values;
  return (struct completions_asked){&v->wishes, read, read->tensor[COMPLETIONS_PROMPT], model, r};
}

static enum status answer(struct answer *a, const struct contract_reading *read, const char *model,
                          const struct stack_request *r, size_t max_bytes) {
  const struct completions_asked of = asked(read, model, r);
  return completions_answer(a, &of, max_bytes);
}

static enum status stream(struct stack_stream *s, const struct contract_reading *read,
                          const char *model, const struct stack_request *r) {
  const struct completions_asked of = asked(read, model, r);
  return completions_stream(s, &of);
}

const struct dialect completions = {.contract = &contract,
                                    .values_bytes = sizeof(struct completions_values),
                                    .init = init,
                                    .ask = ask,
                                    .answer = answer,
                                    .stream = stream};
