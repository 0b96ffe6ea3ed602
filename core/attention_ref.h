/* attention_ref: the layer's slow, readable twin: the oracle that the fast one is compared with.
 *
 * Float64 throughout, the formulas written down as they stand, one query of one head at a time. It
 * asks visible_pair about every pair and knows nothing of tiles, panels or blocks. */
#ifndef CORE_ATTENTION_REF_H
#define CORE_ATTENTION_REF_H

#include "core/layer.h"

/* Computes the call, whose request part is filled, into outputs [q_rows, output_size] and, unless
 * NULL, weights: per item [H, q, k] one after the other, whatever the call wants. STATUS_NOT_FINITE
 * if a projection, a score or an output is beyond float32, STATUS_OUT_OF_MEMORY. */
enum status attention_ref(const struct layer_shape *shape,
                          const struct layer_matrix matrix[ROLE_COUNT], const struct call *c,
                          double *outputs, double *weights, struct error *e);

#endif
