/* stack_checking: a request to a model while it is checked: what the files of this folder share.
 * Private to them. Their functions that return a status leave an error in `e`, too. */
#ifndef SERVER_STACK_CHECKING_H
#define SERVER_STACK_CHECKING_H

#include "server/model/fields/stack_fields.h"
#include "server/model/fields/stack_request.h"

struct stack_check {
  const struct contract_reading *reading;
  const struct stack_values *values;
  const struct whole *w;
  const struct body_terms *terms;
  const struct body_limits *limits;
  struct stack_request *out; /* being made */
  struct stack_side *main;   /* out->main */
  struct stack_side *reader; /* the side that the request's rows enter: out->source or out->main */
  const struct tensor *rows; /* tokens or embeddings, of this field: */
  enum stack_field field;
  size_t items;   /* of the request */
  int32_t *lens;  /* [items] rows of each that enter the reader */
  int32_t *begun; /* [items] rows of each that enter main: `lens`, or with a source the token that
                     begins and what follows it */
  struct error *e;
};

/* Whether the request's rows enter a source of main. */
static inline bool stack_check_has_source(const struct stack_check *k) {
  return k->reader != k->main;
}

/* NULL: the request has no such field. */
static inline const struct tensor *stack_check_tensor(const struct stack_check *k,
                                                      enum stack_field field) {
  return k->reading->tensor[field];
}

/* The name of the field in the request. */
static inline const char *stack_check_shown(const struct stack_check *k, enum stack_field field) {
  return stack_field_shown(field, k->terms->form);
}

#endif
