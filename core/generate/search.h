/* search: how a search goes from step to step: which ways on from a text are followed, which
 * are done, and when it is over. It knows nothing of how log probabilities come about.
 *
 * In each step every way that is followed has its candidates: tokens, the best first, each with the
 * sum that the way would have. Of all of them the best are ranked. What ends a text is done if its
 * rank is below `beams`; of the others the first `beams` are followed in the next step. */
#ifndef CORE_SEARCH_H
#define CORE_SEARCH_H

#include "core/base/arena.h"
#include "core/generate/generation.h"

struct stack_candidate {
  double sum;
  int32_t token;
  float log_probability; /* the model's own */
};

/* A way that is done. */
struct stack_done {
  double score;
  size_t count;           /* of its tokens, of which this is the last: */
  struct stack_beam last; /* its parent is a way of the step before */
  enum stack_finish finish;
};

struct stack_searching {
  const struct stack_choice *choice;
  size_t most;                       /* tokens of a way, at most */
  size_t width;                      /* candidates of a way, at most: more cannot be taken */
  struct stack_candidate *candidate; /* [beams, width] of this step, ... */
  size_t *found;                     /* [beams] ... so many of each way */
  size_t steps;
  size_t *count;           /* [most] ways that were followed behind each step */
  struct stack_beam *beam; /* [most, beams] */
  size_t running;          /* of the last step; before the first there is one, the text */
  struct stack_done *done; /* [dones] the best first; at most `beams` */
  size_t dones;
  bool over;
  bool beyond; /* the sum of a way that is followed, or the score of one that was kept, is beyond
                  float32 */
};

/* Of a choice with more than one beam, which stays where it is, among so many tokens. The memory is
 * the arena's. */
enum status stack_search_init(struct stack_searching *q, const struct stack_choice *c,
                              size_t tokens, size_t most, struct arena *a, struct error *e);

/* Ranks the candidates, of which there may be none, and takes the step. It is not over yet. */
void stack_search_step(struct stack_searching *q);

/* The way that was followed as number `index` behind a step. */
static inline const struct stack_beam *stack_search_beam(const struct stack_searching *q,
                                                         size_t step, size_t index) {
  return &q->beam[step * q->choice->beams + index];
}

#endif
