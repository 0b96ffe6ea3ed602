/* stack_check: the fields of a request to a whole model held against each other, the model and the
 * limits; and what its files share. */
#ifndef SERVER_STACK_CHECK_H
#define SERVER_STACK_CHECK_H

#include "server/model/fields/stack_fields.h"
#include "server/model/fields/stack_request.h"

/* The end of reading a request: makes the run. Takes from the arena only what the limits allow, and
 * packs the rows of padded items where they lie. `out` is empty, but for its v2. */
enum status stack_check(const struct contract_reading *reading, const struct whole *w,
                        const struct body_terms *terms, const struct body_limits *limits,
                        struct stack_request *out);

/* Says that there are more pairs than `most`: `work`, or, where it is 0, an unknown number. Without
 * `source` there is one stack. */
enum status stack_check_refuse_pairs(const struct stack_form *source, const struct stack_form *main,
                                     bool weighs, size_t work, size_t most, struct error *e);

/* --- for the files of stack_check alone --- */

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

/* Makes the items of a side of so many rows each, end to end. */
enum status stack_check_place(struct stack_check *k, struct stack_side *side, const int32_t *lens);

/* The work, and the bytes of the answer, before anything is allocated for them. */
enum status stack_check_limits(struct stack_check *k);

#endif
