/* generation_fields: the fields that OpenAI's completions and chat completions have in common. A
 * contract of either begins with these rows, so that their values and checks are the same. */
#ifndef SERVER_GENERATION_FIELDS_H
#define SERVER_GENERATION_FIELDS_H

#include <stddef.h>

#include "server/dialect/dialect_fields.h"
#include "server/dialect/dialect_stack.h"
#include "server/model/fields/stack_choice_fields.h"

#define GENERATION_OPTION_ID(id, ...) GENERATION_##id,
enum generation_field {
  GENERATION_INPUT, /* prompts, or messages */
  GENERATION_MODEL,
  GENERATION_MAX_TOKENS,
  GENERATION_N,
  GENERATION_STOP,
  GENERATION_SEED,
  GENERATION_STREAM,
  GENERATION_STREAM_OPTIONS,
  GENERATION_USER,
  GENERATION_LOGIT_BIAS,
  GENERATION_IGNORE_EOS,
  WHOLE_SAMPLING(GENERATION_OPTION_ID) GENERATION_FIELDS
};

struct completions_form;

/* The small values as they were read. Those of a contract begin with them. */
struct generation_values {
  struct dialect_values common;
  struct stack_values native;
  const struct completions_form *form; /* the format of the response */

  /* Options that only a response needs. */
  struct dialect_logprobs logprobs;
  bool echo;  /* whether the prompt is before each text */
  bool usage; /* whether a stream has an event of its usage */
};

#define GENERATION_VALUE(value) .at = offsetof(struct generation_values, value), .nullable = true
#define GENERATION_OPTION(id, word, ...)                                \
  [GENERATION_##id] = {DIALECT_NAMED(#word), .read = stack_read_option, \
                       GENERATION_VALUE(native.choice.word)},

/* All rows of these fields except the input. */
#define GENERATION_ROWS                                                                         \
  WHOLE_SAMPLING(GENERATION_OPTION)                                                             \
  [GENERATION_MODEL] = DIALECT_MODEL,                                                           \
  [GENERATION_MAX_TOKENS] = {DIALECT_NAMED("max_tokens"), .read = dialect_read_max_tokens,      \
                             GENERATION_VALUE(native.max_tokens)},                              \
  [GENERATION_N] = {DIALECT_NAMED("n"), .read = stack_read_number,                              \
                    GENERATION_VALUE(native.returns)},                                          \
  [GENERATION_STOP] = {DIALECT_NAMED("stop"), .read = stack_read_stop_texts,                    \
                       GENERATION_VALUE(native), .longest = STACK_STOPS_LONGEST},               \
  [GENERATION_SEED] = {DIALECT_NAMED("seed"), .read = contract_read_seed,                       \
                       GENERATION_VALUE(native.choice.seed)},                                   \
  [GENERATION_STREAM] = {DIALECT_NAMED("stream"), .read = contract_read_flag,                   \
                         GENERATION_VALUE(native.stream)},                                      \
  [GENERATION_STREAM_OPTIONS] = {DIALECT_NAMED("stream_options"),                               \
                                 .read = dialect_read_stream_options, GENERATION_VALUE(usage)}, \
  [GENERATION_USER] = DIALECT_USER,                                                             \
  [GENERATION_LOGIT_BIAS] = {DIALECT_NAMED("logit_bias"), .read = stack_read_bias,              \
                             GENERATION_VALUE(native), .longest = STACK_BIAS_LONGEST},          \
  [GENERATION_IGNORE_EOS] = {DIALECT_NAMED("ignore_eos"), .read = contract_read_flag,           \
                             GENERATION_VALUE(native.ignores_end)}

/* Rows of names that belong to other endpoints. */
#define GENERATION_ELSEWHERE "it is supported by POST /v1/models/NAME/generate"
#define GENERATION_STRAYS                                                              \
  {"max_new_tokens", "use \"max_tokens\""}, {"banned_tokens", GENERATION_ELSEWHERE}, { \
    "beams", GENERATION_ELSEWHERE                                                      \
  }

_Static_assert(offsetof(struct generation_values, common) == 0, "dialect_values are first");

/* Sets the defaults of values, and the format. */
void generation_fields_init(struct generation_values *v, const struct completions_form *form,
                            struct arena *a);

/* Whether the request has the field, and not null. */
static inline bool generation_field_is_seen(const struct contract_reading *read, unsigned field) {
  return (read->seen & ~read->null) >> field & 1;
}

/* Sets the request's options of generation; the model's, or those that were set before, stay where
 * the request has none. Its text is returned. Checks the fields against each other: returns the
 * status of read->e. */
enum status generation_fields_set(struct dialect_stack *s, const struct contract_reading *read);

/* A contract's plan_cost; assumes a large model. */
uint64_t generation_fields_cost(const struct contract_reading *read);

#endif
