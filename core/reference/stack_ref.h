/* stack_ref: the slow, readable twin of a whole model, in float64: one item, row after row. */
#ifndef CORE_STACK_REF_H
#define CORE_STACK_REF_H

#include "core/stack/stack.h"

/* One item: tokens, or rows in their place. */
struct ref_text {
  size_t n;
  const int32_t *token;      /* [n], within the vocabulary; or NULL */
  const double *embedding;   /* [n, d] instead */
  const int32_t *token_type; /* [n] or NULL: all 0 */
};

/* What the twin computes; the weights may be NULL. */
struct ref_hidden {
  double *state; /* [L + 1, n, d]: what enters the first layer, and what each layer gives; the last
                    one is behind the last norm */
  double **weights; /* [L] of [H, n, n] */
};

/* STATUS_NOT_FINITE if a number of an attention or a hidden state is beyond float32,
 * STATUS_OUT_OF_MEMORY. */
enum status stack_ref(const struct stack *s, const struct ref_text *text,
                      const struct ref_hidden *out, struct error *e);

#endif
