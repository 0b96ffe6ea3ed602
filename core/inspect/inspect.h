/* inspect: steps of a forward pass that show how it comes about. Private to core/.
 *
 * logit_lens.c: the most likely tokens of each hidden state. thumbnail.c: attention weights as
 * small pictures. ablation.c: the importance of heads. */
#ifndef CORE_INSPECT_H
#define CORE_INSPECT_H

#include "core/forward/forward.h"
#include "core/inspect/ablation.h"

extern const struct stack_step stack_step_logit_lens, stack_step_thumbnails, stack_step_ablation;

/* --- thumbnails --- */

/* A thumbnail of weights [rows, columns]: the greatest weight of each block. */
struct thumbnail {
  const float *weights;
  size_t row_step, rows, columns;
  size_t most; /* rows and columns of the thumbnail, at most */
};

static inline size_t thumbnail_high(const struct thumbnail *p) {
  return p->rows < p->most ? p->rows : p->most;
}
static inline size_t thumbnail_wide(const struct thumbnail *p) {
  return p->columns < p->most ? p->columns : p->most;
}

/* Writes a byte for each block. */
void thumbnail_write(const struct thumbnail *p, uint8_t *to);

/* --- ablation --- */

/* Does a round of the run begin at this layer? Then the rows that enter it must stay. */
bool ablation_begins(const struct stack *s, const struct stack_run *r, size_t layer);

/* Is head number `i` of the list one of this run, and not of its source? */
bool ablation_cuts(const struct stack_run *r, size_t i);

/* Prepares the rounds of such a run, once all else is prepared; `layers` is the work of its layers.
 */
enum status ablation_prepare(const struct stack_preparing *p, double layers);

/* Moves the run on to the round without the next head. False: all heads are measured, or that round
 * begins in the run's source (run.then). */
bool ablation_next_round(const struct program *p, struct run *run);

#endif
