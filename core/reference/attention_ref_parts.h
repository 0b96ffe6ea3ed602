/* attention_ref_parts: what the files of the twin share. Private to them.
 *
 * attention_ref.c projects the rows of an item and sums the values, attention_ref_score.c
 * compares a query with a key, attention_ref_weigh.c makes weights of scores. */
#ifndef CORE_ATTENTION_REF_PARTS_H
#define CORE_ATTENTION_REF_PARTS_H

#include "core/attention/layer.h"

/* One item and its buffers. n is ref_side_size: the numbers that a score compares. */
struct ref_item {
  const struct layer_shape *s;
  const struct layer_matrix *matrix;
  const struct call *c;
  const struct item *item;
  size_t number;         /* of the item */
  const int32_t *chosen; /* [H, q] of the item, or NULL */

  double *rows[3];  /* projected, by role: query [q, H, d], key [k, G, d_k], value [k, G, d_v] */
  double *sides[2]; /* query [q, H, n] and key [k, G, n] as the score compares them */
  double *wide;     /* [widest input] one row in float64 */

  /* Of one query in one head. */
  double *scores, *weights;                 /* [k] */
  double *segment_scores, *segment_weights; /* [segments] */
  double *segment_key, *segment_side;       /* [d_k], [n] of one segment */
  int32_t pointer;                          /* the heaviest or the drawn key, or -1 */

  double *context; /* [H d_v] of one query */
};

/* y = W x + b, W [out, in]; b may be NULL. False if y is beyond float32. */
bool ref_product(const float *weight, const float *bias, size_t out, size_t in, const double *x,
                 double *y);

bool ref_is_float(double x); /* within float32's range */

static inline size_t ref_key_head(const struct ref_item *r, size_t head) {
  return head / (r->s->heads / r->s->kv_heads);
}

/* A score compares a side that depends on the query alone with one that depends on the key alone.
 * False if a side is beyond float32. */
size_t ref_side_size(const struct layer_shape *s);
bool ref_query_side(const struct ref_item *r, const double *q, double *side);
bool ref_key_side(const struct ref_item *r, const double *k, double *side);
double ref_score(const struct ref_item *r, const double *query_side, const double *key_side);

/* The weights of query row `i` in a head, and its pointer. False if a score is beyond float32. */
bool ref_weigh(struct ref_item *r, size_t head, size_t i);

#endif
