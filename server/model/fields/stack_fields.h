/* stack_fields: the contracts of requests to models (encode, classify, fill, score, generate, and
 * ablation of heads): one table of their fields, and the defaults of their small values. */
#ifndef SERVER_STACK_FIELDS_H
#define SERVER_STACK_FIELDS_H

#include "config/describe/whole_choice.h"
#include "server/body/body_terms.h"
#include "server/body/contract.h"
#include "server/model/fields/stack_values.h"

#define STACK_FIELD_ID(id, ...) STACK_FIELD_##id,
enum stack_field {
#define STACK_ARRAY         STACK_FIELD_ID
#define STACK_VALUE         STACK_FIELD_ID
#define STACK_VALUES        STACK_FIELD_ID
#define STACK_OPTIONS(list) list(STACK_FIELD_ID)
#include "server/model/fields/stack_fields.def"
  STACK_FIELD_COUNT
};
/* How many rows are arrays: the sum of a 1 for each. */
enum {
#define STACK_ARRAY(...) +1
  STACK_FIELD_ARRAYS = 0
#include "server/model/fields/stack_fields.def"
};

/* The outputs of the Open Inference Protocol: body_v2_asked.output[].which. */
enum stack_v2_output {
  STACK_V2_LAST_HIDDEN_STATE,
  STACK_V2_POOLER_OUTPUT,
  STACK_V2_LOGITS,
  STACK_V2_ENCODER_ROWS, /* only encoder-decoder models have this one */
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
  STACK_TOP_MAX = 64,              /* most likely tokens that a response shows for each token */
  STACK_PROMPT_LONGEST = 16 * 1024 /* bytes of JSON */
};

/* The name of the field in a body of this form. */
const char *stack_field_shown(enum stack_field field, enum body_form form);

static inline bool stack_field_is_seen(const struct contract_reading *r, enum stack_field field) {
  return r->seen >> field & 1;
}

/* Reader of "truncate", to a size_t with the meaning of stack_values.truncate. */
enum status stack_fields_truncate(const struct json_t *value, const struct contract_field *field,
                                  void *to, struct error *e);

/* Sets a prompt to this text of the model; NULL: to none. */
void stack_fields_prompt(struct contract_text *to, const struct json_t *text);

/* Whether the array is one item, which has this depth, and not a batch. An array without numbers is
 * one item only if the request gives its shape. */
static inline bool stack_is_unbatched(const struct tensor *t, unsigned depth) {
  return t->depth == depth && (t->count > 0 || t->shaped);
}

/* Estimates the nanoseconds to prepare `each` sequences of each text in a stack of so many layers.
 */
uint64_t stack_sequences_cost(size_t texts, size_t each, size_t layers);

/* Begins to read a request to this model: sets the reading's contract and sizes, and `values` to
 * their defaults. terms->ask is ASK_ENCODE, ASK_CLASSIFY, ASK_FILL, ASK_SCORE or
 * ASK_GENERATE;
 * terms->ablation is possible with ASK_ENCODE and ASK_SCORE. `values` have both sides if the
 * request may go through the encoder and the decoder. Fails without memory. */
enum status stack_fields_init(struct contract_reading *r, struct stack_values *values,
                              const struct body_terms *terms, const struct whole *w,
                              size_t max_items, struct arena *a, struct error *e);

#endif
