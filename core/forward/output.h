/* output: rows that go through the output's matrix together, and what remains of their
 * logits.
 *
 * The logits of a row are its product with a matrix of a row for each token. They are made a block
 * of tokens at a time and not kept: what remains of a block is its part of the row's outcome. Each
 * logit is one chain of multiply-adds, whatever rows are beside its own. For stack_output and
 * stack_lens alone. */
#ifndef CORE_OUTPUT_H
#define CORE_OUTPUT_H

#include "core/forward/forward.h"
#include "core/forward/outcome.h"

struct output_tile {
  const struct stack *stack;
  size_t count, row[STACK_OUTPUT_ROWS]; /* of the run */
  struct stack_outcome outcome[STACK_OUTPUT_ROWS];
  struct stack_likely likely[STACK_OUTPUT_ROWS];
  int32_t target[STACK_OUTPUT_ROWS];
  float target_logit[STACK_OUTPUT_ROWS];
  float *x, *product, *logit, *spare;
};

/* An empty one, in the scratch of a step of the output. */
void output_tile_begin(struct output_tile *t, const struct stack *s, float *scratch);

/* Adds a row of a run, with its target and the place of its likeliest tokens. The caller writes to
 * what is returned, [d], the row as the matrix reads it. */
float *output_tile_add(struct output_tile *t, size_t row, int32_t target,
                       struct stack_likely likely);

/* Makes the logits of `count` tokens from `first` on, a block or what is left of the tokens: of row
 * i of the tile they then lie at logit + i STACK_BLOCK_TOKENS. */
void output_tile_block(struct output_tile *t, size_t first, size_t count);

/* Takes all logits of all rows: their likeliest tokens are in place. Rows with a number beyond
 * float32 are noted as faults of the unit. Returns in `target_logit` the targets' log
 * probabilities. */
void output_tile_take(struct output_tile *t, const struct unit *u);

/* Scales a row [d] that the last norm has left, as the matrix reads it. */
void output_scale(const struct stack *s, float *row);

size_t output_floats(const struct stack *s); /* of scratch, for a tile */

/* Where the likeliest tokens of a row that has a target lie in the lens of hidden state l. */
struct stack_likely output_lens_likely(const struct stack_run *r, size_t l, size_t row);

#endif
