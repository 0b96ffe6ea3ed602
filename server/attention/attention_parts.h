/* attention_parts: what the parts of the check of a request share. Private to attention. */
#ifndef SERVER_ATTENTION_PARTS_H
#define SERVER_ATTENTION_PARTS_H

#include "server/attention/attention_fields.h"

struct check {
  const struct fields *f;
  const struct model *m;
  const struct body_terms *head;
  const struct attention_request *out; /* being made */
  const struct body_v2_asked *v2;
  const struct body_limits *limits;
  struct arena *a;
  struct call *c; /* being made; its items come first */
  bool unbatched;
  struct error *e;
};

/* The depth of the queries, of which every other field's follows. */
static inline unsigned check_query_depth(const struct check *k) { return k->unbatched ? 2 : 3; }

static inline const struct tensor *check_tensor(const struct check *k, enum attention_field field) {
  return k->f->tensor[field];
}

/* The number of rows that an item has in a field of one row list per item. */
static inline size_t check_rows_of(const struct check *k, const struct tensor *t, size_t item) {
  return k->unbatched ? t->elements : tensor_shape_at(t, item).dim[0];
}

/* Have all items as many queries, and as many keys? */
bool check_items_alike(const struct check *k);

/* Fails at an item of a field: "/keys/3", or "/keys" where there is but one item. */
enum status check_fail_at(struct check *k, enum attention_field field, size_t item,
                          const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Is a field of one list per item of this depth, with a list for each item? A text without numbers
 * has any depth that its brackets leave open: `[]` is no rows of one item as well as no items. */
enum status check_depth(struct check *k, enum attention_field field, unsigned depth);

/* Do the fields that choose a kind of attention go together? */
enum status check_combinations(struct check *k);

/* Where the keys of an item are cut, and one gradient for each query. */
enum status check_segments(struct check *k);
enum status check_gradients(struct check *k);

/* The work, and the bytes of the answer, before anything is allocated for them. */
enum status check_limits(struct check *k);

/* What each query may see: valid_lens, mask and bias against the items' shapes. The bias comes
 * last: what it hides is added to the mask. */
enum status check_lens(struct check *k);
enum status check_mask(struct check *k);
enum status check_bias(struct check *k);

/* A bias of -inf hides the key: the mask says so from here on, and the bias is 0 there. `shared`:
 * the bias has no level of items. */
enum status check_hidden(struct check *k, const struct tensor *bias, bool shared);

#endif
