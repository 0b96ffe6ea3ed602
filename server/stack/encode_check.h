/* encode_check: the fields of a request to encode held against each other, the model and the
 * limits; and what its files share. */
#ifndef SERVER_ENCODE_CHECK_H
#define SERVER_ENCODE_CHECK_H

#include "server/stack/encode_fields.h"
#include "server/stack/encode_request.h"

/* The end of reading a request: makes the run. Takes from the arena only what the limits allow, and
 * packs the rows of padded items where they lie. `out` is empty, but for its v2. */
enum status encode_check(const struct contract_reading *reading, const struct whole *w,
                         const struct body_terms *terms, const struct body_limits *limits,
                         struct encode_request *out);

/* --- for encode_check and encode_limits alone --- */

struct encode_check {
  const struct contract_reading *reading;
  const struct encode_values *values;
  const struct whole *w;
  const struct stack_form *form;
  const struct body_terms *terms;
  const struct body_limits *limits;
  struct encode_request *out; /* being made */
  struct stack_run *run;      /* of `out` */
  const struct tensor *rows;  /* tokens or embeddings, of this field: */
  enum encode_field field;
  struct error *e;
};

/* The numbers of a pooled item, before `dimensions` leave some of them. */
static inline size_t encode_check_pooled(const struct stack_form *f) {
  return f->pooling.dense_size ? f->pooling.dense_size : f->width;
}

/* The work, and the bytes of the answer, before anything is allocated for them. */
enum status encode_check_limits(struct encode_check *k);

#endif
