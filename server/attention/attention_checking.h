/* attention_checking: a request to a layer while it is checked. Private to attention_body,
 * attention_check and attention_sight. */
#ifndef SERVER_ATTENTION_CHECKING_H
#define SERVER_ATTENTION_CHECKING_H

#include <stdarg.h>
#include <stdio.h>

#include "server/attention/attention_body.h"
#include "server/attention/attention_fields.h"

struct attention_check {
  const struct contract_reading *reading;
  const struct model *m;
  const struct body_terms *terms;
  const struct body_limits *limits;
  struct arena *a;
  struct attention_request *out; /* its geometry and call are `g` and `c` */
  struct geometry *g;            /* its items are made first */
  struct call *c;
  bool unbatched;
  struct error *e;
};

static inline const struct tensor *attention_tensor(const struct attention_check *k,
                                                    enum attention_field field) {
  return k->reading->tensor[field];
}

/* Returns the depth of the queries, from which the depths of all other fields follow. */
static inline unsigned attention_query_depth(const struct attention_check *k) {
  return k->unbatched ? 2 : 3;
}

/* Returns how many rows an item has in a field with one list of rows per item. */
static inline size_t attention_rows_of(const struct attention_check *k, const struct tensor *t,
                                       size_t item) {
  return k->unbatched ? t->elements : tensor_shape_at(t, item).dim[0];
}

/* Returns whether all items have the same numbers of queries and keys. */
static inline bool attention_items_alike(const struct geometry *g) {
  for (size_t i = 1; i < g->items; i++)
    if (g->item[i].q != g->item[0].q || g->item[i].k != g->item[0].k) return false;
  return true;
}

/* Fails at an item of a field: "/keys/3", or "/keys" if the request is unbatched. */
__attribute__((format(printf, 4, 5))) static inline enum status
attention_fail_at(struct attention_check *k, enum attention_field field, size_t item,
                  const char *format, ...) {
  char pointer[ERROR_POINTER_SIZE];
  int n = snprintf(pointer, sizeof pointer, "%s", attention_field_pointer(field));
  if (!k->unbatched) snprintf(pointer + n, sizeof pointer - (size_t)n, "/%zu", item);
  va_list args;
  va_start(args, format);
  error_at_v(k->e, pointer, format, args);
  va_end(args);
  return k->e->status;
}

/* Checks the fields against each other, the model and the limits, and makes the run of the core.
 * Takes from the arena only what the limits allow. Both return the status of `e`. */
enum status attention_check(const struct contract_reading *reading, const struct model *m,
                            const struct body_terms *terms, const struct body_limits *limits,
                            struct arena *a, struct attention_request *out, struct error *e);

/* Checks valid_lens, mask and bias, which say what each query may attend to, against the items'
 * shapes. */
enum status attention_check_sight(struct attention_check *k);

#endif
