/* attention_checking: a request to a layer while it is checked: what attention_check,
 * attention_limits and attention_sight share. Private to them. */
#ifndef SERVER_ATTENTION_CHECKING_H
#define SERVER_ATTENTION_CHECKING_H

#include "server/attention/attention_fields.h"
#include "server/attention/attention_request.h"

struct attention_check {
  const struct contract_reading *reading;
  const struct model *m;
  const struct body_terms *terms;
  const struct body_limits *limits;
  struct arena *a;
  struct attention_request *out; /* being made */
  struct geometry *g;            /* of `out`, being made; its items come first */
  struct call *c;                /* of `out`, being made */
  bool unbatched;
  struct error *e;
};

static inline const struct tensor *attention_tensor(const struct attention_check *k,
                                                    enum attention_field field) {
  return k->reading->tensor[field];
}

/* The depth of the queries, of which every other field's follows. */
static inline unsigned attention_query_depth(const struct attention_check *k) {
  return k->unbatched ? 2 : 3;
}

/* The number of rows that an item has in a field of one row list per item. */
static inline size_t attention_rows_of(const struct attention_check *k, const struct tensor *t,
                                       size_t item) {
  return k->unbatched ? t->elements : tensor_shape_at(t, item).dim[0];
}

/* Have all items as many queries, and as many keys? */
bool attention_items_alike(const struct geometry *g);

/* Fails at an item of a field: "/keys/3", or "/keys" where there is but one item. */
enum status attention_fail_at(struct attention_check *k, enum attention_field field, size_t item,
                              const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The work, and the bytes of the answer, before anything is allocated for them. */
enum status attention_check_limits(struct attention_check *k);

/* What each query may see: valid_lens, mask and bias against the items' shapes. */
enum status attention_check_sight(struct attention_check *k);

#endif
