/* choice_ref: the reference implementation of the choice of a token, in float64. */
#ifndef CORE_CHOICE_REF_H
#define CORE_CHOICE_REF_H

#include "core/generate/choice.h"

/* Computes the probability [tokens] with which each token is chosen: 1 for one token if nothing is
 * sampled, 0 for all if every token is banned. */
void choice_ref(const struct stack_choice *c, const struct stack_past *past, const float *logit,
                size_t tokens, double *probability);

#endif
