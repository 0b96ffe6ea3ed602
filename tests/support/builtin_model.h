/* builtin_model: a model that the program brings along, as the reference implementation reads it.
 */
#ifndef TESTS_BUILTIN_MODEL_H
#define TESTS_BUILTIN_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/reference/stack_ref.h"

enum { BUILTIN_LAYERS = 3, BUILTIN_LONGEST = 25, BUILTIN_WIDTH = 48 }; /* at most */

/* The sizes that the model must have. */
struct builtin_sizes {
  const char *name;
  size_t layers, heads, width, forward, vocabulary, longest;
  bool causal; /* and its output matrix is its table of tokens */
};

struct builtin_model {
  struct arena arena;
  struct stack_form form;
  struct stack_layer layer[BUILTIN_LAYERS];
};

/* Reads the model; the test fails if it is another. */
void builtin_model_load(struct builtin_model *m, const struct builtin_sizes *sizes);
void builtin_model_free(struct builtin_model *m);

/* The results of the model for tokens: the outputs, and of each layer the weights and the rows that
 * queries are projected from. */
struct builtin_view {
  double output[BUILTIN_LONGEST * BUILTIN_WIDTH];                       /* [n, d] */
  double weight[BUILTIN_LAYERS][4 * BUILTIN_LONGEST * BUILTIN_LONGEST]; /* [H, n, n] */
  double input[BUILTIN_LAYERS][BUILTIN_LONGEST * BUILTIN_WIDTH];        /* [n, d] */
};

/* head_mask: as in struct ref_text, or NULL. */
void builtin_model_run(const struct builtin_model *m, const int32_t *token, size_t n,
                       const float *const *head_mask, struct builtin_view *out);

#endif
