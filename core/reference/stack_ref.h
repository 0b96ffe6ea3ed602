/* stack_ref: the slow, readable twin of a whole model, in float64: one item, row after row. */
#ifndef CORE_STACK_REF_H
#define CORE_STACK_REF_H

#include "core/stack/stack.h"

/* One item: tokens, or rows in their place. */
struct ref_text {
  size_t n;
  const int32_t *token;          /* [n], within the vocabulary; or NULL */
  const double *embedding;       /* [n, d] instead */
  const int32_t *token_type;     /* [n] or NULL: all 0 */
  const float *const *head_mask; /* [attentions] of [H], each or all NULL: what multiplies each
                                    context */
  size_t source_n;               /* of a form with cross attention: rows of the source, ... */
  const double *source;          /* [source_n, its width] ... which are its outputs */
};

/* What the twin computes; NULL: not asked for. */
struct ref_hidden {
  double
      *state; /* [L + 1, n, d]: what enters the first layer, and what each layer gives; the last
                 one is behind the last norm, or before it, as the form has it. Always asked for */
  double **weights; /* [attentions] of [H, n, n], or across [H, n, source_n] */
  double **input;   /* [attentions] of [n, d]: the rows that it reads, behind its norm; across those
                       that its queries are made of */
  double *outputs;  /* [n, d]: behind the last norm */
};

/* STATUS_NOT_FINITE if a number of an attention, a feed-forward layer, a hidden state or an output
 * exceeds the float32 range, STATUS_OUT_OF_MEMORY. */
enum status stack_ref(const struct stack_form *s, const struct ref_text *text,
                      const struct ref_hidden *out, struct error *e);

/* --- what answers make of that: stack_ref_answer.c --- */

/* How one vector is made of the outputs of an item. */
struct ref_pooling {
  enum stack_pool pool;
  size_t dimensions; /* the first so many numbers are kept; 0: all */
  size_t left_out;   /* rows that are not in a mean, or the greatest */
  bool normalize;
  bool dense_left;              /* the dense layer is left out */
  enum stack_function function; /* of classes */
};

/* Makes the vector [d, or what dense layer, dimensions or classes leave] of outputs [n, d], n above
 * 0. Fails as stack_ref does. */
enum status stack_ref_pool(const struct stack_form *s, const struct ref_pooling *how, size_t n,
                           const double *outputs, double *vector, struct error *e);

/* log p [V] of the token that follows a row of outputs [d]; s has an output. The matrix is summed
 * in float64. */
void stack_ref_log_probabilities(const struct stack_form *s, const double *row, double *logs);

/* A picture of weights [rows, columns], of up to `most` each: the greatest weight of each block, as
 * a byte. */
void stack_ref_thumbnail(const double *weights, size_t rows, size_t columns, size_t most,
                         uint8_t *bytes);

#endif
