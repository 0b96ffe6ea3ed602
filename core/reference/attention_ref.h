/* attention_ref: the layer's slow, readable twin: the oracle that the fast one is compared with.
 *
 * Float64 throughout, the formulas written down as they stand, one query of one head at a time. It
 * asks sight_allows about every pair and knows nothing of tiles, panels or blocks. */
#ifndef CORE_ATTENTION_REF_H
#define CORE_ATTENTION_REF_H

#include "core/attention/layer.h"

/* What the twin computes; NULL: not asked for. Per item one after the other. A head that the call's
 * head_mask makes zero is computed only if the call wants weights, pointers or measures, and never
 * its values; if not, its weights are zero, its pointers -1. */
struct ref_answer {
  double *outputs;         /* [q_rows, output_size]; always asked for */
  double *weights;         /* [H, q, k], whatever the call wants */
  double *segment_weights; /* [H, q, segments] */
  int32_t *pointers;       /* [H, q] */
  double *contexts;        /* [q_rows, H d_v], head_mask included */

  /* In: keys [H, q] for SELECT_HARD and SELECT_SAMPLE to take instead of the twin's own choice, or
   * NULL. Where two keys are as good as each other but for rounding, the fast layer may take the
   * other one. A key must be one that its query sees; where nothing is seen it is not looked at. */
  const int32_t *chosen;
};

/* Computes the call, whose request part is filled. STATUS_NOT_FINITE if a projection, a score or an
 * output is beyond float32, STATUS_OUT_OF_MEMORY. */
enum status attention_ref(const struct layer_shape *shape,
                          const struct layer_matrix matrix[ROLE_COUNT], const struct call *c,
                          const struct ref_answer *answer, struct error *e);

#endif
