/* output: log probabilities of tokens, from the rows of the outputs. Private to core/.
 *
 * Before the matrix, the head of an encoder transforms the rows, a tile at a time.
 *
 * The logits of a row are its product with a matrix that has a row for each token. They are
 * computed a block of tokens at a time, and each is one chain of multiply-adds, whatever rows are
 * computed with it. Of a block remains its part of the row's outcome. Blocks are counted from token
 * 0 and added in their order: so a row has the same log probabilities whether its logits are kept
 * or not. */
#ifndef CORE_OUTPUT_H
#define CORE_OUTPUT_H

#include "core/forward/forward.h"

enum { STACK_BLOCK_TOKENS = 16 * KERNEL_PANEL_MAX };

/* --- the outcome of a row --- */

/* The greatest logit so far, and the sum of e^(logit - most). */
struct stack_outcome {
  float most;
  double sum;
  size_t listed; /* of the most likely tokens */
};

/* The list of the `top` most likely tokens of a row; top 0: there is none. */
struct stack_likely {
  size_t top;
  int32_t *token; /* [top] the most likely first, of equals the lower */
  float *log;     /* [top] their logits, and in the end their log probabilities */
};

void stack_outcome_begin(struct stack_outcome *o);

/* Adds the logits of tokens `first` .. first + count - 1, which are finite: a block, or the rest of
 * the tokens. `scratch` has room for a block. */
void stack_outcome_add(const struct kernel *k, struct stack_outcome *o, const float *logit,
                       size_t first, size_t count, const struct stack_likely *likely,
                       float *scratch);

/* Makes log probabilities of the list. Returns the difference of a logit and its log probability.
 */
double stack_outcome_end(const struct stack_outcome *o, const struct stack_likely *likely);

/* Are the listed ones, and this one, within float32? Logits of both signs may be so far apart that
 * their log probabilities are not. */
bool stack_outcome_is_finite(const struct stack_outcome *o, const struct stack_likely *likely,
                             double log_probability);

/* --- tiles: rows of a run that go through the matrix together --- */

struct output_tile {
  const struct stack *stack;
  size_t count, row[STACK_OUTPUT_ROWS]; /* of the run */
  struct stack_outcome outcome[STACK_OUTPUT_ROWS];
  struct stack_likely likely[STACK_OUTPUT_ROWS];
  int32_t target[STACK_OUTPUT_ROWS];
  float target_logit[STACK_OUTPUT_ROWS]; /* in the end the target's log probability */
  float *x, *product, *logit, *spare;
  size_t stride;      /* floats from one row of `x` to the next */
  float *transformed; /* rows that replace `x`; NULL: there is no transform */
};

size_t output_floats(const struct stack *s); /* of scratch, for a tile */

/* Makes an empty tile in the scratch of a step. */
void output_tile_begin(struct output_tile *t, const struct stack *s, float *scratch);

/* Adds a row of a run, with its target and the place of its list. The caller writes the row, as the
 * matrix reads it, to the [d] floats that are returned. */
float *output_tile_add(struct output_tile *t, size_t row, int32_t target,
                       struct stack_likely likely);

/* Computes the outcomes of all rows. Rows with a number that exceeds float32 are noted as faults of
 * the unit. */
void output_tile_compute(struct output_tile *t, const struct unit *u);

/* Makes rows [e] of rows [d], with `to_row` and `from_row` floats from one to the next. Returns the
 * first row whose result is not finite; `rows`: there is none. The scratch has gemm_scratch_floats
 * of the transform. */
size_t output_transform(const struct stack *s, size_t rows, const float *from, size_t from_row,
                        float *to, size_t to_row, float *scratch);

/* Scales a row [d], which the last norm has left, as the matrix reads it. */
void output_scale(const struct stack *s, float *row);

/* Writes a row of the outputs to `to` [d] as the matrix reads it. */
void output_row(const struct stack *s, const struct stack_run *r, size_t row, float *to);

/* The place of the list of a row that has a target, in the logit lens of hidden state l. */
struct stack_likely output_lens_likely(const struct stack_run *r, size_t l, size_t row);

/* Operations for the log probabilities of a row, about. */
double output_work(const struct stack *s);

#endif
