/* attention_fields: the contract of attention: its fields as a table, and its small values. */
#ifndef SERVER_ATTENTION_FIELDS_H
#define SERVER_ATTENTION_FIELDS_H

#include "config/build/model.h"
#include "core/attention/call.h"
#include "server/attention/attention_trace.h"
#include "server/body/body_terms.h"
#include "server/body/contract.h"

enum attention_field {
  /* Arrays, decoded from the text straight into memory. */
  FIELD_QUERIES,
  FIELD_KEYS,
  FIELD_VALUES,
  FIELD_VALID_LENS,
  FIELD_MASK,
  FIELD_BIAS,
  FIELD_HEAD_MASK,
  FIELD_SEGMENTS,
  FIELD_GRADIENTS,
  FIELD_CAUSAL_OFFSET, /* or the word "end" */
  FIELD_ARRAYS,

  /* Small values, which are collected and then parsed. */
  FIELD_CAUSAL = FIELD_ARRAYS,
  FIELD_WINDOW,
  FIELD_SELECT,
  FIELD_SEED,
  FIELD_EMPTY_ROWS,
  FIELD_RETURN_ATTENTION,
  FIELD_RETURN_POINTERS,
  FIELD_ENCODING_FORMAT,
  FIELD_TRACE,
  FIELD_COUNT
};

/* The outputs of the Open Inference Protocol, in the order of body_v2_asked. */
enum attention_output { OUTPUT_OUTPUTS, OUTPUT_WEIGHTS, OUTPUT_COUNT };

/* The small values as they were read. */
struct attention_values {
  bool offset_end; /* causal_offset is "end" */
  bool causal;
  int64_t window[2];
  enum select select;
  uint64_t seed;
  unsigned uniform_rows; /* "empty_rows": 1 for "uniform" */
  enum weights want;
  bool want_pointers;
  bool base64; /* encoding_format */
  struct attention_traced trace;
};

extern const struct contract_field attention_fields[FIELD_COUNT];

static inline const char *attention_field_name(enum attention_field field) {
  return contract_name(&attention_fields[field]);
}
static inline const char *attention_field_pointer(enum attention_field field) {
  return attention_fields[field].pointer;
}

/* Returns whether these queries have no level of items. Without numbers only an explicit shape says
 * so. */
static inline bool attention_is_unbatched(const struct tensor *queries) {
  return queries->depth == 2 && (queries->count > 0 || queries->shaped);
}

/* Sets up the reading of a request to this model; `values` get their defaults. */
void attention_fields_init(struct contract_reading *r, struct attention_values *values,
                           enum body_ask ask, const struct model *m, size_t max_items);

#endif
