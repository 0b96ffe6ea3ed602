/* stack_values: the small values of a request to a model, as they were read. Names of fields are in
 * quotes where they differ from the member's. */
#ifndef SERVER_STACK_VALUES_H
#define SERVER_STACK_VALUES_H

#include "config/build/whole.h"
#include "server/attention/attention_trace.h"
#include "server/body/contract.h"
#include "server/model/fields/stack_side.h"

#define STACK_TRUNCATE_UNSAID (SIZE_MAX - 1)

struct stack_values {
  struct stack_side source, main; /* as in stack_request */
  struct arena *arena;
  enum stack_pool pool;
  size_t dimensions; /* 0: all */
  bool normalize;
  enum stack_function function; /* applied to the scores of classes */
  bool special;                 /* "special_tokens" */
  size_t truncate; /* tokens that a text is cut to; SIZE_MAX: the model's own length; 0: texts are
                      not cut; STACK_TRUNCATE_UNSAID: a dialect's request does not say */
  struct contract_text prompt, prompt_name; /* text before each text, or the name of one */
  struct contract_text query_prompt;        /* text before each query of a ranking */
  bool tokens;                              /* "return_tokens" */
  size_t top;                               /* "return_top" */
  size_t logit_lens;                        /* "return_lens" */
  bool base64;                              /* "encoding_format" */
  struct attention_traced trace;
  size_t traced;              /* the attention that is traced, */
  bool traced_source;         /* of the source; else of main */
  struct stack_choice choice; /* how next tokens are chosen */
  bool ignores_end;           /* "ignore_eos" */
  size_t max_tokens, returns;
  size_t usual_tokens;         /* the default of max_tokens, which applies if that is 0 */
  bool stream, search;         /* "stream", "return_search" */
  struct tokenizer_text *stop; /* [stops] */
  size_t stops;
  bool text;        /* "return_text" */
  bool token_texts; /* whether the text of each token is returned; only dialects set it */
};

/* The sides of a request by number: 0 is the source. Either may have no stack. */
static inline struct stack_side *stack_values_side(struct stack_values *v, unsigned number) {
  return number == 0 ? &v->source : &v->main;
}

#endif
