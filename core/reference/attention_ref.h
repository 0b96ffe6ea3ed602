/* attention_ref: the reference implementation of an attention layer. The tests compare the fast
 * layer with it.
 *
 * It computes in float64, one query of one head at a time, with each formula as it is defined. It
 * has no tiles, panels or blocks. attention_ref_item computes one item, given as plain arrays;
 * attention_ref computes all items of a call, one after the other. */
#ifndef CORE_ATTENTION_REF_H
#define CORE_ATTENTION_REF_H

#include "core/attention/layer.h"

/* The inputs of one item, and the options of its call. */
struct ref_item {
  size_t number;         /* index of the item in its call; sampling depends on it */
  size_t q, k;           /* query rows, key rows */
  const double *queries; /* [q, query_size] */
  const double *keys;    /* [k, key_size]; may be `queries` */
  const double *values;  /* [k, value_size]; may be `keys` */
  int64_t offset;        /* query i has the position of key i + offset */
  const uint8_t *seen;   /* [H, q, k] 1: the query attends to the key in this head */
  const double *bias;    /* [H, q, k] added to the scores, or NULL; ignored where a key is masked */

  /* The same as in struct call. */
  const float *head_mask; /* [H] or NULL */
  bool masked_heads;      /* compute heads with a head_mask of 0 as well, except for their values */
  const struct trace *trace; /* request part only, or NULL; its head is always computed */
  bool uniform_rows;
  enum select select;
  uint64_t seed;
  size_t segments;
  const int32_t *segment_end; /* [segments], or NULL: one level */
};

/* The results of a trace; shapes as in core/attention/trace.h. */
struct ref_trace {
  double *query, *keys, *values; /* [n], [k, n], [k, d_v] */
  double *products, *scores;     /* [k] */
  double *weights, *context;     /* [k], [d_v] */
};

/* The results, in the caller's memory; NULL: not requested. Items follow each other. A head with a
 * head_mask of 0 is computed only if the call requests weights, pointers or measures (then without
 * its values) or a trace of this head. Otherwise its weights are 0 and its pointers -1. */
struct ref_answer {
  double *outputs;         /* [q_rows, output_size]; required */
  double *weights;         /* [H, q, k], whatever the call requests */
  double *segment_weights; /* [H, q, segments] */
  int32_t *pointers;       /* [H, q] */
  double *contexts;        /* [q_rows, H d_v], multiplied by head_mask */
  struct ref_trace *trace; /* of the traced query */

  /* Input: [H, q] keys for SELECT_HARD and SELECT_SAMPLE that replace the reference's own choice,
   * or NULL. If only rounding decides between two keys, the fast layer may choose the other one.
   * The query must attend to the key; for a query that attends to no key it is ignored. */
  const int32_t *chosen;
};

/* Computes one item into the arrays of `answer`. Returns e->status: STATUS_NOT_FINITE if a
 * projection, score or output exceeds the float32 range, or STATUS_OUT_OF_MEMORY. */
enum status attention_ref_item(const struct layer_shape *shape,
                               const struct layer_matrix matrix[ROLE_COUNT],
                               const struct ref_item *item, const struct ref_answer *answer,
                               struct error *e);

/* Computes all items of a call; only its request part is read. Stops at the first item that fails,
 * with the errors of attention_ref_item. */
enum status attention_ref(const struct layer_shape *shape,
                          const struct layer_matrix matrix[ROLE_COUNT], const struct call *c,
                          const struct ref_answer *answer, struct error *e);

#endif
