/* ablation: the importance of each head of a model for a request: its run is computed, and then
 * once more without each of the heads.
 *
 * These are rounds of one run. A round without a head begins at the head's layer, whose rows the
 * first round has left in place; it writes to memory of later layers alone. So the heads of the
 * last layer are first, and the heads of a source follow all of the stack that reads it: without
 * one of them, that stack is computed anew from its beginning. Every round has the bits of a run of
 * its own whose head_mask has a 0 for the head. */
#ifndef CORE_ABLATION_H
#define CORE_ABLATION_H

#include <stdatomic.h>

#include "core/attention/call.h"
#include "core/base/arena.h"

struct stack;
struct stack_run;

enum stack_measure {
  STACK_MEASURE_LOGS,   /* by how much the sum of the log probabilities of all targets decreases */
  STACK_MEASURE_OUTPUTS /* the length of the change of the outputs, over that of the outputs (the
                           root of the sum of all squares); 0 where all outputs are 0 */
};

/* A head that is left out in a round. */
struct stack_cut {
  bool of_source;          /* it belongs to the source of the run */
  size_t layer, attention; /* the attention by its number */
  size_t head;
  double loss;      /* the measure, once `done` counts it; 0 until then */
  struct call call; /* the stack's own: the call of its attention, without it */
};

/* One of the runs: the stack's own. */
struct stack_ablation_part {
  const struct stack *stack; /* NULL: there is no such run */
  struct stack_run *run;
  double layers, others; /* the work of a round: of all layers, and of all other steps */
};

struct stack_ablation {
  /* The request, besides the wishes of the runs. */
  void (*next_round)(struct stack_ablation *w); /* called as stack_generation's is; or NULL */

  /* The response. */
  enum stack_measure measure;
  double full;           /* the sum of the log probabilities, or the length of the outputs */
  struct stack_cut *cut; /* [cuts] in the order of the rounds: the heads of an attention together */
  size_t cuts;
  atomic_size_t done; /* how many of these have been measured */
  size_t *ranking; /* [done] the measured ones, the least loss first, of equals the earlier head */

  /* The stack's own. */
  struct stack_ablation_part part[2]; /* the run itself, and its source */
  size_t round;                       /* the current one; in round 0 no head is left out */
  struct call whole;                  /* the call that the current round replaces */
  float *outputs;                     /* [output_count] of round 0, for STACK_MEASURE_OUTPUTS */
  size_t output_count;
};

/* Lists the heads of the attentions whose wishes say `ablation`. To be called once a run, and its
 * source if it has one, hold their requests; `source` is the stack of the source, or NULL. Both are
 * then prepared as any runs. Returns e->status. */
enum status stack_ablation_init(struct stack_ablation *w, const struct stack *s,
                                struct stack_run *r, const struct stack *source, struct arena *a,
                                struct error *e);

#endif
