/* attention_fields: the contract of attention: its fields as a table, and its small values. */
#ifndef SERVER_ATTENTION_FIELDS_H
#define SERVER_ATTENTION_FIELDS_H

#include "config/build/model.h"
#include "core/attention/call.h"
#include "server/attention/attention_trace.h"
#include "server/body/body_terms.h"
#include "server/body/contract.h"

#define ATTENTION_FIELD_ID(id, ...) FIELD_##id,
enum attention_field {
#define ATTENTION_ARRAY ATTENTION_FIELD_ID
#define ATTENTION_VALUE ATTENTION_FIELD_ID
#include "server/attention/attention_fields.def"
  FIELD_COUNT
};
/* How many rows are arrays: the sum of a 1 for each. */
enum {
#define ATTENTION_ARRAY(...) +1
  FIELD_ARRAYS = 0
#include "server/attention/attention_fields.def"
};

/* The outputs of the Open Inference Protocol, in the order of body_v2_asked. */
enum attention_output { OUTPUT_OUTPUTS, OUTPUT_WEIGHTS, OUTPUT_COUNT };

/* How many keys before and after its own place a query attends to; -1: all. */
struct attention_window {
  int64_t left, right;
};

/* The small values as they were read. */
struct attention_values {
  bool offset_end; /* whether causal_offset is "end" */
#define ATTENTION_VALUE(id, name, of, type, member, ...) type member;
#include "server/attention/attention_fields.def"
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
