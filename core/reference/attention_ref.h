/* attention_ref: the slow, readable twin of a layer: the oracle that the fast one is compared with.
 *
 * Float64 throughout, the formulas as they are defined, one query of one head at a time. It asks
 * sight_allows about every pair and knows nothing of tiles, panels or blocks. */
#ifndef CORE_ATTENTION_REF_H
#define CORE_ATTENTION_REF_H

#include "core/attention/layer.h"

/* What the twin computes; NULL: not asked for. One item follows the other. A head that head_mask
 * makes zero is computed only if the call wants weights, pointers or measures, and even then
 * without its values; else its weights are zero and its pointers -1. */
struct ref_answer {
  double *outputs;         /* [q_rows, output_size]; always asked for */
  double *weights;         /* [H, q, k], whatever the call wants */
  double *segment_weights; /* [H, q, segments] */
  int32_t *pointers;       /* [H, q] */
  double *contexts;        /* [q_rows, H d_v], head_mask included */

  /* In: [H, q] the keys that SELECT_HARD and SELECT_SAMPLE choose instead of the twin's own choice,
   * or NULL. Where only rounding decides between two keys, the fast layer may choose the other one.
   * A query must see its key; where it sees nothing, the key is ignored. */
  const int32_t *chosen;
};

/* Computes the call, whose request part is filled. STATUS_NOT_FINITE if a projection, a score or an
 * output is beyond float32, STATUS_OUT_OF_MEMORY. */
enum status attention_ref(const struct layer_shape *shape,
                          const struct layer_matrix matrix[ROLE_COUNT], const struct call *c,
                          const struct ref_answer *answer, struct error *e);

#endif
