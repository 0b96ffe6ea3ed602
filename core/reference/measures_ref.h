/* measures_ref: the measures of the heads as they are defined, from the readable twin's answer.
 *
 * Float64 throughout, one query row of one head, or of two, at a time. */
#ifndef CORE_MEASURES_REF_H
#define CORE_MEASURES_REF_H

#include "core/attention/measures.h"
#include "core/reference/attention_ref.h"

/* `answer` holds the weights, contexts and outputs of the call. The arrays of `m` are the caller's;
 * without a place for the divergence it is left out, and so is the entropy. */
void measures_ref(const struct layer_shape *shape, const struct layer_matrix matrix[ROLE_COUNT],
                  const struct call *c, const struct ref_answer *answer, struct measures *m);

#endif
