/* stack_values: the small values of a request to a model, as they were read. */
#ifndef SERVER_STACK_VALUES_H
#define SERVER_STACK_VALUES_H

#include "config/build/whole.h"
#include "server/attention/attention_trace.h"
#include "server/body/contract.h"
#include "server/model/fields/stack_positions.h"
#include "server/model/fields/stack_request.h"
#include "server/model/fields/stack_side.h"

#define STACK_TRUNCATE_UNSAID (SIZE_MAX - 1)

struct stack_values {
#define STACK_VALUE(id, name, of, type, member, ...) type member;
#include "server/model/fields/stack_fields.def"
  struct stack_side source, main; /* as in stack_request */
  struct arena *arena;
  struct contract_text query_prompt; /* text before each query of a ranking */
  struct attention_traced trace;
  struct stack_positions positions; /* that are filled */
  size_t traced;                    /* the attention that is traced, */
  bool traced_source;               /* of the source; else of main */
  struct stack_choice choice;       /* how next tokens are chosen */
  size_t usual_tokens;              /* the default of max_tokens */
  struct tokenizer_text *stop;      /* [stops] */
  size_t stops;
  const char *advice; /* the remedy for a text that is too long */
  bool classifies;    /* scores of classes are computed, instead of vectors */
  bool token_texts;   /* whether the text of each token is returned; only dialects set it */
};

/* The sides of a request by number: 0 is the source. Either may have no stack. */
static inline struct stack_side *stack_values_side(struct stack_values *v, unsigned number) {
  return number == 0 ? &v->source : &v->main;
}

#endif
