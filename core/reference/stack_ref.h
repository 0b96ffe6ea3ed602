/* stack_ref: the reference implementation of a model's forward pass, in float64, for one item. */
#ifndef CORE_STACK_REF_H
#define CORE_STACK_REF_H

#include "core/stack/stack.h"

/* The input: tokens, or embeddings in their place. n: rows; d: hidden size. */
struct ref_text {
  size_t n;
  const int32_t *token;          /* [n] within the vocabulary, or NULL */
  const double *embedding;       /* [n, d] used if `token` is NULL */
  const int32_t *token_type;     /* [n] or NULL: all 0 */
  const float *const *head_mask; /* [attentions] of [H]; the array or any member may be NULL */
  size_t source_n;               /* rows of `source` */
  const double *source;          /* [source_n, d of the encoder] its outputs, for cross-attention */
};

/* The results, in the caller's memory; NULL: not requested. L: layers. Cross-attentions are
 * numbered after the self-attentions of all layers. */
struct ref_hidden {
  double *state;    /* [L + 1, n, d] the input of the first layer and the output of each layer;
                       required. The form says whether the last one is after the final norm */
  double **weights; /* [attentions] of [H, n, n], or for cross-attention [H, n, source_n] */
  double **input;   /* [attentions] of [n, d]: the rows that queries are projected from */
  double *outputs;  /* [n, d] after the final norm */
};

/* Computes the forward pass. Returns e->status: STATUS_NOT_FINITE if a number of an attention, a
 * feed-forward layer, a hidden state or an output exceeds the float32 range, or
 * STATUS_OUT_OF_MEMORY. */
enum status stack_ref(const struct stack_form *s, const struct ref_text *text,
                      const struct ref_hidden *out, struct error *e);

/* --- results made of the outputs: stack_ref_answer.c --- */

/* How the outputs of an item become vectors. */
struct ref_pooling {
  enum stack_vectors vectors;
  unsigned after;       /* a set of enum stack_after */
  const int32_t *token; /* [n] of a form whose pooler is a token's row */
  size_t dimensions;    /* how many leading numbers are kept; 0: all */
  size_t left_out;      /* leading rows that a mean or a maximum skips */
  bool normalize;
  enum stack_function function; /* of the classes' scores */
};

/* Computes the vector of outputs [n, d], n > 0. Its size is that of the classes, of `dimensions`,
 * of the last dense layer, or d. With STACK_VECTORS_EACH it is the vector of the first row. Fails
 * as stack_ref does. */
enum status stack_ref_pool(const struct stack_form *s, const struct ref_pooling *how, size_t n,
                           const double *outputs, double *vector, struct error *e);

/* Computes log p [V] of the next token after one row of outputs [d]; s has an output matrix. */
void stack_ref_log_probabilities(const struct stack_form *s, const double *row, double *logs);

/* Reduces weights [rows, columns] to at most [most, most] bytes: the greatest weight of each block.
 */
void stack_ref_thumbnail(const double *weights, size_t rows, size_t columns, size_t most,
                         uint8_t *bytes);

#endif
