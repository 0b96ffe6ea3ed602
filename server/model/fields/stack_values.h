/* stack_values: the small values of a request to a model, as they were read. */
#ifndef SERVER_STACK_VALUES_H
#define SERVER_STACK_VALUES_H

#include "config/build/whole.h"
#include "server/attention/attention_traced.h"
#include "server/body/contract.h"
#include "server/model/fields/stack_side.h"

#define STACK_TRUNCATE_UNSAID (SIZE_MAX - 1)

struct stack_values {
  struct stack_side source, main; /* as in stack_request */
  struct arena *arena;
  enum stack_pool pool;
  size_t dimensions; /* 0: all */
  bool normalize;
  enum stack_function function; /* of classes */
  bool special;                 /* special_tokens */
  size_t truncate; /* the tokens that a text is cut to; SIZE_MAX: to the model's own length;
                      0: it is not cut; STACK_TRUNCATE_UNSAID: of a dialect's own */
  struct contract_text prompt,
      prompt_name;                   /* what stands in front of texts, or what it is called */
  struct contract_text query_prompt; /* in front of those that are queries to the others */
  bool tokens;                       /* return_tokens */
  size_t top;                        /* return_top */
  size_t logit_lens;                 /* return_lens */
  bool base64;                       /* encoding_format */
  struct attention_traced trace;
  size_t traced;              /* the attention whose trace that is, */
  bool traced_source;         /* of the source; else of main */
  struct stack_choice choice; /* of the next tokens */
  bool ignores_end;           /* ignore_eos */
  size_t max_tokens, returns;
  size_t usual_tokens; /* the most tokens where max_tokens is 0: the request does not say */
  bool stream, search;
  struct tokenizer_text *stop; /* [stops] */
  size_t stops;
  bool text;    /* return_text */
  bool spelled; /* what each token adds to the text is told: no field of ours asks for it */
};

/* The sides of a model, the source first; one may have no stack. */
static inline struct stack_side *stack_values_side(struct stack_values *v, unsigned number) {
  return number == 0 ? &v->source : &v->main;
}

#endif
