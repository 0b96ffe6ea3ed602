/* measures_ref: the reference implementation of head measures, from the results of attention_ref.
 *
 * It computes in float64, one query row of one head, or of two heads, at a time. */
#ifndef CORE_MEASURES_REF_H
#define CORE_MEASURES_REF_H

#include "core/attention/measures.h"
#include "core/reference/attention_ref.h"

/* Computes the measures of all heads. `answer` holds the weights, contexts and outputs of the call;
 * the arrays of `m` are the caller's. If m->divergence is NULL, divergence and entropy are not
 * computed. */
void measures_ref(const struct layer_shape *shape, const struct layer_matrix matrix[ROLE_COUNT],
                  const struct call *c, const struct ref_answer *answer, struct measures *m);

#endif
