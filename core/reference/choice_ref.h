/* choice_ref: the readable twin of the choice of a token, in float64. */
#ifndef CORE_CHOICE_REF_H
#define CORE_CHOICE_REF_H

#include "core/generate/choice.h"

/* The probability [tokens] with which each token is chosen: 1 for one of them where nothing is
 * drawn; all 0 where every token is banned. */
void choice_ref(const struct stack_choice *c, const struct stack_past *past, const float *logit,
                size_t tokens, double *probability);

#endif
