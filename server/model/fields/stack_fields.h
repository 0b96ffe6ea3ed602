/* stack_fields: the contracts of whole models, to encode, to classify, to score, to generate and to
 * measure heads: their fields as one table, and their small values. */
#ifndef SERVER_STACK_FIELDS_H
#define SERVER_STACK_FIELDS_H

#include "config/describe/whole_choice.h"
#include "server/body/body_terms.h"
#include "server/body/contract.h"
#include "server/model/fields/stack_values.h"

#define STACK_FIELD_OF_OPTION(id, ...) STACK_FIELD_##id,
enum stack_field {
  /* Arrays, which are read from the text straight into memory. */
  STACK_FIELD_TOKENS,
  STACK_FIELD_EMBEDDINGS,
  STACK_FIELD_VALID_LENS,
  STACK_FIELD_TOKEN_TYPES,
  STACK_FIELD_ATTENTION_MASK, /* of the Open Inference Protocol alone */
  STACK_FIELD_TARGETS,
  STACK_FIELD_TARGET_LENS,
  STACK_FIELD_DECODER_TOKENS, /* these two, too */
  STACK_FIELD_DECODER_MASK,
  STACK_FIELD_ARRAYS,

  /* Small values, which are collected and then parsed. */
  STACK_FIELD_POOL = STACK_FIELD_ARRAYS,
  STACK_FIELD_DIMENSIONS,
  STACK_FIELD_NORMALIZE,
  STACK_FIELD_RETURN_TOP,
  STACK_FIELD_RETURN_LENS,
  STACK_FIELD_RETURN_HIDDEN,
  STACK_FIELD_RETURN_ATTENTION,
  STACK_FIELD_HEAD_MASK,
  STACK_FIELD_ENCODING_FORMAT,
  STACK_FIELD_TRACE,
  STACK_FIELD_TEXT, /* no small value, but texts */
  STACK_FIELD_SPECIAL_TOKENS,
  STACK_FIELD_TRUNCATE,
  STACK_FIELD_RETURN_TOKENS,
  STACK_FIELD_MAX_TOKENS,
  STACK_FIELD_STOP_TOKENS,
  STACK_FIELD_BEAMS,
  STACK_FIELD_RETURNS,
  STACK_FIELD_LENGTH_PENALTY,
  STACK_FIELD_EARLY_STOPPING,
  STACK_FIELD_RETURN_SEARCH,
  STACK_FIELD_SEED,
  STACK_FIELD_LOGIT_BIAS,
  STACK_FIELD_IGNORE_EOS,
  STACK_FIELD_BANNED_TOKENS,
  STACK_FIELD_STREAM,
  STACK_FIELD_FUNCTION,
  STACK_FIELD_STOP,
  STACK_FIELD_RETURN_TEXT,
  STACK_FIELD_ATTENTIONS,
  STACK_FIELD_PROMPT,
  STACK_FIELD_PROMPT_NAME,
  WHOLE_OPTIONS(STACK_FIELD_OF_OPTION) STACK_FIELD_COUNT
};

/* The outputs of the Open Inference Protocol, as body_v2_asked counts them. */
enum stack_v2_output {
  STACK_V2_LAST_HIDDEN_STATE,
  STACK_V2_POOLER_OUTPUT,
  STACK_V2_LOGITS,
  STACK_V2_ENCODER_ROWS, /* from here on: of models of an encoder and a decoder */
  STACK_V2_OUTPUTS
};

extern const struct contract_field stack_fields[STACK_FIELD_COUNT];

static inline const char *stack_field_name(enum stack_field field) {
  return contract_name(&stack_fields[field]);
}
static inline const char *stack_field_pointer(enum stack_field field) {
  return stack_fields[field].pointer;
}

const char *stack_output_name(enum stack_v2_output output);

enum {
  STACK_TOP_MAX = 64,              /* of the likeliest tokens */
  STACK_PROMPT_LONGEST = 16 * 1024 /* bytes of JSON */
};

/* What a request of this form calls the field. */
const char *stack_field_shown(enum stack_field field, enum body_form form);

static inline bool stack_field_is_seen(const struct contract_reading *r, enum stack_field field) {
  return r->seen >> field & 1;
}

/* A reader of small values: what stack_values.truncate is, to a size_t. */
enum status stack_fields_truncate(const struct json_t *value, const struct contract_field *field,
                                  void *to, struct error *e);

/* Sets a prompt to one of the model's; NULL: to none. */
void stack_fields_prompt(struct contract_text *to, const struct json_t *text);

/* Is this array, of a depth that an item of it has, one item and no batch of them? Without numbers
 * only a shape that was given says so. */
static inline bool stack_is_unbatched(const struct tensor *t, unsigned depth) {
  return t->depth == depth && (t->count > 0 || t->shaped);
}

/* How long it takes to prepare so many sequences of each text, in nanoseconds, about. */
uint64_t stack_sequences_cost(size_t texts, size_t each, size_t layers);

/* Makes the reading of a request to this model, ASK_ENCODE, ASK_CLASSIFY, ASK_SCORE or
 * ASK_GENERATE, the first and the third maybe with terms->ablation, of which nothing has been read
 * yet. `values` get their defaults; they have both sides of a model where the request may go
 * through both. Fails without memory. */
enum status stack_fields_init(struct contract_reading *r, struct stack_values *values,
                              const struct body_terms *terms, const struct whole *w,
                              size_t max_items, struct arena *a, struct error *e);

#endif
