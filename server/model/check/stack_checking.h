/* stack_checking: a request to a model while it is checked: what the files of this folder share.
 * Private to them. */
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
  struct stack_side *main;   /* of `out` */
  struct stack_side *reader; /* of `out`: what the request's rows enter: the source, or main */
  const struct tensor *rows; /* tokens or embeddings, of this field: */
  enum stack_field field;
  size_t items;   /* that the request has */
  int32_t *lens;  /* [items] the rows of each that the reader has */
  int32_t *begun; /* [items] those that main has: `lens`, or what follows is fed behind
                     the token that begins */
  struct error *e;
};

/* Is there a source, whose rows are the request's? */
static inline bool stack_check_has_source(const struct stack_check *k) {
  return k->reader != k->main;
}

/* NULL: the request has no such field. */
static inline const struct tensor *stack_check_tensor(const struct stack_check *k,
                                                      enum stack_field field) {
  return k->reading->tensor[field];
}

/* What the request calls the field. */
static inline const char *stack_check_shown(const struct stack_check *k, enum stack_field field) {
  return stack_field_shown(field, k->terms->form);
}

/* The numbers of a pooled item, before `dimensions` leave some of them; or those of its classes. */
static inline size_t stack_check_pooled(const struct stack_form *f, enum stack_pool pool) {
  if (pool == STACK_POOL_CLASSES) return f->classifier.count;
  return stack_form_pooled(f);
}

#endif
