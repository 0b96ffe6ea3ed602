/* attention_ref: the slow, readable twin of a layer: the oracle that the fast one is compared with.
 *
 * Float64 throughout, the formulas as they are defined, one query of one head at a time. It knows
 * nothing of tiles, panels or blocks. attention_ref_item is one attention in plain arrays, as a
 * model has many; attention_ref hands it the items of a call, one after the other. */
#ifndef CORE_ATTENTION_REF_H
#define CORE_ATTENTION_REF_H

#include "core/attention/layer.h"

/* The rows of one item, and what is asked about them. */
struct ref_item {
  size_t number;         /* of the item in its call: chance depends on it */
  size_t q, k;           /* rows */
  const double *queries; /* [q, query_size] */
  const double *keys;    /* [k, key_size]; may be `queries` */
  const double *values;  /* [k, value_size]; may be `keys` */
  int64_t offset;        /* query i has the position of key i + offset */
  const uint8_t *seen;   /* [H, q, k] 1: in this head the query may see the key */
  const double *bias;    /* [H, q, k] added to the scores, or NULL; any number where nothing is
                            seen */

  /* As in a call. */
  const float *head_mask; /* [H] or NULL */
  bool masked_heads;      /* compute heads that head_mask makes zero, too, but for their values */
  const struct trace *trace; /* its request alone; its head is computed in any case; or NULL */
  bool uniform_rows;
  enum select select;
  uint64_t seed;
  size_t segments;
  const int32_t *segment_end; /* [segments], or NULL: one level */
};

/* What the twin computes for a trace, as core/attention/trace.h has it. */
struct ref_trace {
  double *query, *keys, *values; /* [n], [k, n], [k, d_v] */
  double *products, *scores;     /* [k] */
  double *weights, *context;     /* [k], [d_v] */
};

/* What the twin computes; NULL: not asked for. One item follows the other. A head that head_mask
 * makes zero is computed only if the call wants weights, pointers or measures, and even then
 * without its values, or a trace of it; else its weights are zero and its pointers -1. */
struct ref_answer {
  double *outputs;         /* [q_rows, output_size]; always asked for */
  double *weights;         /* [H, q, k], whatever the call wants */
  double *segment_weights; /* [H, q, segments] */
  int32_t *pointers;       /* [H, q] */
  double *contexts;        /* [q_rows, H d_v], head_mask included */
  struct ref_trace *trace; /* of the query that the call traces */

  /* In: [H, q] the keys that SELECT_HARD and SELECT_SAMPLE choose instead of the twin's own choice,
   * or NULL. Where only rounding decides between two keys, the fast layer may choose the other one.
   * A query must see its key; where it sees nothing, the key is ignored. */
  const int32_t *chosen;
};

/* Computes one item; `answer` is that of the item alone. STATUS_NOT_FINITE if a projection, a score
 * or an output exceeds the float32 range, STATUS_OUT_OF_MEMORY. */
enum status attention_ref_item(const struct layer_shape *shape,
                               const struct layer_matrix matrix[ROLE_COUNT],
                               const struct ref_item *item, const struct ref_answer *answer,
                               struct error *e);

/* Computes all items of a call, whose request part is filled. Fails as attention_ref_item does, at
 * the first item that fails. */
enum status attention_ref(const struct layer_shape *shape,
                          const struct layer_matrix matrix[ROLE_COUNT], const struct call *c,
                          const struct ref_answer *answer, struct error *e);

#endif
