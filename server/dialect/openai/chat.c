/* chat: the fields of POST /v1/chat/completions, and the request that they make: the one that POST
 * /v1/models/NAME/generate makes of the prompt that the model's chat template writes. */
#include <jansson.h>

#include "core/base/size.h"
#include "server/dialect/dialect.h"
#include "server/dialect/openai/chat_messages.h"
#include "server/dialect/openai/completions_answer.h"
#include "server/dialect/openai/generation_fields.h"
#include "server/dialect/openai/logprobs.h"
#include "server/json/json_small.h"
#include "server/text/json_string.h"
#include "server/tokenize/conversation.h"

/* --- the contract --- */

enum chat_field {
  CHAT_MAX_COMPLETION_TOKENS = GENERATION_FIELDS,
  CHAT_LOGPROBS,
  CHAT_TOP_LOGPROBS,
  CHAT_RESPONSE_FORMAT,
  CHAT_MODALITIES,
  CHAT_TOOLS,
  CHAT_FUNCTIONS,
  CHAT_TOOL_CHOICE,
  CHAT_FUNCTION_CALL,
  CHAT_DOCUMENTS,
  CHAT_TEMPLATE_KWARGS,
  CHAT_ADD_GENERATION_PROMPT,
  CHAT_CONTINUE_FINAL_MESSAGE,
  CHAT_NOW,
  CHAT_PARALLEL_TOOL_CALLS,
  CHAT_METADATA,
  CHAT_STORE,
  CHAT_SERVICE_TIER,
  CHAT_SAFETY_IDENTIFIER,
  CHAT_PROMPT_CACHE_KEY,
  CHAT_PROMPT_CACHE_RETENTION,
  CHAT_VERBOSITY,
  CHAT_AUDIO,
  CHAT_PREDICTION,
  CHAT_WEB_SEARCH_OPTIONS,
  CHAT_REASONING_EFFORT,
  CHAT_FIELDS
};

/* The small values as they were read. */
struct chat_values {
  struct generation_values generation;
  struct conversation conversation;
  size_t max_completion_tokens;
};

_Static_assert(offsetof(struct chat_values, generation) == 0, "generation_values are first");

/* --- values that have no effect, or are refused --- */

#define NO_TOOLS                                                                        \
  "tools are not supported: POST /v1/models/NAME/render writes them into a prompt for " \
  "/v1/completions"

static enum status ignore(const json_t *value, const struct contract_field *field, void *to,
                          struct error *e) {
  (void)value, (void)field, (void)to;
  return e->status;
}

static enum status refuse(const json_t *value, const struct contract_field *field, void *to,
                          struct error *e) {
  (void)value, (void)to;
  return error_at(e, field->pointer, "%s is not supported: remove it", contract_name(field));
}

/* Long values are not parsed: none of them is supported, or has an effect. */
static enum status pass_text(const char *text, size_t length, size_t offset,
                             const struct contract_field *field, void *to, struct error *e) {
  (void)text, (void)length, (void)offset;
  return field->read(NULL, field, to, e);
}

/* Lists of tools must be empty. */
static enum status pass_no_tools(const json_t *value, const struct contract_field *field, void *to,
                                 struct error *e) {
  (void)to;
  if (json_is_array(value) && json_array_size(value) == 0) return STATUS_OK;
  return error_at(e, field->pointer, NO_TOOLS);
}

/* Without tools, "auto" is the same as "none". */
static enum status pass_no_choice(const json_t *value, const struct contract_field *field, void *to,
                                  struct error *e) {
  (void)to;
  if (json_small_is_text(value, "none") || json_small_is_text(value, "auto")) return STATUS_OK;
  return error_at(e, field->pointer, NO_TOOLS);
}

/* A response's format must be {"type": "text"}. */
static enum status pass_text_format(const json_t *value, const struct contract_field *field,
                                    void *to, struct error *e) {
  (void)to;
  if (json_small_is_text(json_object_get(value, "type"), "text")) return STATUS_OK;
  return error_at(e, field->pointer,
                  "structured output is not supported: response_format must be {\"type\": "
                  "\"text\"}");
}

/* Modalities must be ["text"]. */
static enum status pass_text_modality(const json_t *value, const struct contract_field *field,
                                      void *to, struct error *e) {
  (void)to;
  if (json_array_size(value) == 1 && json_small_is_text(json_array_get(value, 0), "text"))
    return STATUS_OK;
  return error_at(e, field->pointer, "modalities must be [\"text\"]: audio is not supported");
}

static enum status pass_effort(const json_t *value, const struct contract_field *field, void *to,
                               struct error *e) {
  (void)value, (void)to;
  return error_at(e, field->pointer,
                  "reasoning_effort is not supported: set the variable of the chat template in "
                  "chat_template_kwargs");
}

/* --- the table --- */

/* A field without a value of its own. */
#define CHAT_BARE(name, reader)                                                    \
  {                                                                                \
    DIALECT_NAMED(name), .read = reader, .read_text = pass_text, .nullable = true, \
                         .longest = CONVERSATION_LONGEST                           \
  }

static const struct contract_field fields[CHAT_FIELDS] = {
    [GENERATION_INPUT] = CONVERSATION_KEEPS(struct chat_values, "messages", conversation_read_list,
                                            CONVERSATION_MESSAGES),
    GENERATION_ROWS,
    [CHAT_MAX_COMPLETION_TOKENS] = {DIALECT_NAMED("max_completion_tokens"),
                                    .read = dialect_read_max_tokens,
                                    .at = offsetof(struct chat_values, max_completion_tokens),
                                    .nullable = true},
    [CHAT_LOGPROBS] = {DIALECT_NAMED("logprobs"), .read = contract_read_flag,
                       GENERATION_VALUE(logprobs.wanted)},
    [CHAT_TOP_LOGPROBS] = {DIALECT_NAMED("top_logprobs"), .read = dialect_read_top_logprobs,
                           GENERATION_VALUE(logprobs.top)},
    [CHAT_RESPONSE_FORMAT] = CHAT_BARE("response_format", pass_text_format),
    [CHAT_MODALITIES] = CHAT_BARE("modalities", pass_text_modality),
    [CHAT_TOOLS] = CHAT_BARE("tools", pass_no_tools),
    [CHAT_FUNCTIONS] = CHAT_BARE("functions", pass_no_tools),
    [CHAT_TOOL_CHOICE] = CHAT_BARE("tool_choice", pass_no_choice),
    [CHAT_FUNCTION_CALL] = CHAT_BARE("function_call", pass_no_choice),
    [CHAT_DOCUMENTS] = CONVERSATION_KEEPS(struct chat_values, "documents", conversation_read_list,
                                          CONVERSATION_DOCUMENTS),
    [CHAT_TEMPLATE_KWARGS] = CONVERSATION_KEEPS(struct chat_values, "chat_template_kwargs",
                                                conversation_read_object, CONVERSATION_VARIABLES),
    [CHAT_ADD_GENERATION_PROMPT] =
        CONVERSATION_FLAG(struct chat_values, "add_generation_prompt", prompts),
    [CHAT_CONTINUE_FINAL_MESSAGE] =
        CONVERSATION_FLAG(struct chat_values, "continue_final_message", continues),
    [CHAT_NOW] = CONVERSATION_NOW(struct chat_values),
    [CHAT_PARALLEL_TOOL_CALLS] = CHAT_BARE("parallel_tool_calls", ignore),
    [CHAT_METADATA] = CHAT_BARE("metadata", ignore),
    [CHAT_STORE] = CHAT_BARE("store", ignore),
    [CHAT_SERVICE_TIER] = CHAT_BARE("service_tier", ignore),
    [CHAT_SAFETY_IDENTIFIER] = CHAT_BARE("safety_identifier", ignore),
    [CHAT_PROMPT_CACHE_KEY] = CHAT_BARE("prompt_cache_key", ignore),
    [CHAT_PROMPT_CACHE_RETENTION] = CHAT_BARE("prompt_cache_retention", ignore),
    [CHAT_VERBOSITY] = CHAT_BARE("verbosity", ignore),
    [CHAT_AUDIO] = CHAT_BARE("audio", refuse),
    [CHAT_PREDICTION] = CHAT_BARE("prediction", refuse),
    [CHAT_WEB_SEARCH_OPTIONS] = CHAT_BARE("web_search_options", refuse),
    [CHAT_REASONING_EFFORT] = CHAT_BARE("reasoning_effort", pass_effort)};

_Static_assert((int)CHAT_FIELDS <= CONTRACT_FIELDS_MAX, "each field has a bit");

static const char conversation_here[] = "use \"messages\", a list of {\"role\", \"content\"}";

static const struct contract_stray strays[] = {
    {"prompt", conversation_here},
    {"text", conversation_here},
    {"input", conversation_here},
    {"truncate", "shorten the conversation: a prompt that is cut has no last message"},
    {"echo", "use \"continue_final_message\""},
    {"enable_thinking", "use \"chat_template_kwargs\""},
    {"chat_template", "set \"chat_template\" in the model's definition"},
    GENERATION_STRAYS,
};

static uint64_t plan_cost(const struct contract_reading *r) {
  return CONVERSATION_NS + generation_fields_cost(r);
}

static const struct contract contract = {DIALECT_CONTRACT, .plan_cost = plan_cost};

static void init(void *values, struct arena *a) {
  struct chat_values *v = values;
  generation_fields_init(&v->generation, &completions_of_chat, a);
  conversation_init(&v->conversation, a);
}

static void done(void *values) { conversation_done(&((struct chat_values *)values)->conversation); }

/* --- what is asked --- */

/* Sets the prompt, the only text of the request, which has all its special tokens. */
static enum status set_prompt(struct dialect_stack *s, const struct contract_reading *read) {
  struct chat_values *v = read->values;
  struct conversation *c = &v->conversation;
  if (!generation_field_is_seen(read, CHAT_ADD_GENERATION_PROMPT)) c->prompts = !c->continues;
  json_t **messages = &c->part[CONVERSATION_MESSAGES].json;
  if (!conversation_parse(c, read->e) &&
      (!*messages || !chat_messages_make(*messages, read->arena, read->e)))
    s->reading.texts = conversation_render(c, s->whole->chat, read);
  conversation_done(c); /* generation takes long */
  dialect_stack_mark(s, STACK_FIELD_TEXT);
  s->values.prompt = (struct contract_text){0};
  s->values.special = false;
  s->values.truncate = 0;
  s->values.advice = "shorten the conversation";
  return read->e->status;
}

/* Sets the token that ends a message besides the ends of the model. */
static enum status set_end(struct dialect_stack *s, struct arena *a, struct error *e) {
  struct stack_choice *c = &s->values.choice;
  const int32_t end = s->whole->chat_end;
  for (size_t i = 0; i < c->ends; i++)
    if (c->end[i] == end) return STATUS_OK;
  if (end < 0) return STATUS_OK;
  int32_t *all = arena_alloc(a, c->ends + 1, sizeof *all, e);
  if (!all) return e->status;
  for (size_t i = 0; i < c->ends; i++) all[i] = c->end[i];
  all[c->ends++] = end;
  c->end = all;
  return STATUS_OK;
}

/* The default of max_tokens, before it is cut to the context and to max_pairs: as many tokens as
 * fit into a small part of the memory of all requests, and into half of a response, so that some
 * requests without max_tokens fit side by side. It depends on the settings and the request alone:
 * the response on a busy server is the same. */
static size_t tokens_of_memory(const struct dialect_stack *s, const struct contract_reading *read) {
  enum { REQUESTS = 32, LEAST = 16 };
  const struct generation_values *v = read->values;
  const struct tokenizer *t = s->whole->tokenizer;
  const struct budget *budget = read->arena->budget;
  const size_t text = tokenizer_text_max(t), top = v->logprobs.top,
               logs = v->logprobs.wanted ? logprobs_room(&logprobs_of_chat, t, top, 1) : 0;
  size_t shown, kept;
  if (!size_mul(text, JSON_STRING_ROOM, &shown) || !size_add(shown, logs, &shown) ||
      !size_add(stack_kept_bytes(s->whole->decoder), text, &kept) ||
      !size_add(kept, shown, &kept) || !size_mul(shown, v->native.returns, &shown) ||
      !size_mul(kept, v->native.returns, &kept))
    return LEAST;
  const size_t memory = budget ? budget->limit / REQUESTS / size_max(kept, 1) : SIZE_MAX,
               room = s->limits->max_answer_bytes / 2 / size_max(shown, 1);
  return size_max(size_min(room, memory), LEAST);
}

static enum status ask(struct dialect_stack *s, const struct contract_reading *read,
                       struct stack_request *out) {
  static const struct dialect_name names[] = {
      {"/text", "/messages"}, {"/tokens", "/messages"}, {"/returns", "/n"}, {NULL, NULL}};
  static const struct dialect_name completion_names[] = {{"/max_tokens", "/max_completion_tokens"},
                                                         {NULL, NULL}};
  const struct chat_values *v = read->values;
  const struct dialect_logprobs *l = &v->generation.logprobs;
  const bool completion = generation_field_is_seen(read, CHAT_MAX_COMPLETION_TOKENS);
  if (l->top > 0 && !l->wanted)
    return error_at(read->e, "/top_logprobs", "top_logprobs requires \"logprobs\": true");
  s->values.max_tokens = 0;
  if (!s->whole->says_temperature) s->values.choice.temperature = 1;
  if (generation_fields_set(s, read) || set_end(s, read->arena, read->e) || set_prompt(s, read))
    return read->e->status;
  s->values.usual_tokens = tokens_of_memory(s, read);
  if (completion) s->values.max_tokens = v->max_completion_tokens;
  if (dialect_stack_check(s, names, out) && completion)
    dialect_stack_locate(completion_names, read->e);
  return read->e->status;
}

const struct dialect chat_completions = {.contract = &contract,
                                         .values_bytes = sizeof(struct chat_values),
                                         .init = init,
                                         .done = done,
                                         .ask = ask,
                                         .answer = completions_answer,
                                         .stream = completions_stream};
