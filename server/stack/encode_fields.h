/* encode_fields: the contract of encoding: its fields as a table, and its small values. */
#ifndef SERVER_ENCODE_FIELDS_H
#define SERVER_ENCODE_FIELDS_H

#include "config/model/whole.h"
#include "server/attention/attention_traced.h"
#include "server/body/body_terms.h"
#include "server/body/contract.h"

enum encode_field {
  /* Arrays, which are read from the text straight into memory. */
  ENCODE_TOKENS,
  ENCODE_EMBEDDINGS,
  ENCODE_VALID_LENS,
  ENCODE_TOKEN_TYPES,
  ENCODE_ATTENTION_MASK, /* of the Open Inference Protocol alone */
  ENCODE_ARRAYS,

  /* Small values, which are collected and then parsed. */
  ENCODE_POOL = ENCODE_ARRAYS,
  ENCODE_DIMENSIONS,
  ENCODE_NORMALIZE,
  ENCODE_RETURN_HIDDEN,
  ENCODE_RETURN_ATTENTION,
  ENCODE_HEAD_MASK,
  ENCODE_ENCODING_FORMAT,
  ENCODE_TRACE,
  ENCODE_FIELDS
};

/* The outputs of the Open Inference Protocol, as body_v2_asked counts them. */
enum encode_output { ENCODE_LAST_HIDDEN_STATE, ENCODE_POOLER_OUTPUT, ENCODE_OUTPUTS };

/* The small values as they were read. */
struct encode_values {
  const struct stack_form *form; /* of the encoder; sizes and kinds only */
  struct arena *arena;
  enum stack_pool pool;
  size_t dimensions; /* 0: all */
  bool normalize;
  bool base64;             /* encoding_format */
  bool embedded;           /* hidden state 0 is asked for */
  struct stack_wish *wish; /* [L] */
  struct attention_traced trace;
  size_t traced; /* the layer whose attention that is */
};

extern const struct contract_field encode_fields[ENCODE_FIELDS];

static inline const char *encode_field_name(enum encode_field field) {
  return contract_name(&encode_fields[field]);
}
static inline const char *encode_field_pointer(enum encode_field field) {
  return encode_fields[field].pointer;
}

/* What a request of this form calls the field. */
const char *encode_field_shown(enum encode_field field, enum body_form form);

static inline bool encode_field_is_seen(const struct contract_reading *r, enum encode_field field) {
  return r->seen >> field & 1;
}

const char *encode_pool_name(enum stack_pool pool); /* "none", "cls", ... */

/* Is this array, of a depth that an item of it has, one item and no batch of them? Without numbers
 * only a shape that was given says so. */
static inline bool encode_is_unbatched(const struct tensor *t, unsigned depth) {
  return t->depth == depth && (t->count > 0 || t->shaped);
}

/* Makes the reading of a request to the encoder of this model, of which nothing has been read yet.
 * `values` get their defaults. Fails without memory. */
enum status encode_fields_init(struct contract_reading *r, struct encode_values *values,
                               const struct whole *w, size_t max_items, struct arena *a,
                               struct error *e);

#endif
