/* completions: the fields of POST /v1/completions, and the request that they make: the one that
 * POST /v1/models/NAME/generate makes of the same prompts. */
#include "server/dialect/dialect.h"

#include "server/dialect/openai/completions_answer.h"
#include "server/dialect/openai/generation_fields.h"

/* --- the contract --- */

enum completions_field {
  COMPLETIONS_ECHO = GENERATION_FIELDS,
  COMPLETIONS_TRUNCATE,
  COMPLETIONS_LOGPROBS,
  COMPLETIONS_SUFFIX,
  COMPLETIONS_BEST_OF,
  COMPLETIONS_FIELDS
};

enum { COMPLETIONS_PROMPT = GENERATION_INPUT, MAX_TOKENS = 16 /* the default of "max_tokens" */ };

/* "best_of": 0 or 1, as each text is the only candidate. */
static enum status pass_one(const struct json_t *value, const struct contract_field *field,
                            void *to, struct error *e) {
  size_t count;
  if (stack_read_count(value, field, &count, e) || count <= 1) return e->status;
  return dialect_pass_nothing(value, field, to, e);
}

static const struct contract_field fields[COMPLETIONS_FIELDS] = {
    [COMPLETIONS_PROMPT] = {DIALECT_NAMED("prompt"), DIALECT_TEXTS_OR_TOKENS},
    GENERATION_ROWS,
    [COMPLETIONS_ECHO] = {DIALECT_NAMED("echo"), .read = contract_read_flag,
                          GENERATION_VALUE(echo)},
    [COMPLETIONS_TRUNCATE] = {DIALECT_NAMED("truncate"), .read = stack_fields_truncate,
                              GENERATION_VALUE(native.truncate)},
    [COMPLETIONS_LOGPROBS] = {DIALECT_NAMED("logprobs"), .read = dialect_read_logprobs,
                              GENERATION_VALUE(logprobs)},
    [COMPLETIONS_SUFFIX] = {DIALECT_NAMED("suffix"), .read = dialect_pass_nothing,
                            .nullable = true},
    [COMPLETIONS_BEST_OF] = {DIALECT_NAMED("best_of"), .read = pass_one, .nullable = true}};

static const char prompts_here[] = "use \"prompt\"";

static const struct contract_stray strays[] = {
    {"text", prompts_here},
    {"input", prompts_here},
    {"tokens", prompts_here},
    {"messages", "use POST /v1/chat/completions"},
    {"max_completion_tokens", "use \"max_tokens\""},
    GENERATION_STRAYS,
};

static const struct contract contract = {DIALECT_CONTRACT, .arrays = 1,
                                         .plan_cost = generation_fields_cost};

/* --- what is asked --- */

static enum status check_fields(const struct contract_reading *read) {
  const struct generation_values *v = read->values;
  if (!read->texts && !read->tensor[COMPLETIONS_PROMPT])
    return error_at(read->e, "/prompt", "the field \"prompt\" is missing");
  if (v->echo && v->logprobs.wanted)
    return error_at(read->e, "/echo",
                    "\"echo\" with \"logprobs\" is not supported: POST /v1/models/NAME/score "
                    "returns the log probabilities of a prompt");
  if (read->tensor[COMPLETIONS_PROMPT] && generation_field_is_seen(read, COMPLETIONS_TRUNCATE))
    return error_at(read->e, "/truncate",
                    "\"truncate\" requires texts, but \"prompt\" contains token ids");
  return STATUS_OK;
}

static enum status ask(struct dialect_stack *s, const struct contract_reading *read,
                       struct stack_request *out) {
  static const struct dialect_name names[] = {
      {"/text", "/prompt"}, {"/tokens", "/prompt"}, {"/returns", "/n"}, {NULL, NULL}};
  const struct generation_values *v = read->values;
  if (check_fields(read)) return read->e->status;
  dialect_stack_set_items(s, read, COMPLETIONS_PROMPT);
  /* OpenAI's defaults replace the model's. More tokens than the model has positions for are
   * rejected; the default is reduced to these. */
  s->values.max_tokens = 0;
  s->values.usual_tokens = MAX_TOKENS;
  s->values.choice.temperature = s->values.choice.top_p = 1;
  if (generation_fields_set(s, read)) return read->e->status;
  dialect_stack_truncate(s, v->native.truncate, 0);
  return dialect_stack_check(s, names, out);
}

static void init(void *values, struct arena *a) {
  generation_fields_init(values, &completions_of_prompts, a);
}

const struct dialect completions = {.contract = &contract,
                                    .values_bytes = sizeof(struct generation_values),
                                    .init = init,
                                    .ask = ask,
                                    .answer = completions_answer,
                                    .stream = completions_stream};
