/* search: the steps of a beam search: which hypotheses continue, which are results, and when the
 * search is over. It does not know how log probabilities are computed.
 *
 * In each step every hypothesis has its candidates: tokens, the best first, each with the sum that
 * the hypothesis would have. The best of all of them are ranked. A candidate that ends the sequence
 * is a result if its rank is below `beams`; of the others the first `beams` are selected: they are
 * the hypotheses of the next step. */
#ifndef CORE_SEARCH_H
#define CORE_SEARCH_H

#include "core/base/arena.h"
#include "core/generate/generation.h"

struct stack_candidate {
  double sum;
  int32_t token;
  float log_probability; /* the model's own */
};

/* A result. */
struct stack_done {
  double score;
  size_t count;           /* of its tokens, of which this is the last: */
  struct stack_beam last; /* its parent is a hypothesis of the step before */
  enum stack_finish finish;
};

struct stack_searching {
  const struct stack_choice *choice;
  size_t most;                       /* tokens of a hypothesis, at most */
  size_t width;                      /* candidates of a hypothesis that can matter, at most */
  struct stack_candidate *candidate; /* [beams, width] of this step, ... */
  size_t *found;                     /* [beams] ... how many of each hypothesis */
  size_t steps;
  size_t *count;           /* [most] hypotheses that each step selected */
  struct stack_beam *beam; /* [most, beams] */
  size_t running;          /* hypotheses of the last step; at first there is one, the prompt */
  struct stack_done *done; /* [dones] the best result first; at most `beams` */
  size_t dones;
  bool over;
  bool beyond; /* the sum of a hypothesis, or the score of a result, exceeds float32 */
};

/* Begins a search, by a choice with more than one beam, which must stay in place; among `tokens`
 * tokens, for at most `most`. The memory is the arena's. Returns e->status. */
enum status stack_search_init(struct stack_searching *q, const struct stack_choice *c,
                              size_t tokens, size_t most, struct arena *a, struct error *e);

/* Ranks the candidates, of which there may be none, and takes the step. The search is not over yet.
 */
void stack_search_step(struct stack_searching *q);

/* Hypothesis `index` that a step selected. */
static inline const struct stack_beam *stack_search_beam(const struct stack_searching *q,
                                                         size_t step, size_t index) {
  return &q->beam[step * q->choice->beams + index];
}

#endif
