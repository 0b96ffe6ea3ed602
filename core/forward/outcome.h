/* outcome: what remains of the logits of a row, block by block: the greatest one, the sum of
 * what the others are to it, and the likeliest tokens.
 *
 * Blocks are counted from token 0 and joined in their order: so a row has the same log
 * probabilities whether its logits are kept or not. */
#ifndef CORE_OUTCOME_H
#define CORE_OUTCOME_H

#include "core/kernel/kernel.h"

enum { STACK_BLOCK_TOKENS = 16 * KERNEL_PANEL_MAX };

/* The sum of e^(logit - most) over the tokens so far. */
struct stack_outcome {
  float most;
  double sum;
  size_t listed; /* of the likeliest */
};

/* Of a row whose likeliest `top` tokens are listed. */
struct stack_likely {
  size_t top;
  int32_t *token; /* [top] the likeliest first, of equals the lower */
  float *log;     /* [top] their logits, and in the end their log probabilities */
};

void stack_outcome_begin(struct stack_outcome *o);

/* Adds the logits of tokens `first` .. first + count - 1, which are finite: a block, or what is
 * left of the tokens. `scratch` has room for a block. */
void stack_outcome_add(const struct kernel *k, struct stack_outcome *o, const float *logit,
                       size_t first, size_t count, const struct stack_likely *likely,
                       float *scratch);

/* What is taken from a logit to make it a log probability; of the listed it is taken here. */
double stack_outcome_end(const struct stack_outcome *o, const struct stack_likely *likely);

/* Are the listed ones, and this one, within float32? Logits of both signs may be so far apart that
 * their log probabilities are not. */
bool stack_outcome_is_finite(const struct stack_outcome *o, const struct stack_likely *likely,
                             double log_probability);

#endif
