/* generation: a run that goes on from its texts, a token of each a round.
 *
 * Every item of the run's geometry is the text of a sequence. The first rounds take the texts, in
 * pieces where they are long; each of the others takes the token that was chosen last. Keys and
 * values of a sequence are kept until it is over, and then given back to the arena. It has the bits
 * that it would have alone, and those that a run over its whole text has. */
#ifndef CORE_GENERATION_H
#define CORE_GENERATION_H

#include <stdatomic.h>

#include "core/base/status.h"
#include "core/generate/choice.h"

struct stack_sequence {
  /* The request. The text is the item's of the geometry: at least one token. */
  uint32_t item, sample; /* as stack_past has them */
  size_t most;           /* tokens that are chosen at most, above 0 */

  /* The answer, allocated when the run is prepared. What belongs to token t is whole, and does not
   * change any more, once `count` is above t. */
  size_t recalled;        /* tokens of the text whose keys and values were known */
  atomic_size_t count;    /* tokens that were chosen */
  int32_t *token;         /* [most] */
  float *log_probability; /* [most] the model's own, whatever the choice made of it */
  int32_t *top_token;     /* [most, top_count] as in a run that scores */
  float *top_log_probability;
  double score;                     /* the sum of the log probabilities, once it is finished; of
                                       a search what it is ordered by */
  _Atomic enum stack_finish finish; /* set behind the last token's count */

  /* Where it lies in what the run shows (stack_shown), once the run is over: row t is the pass that
   * chose token t. */
  size_t row;  /* its first one of `most` rows, among those of all sequences */
  size_t keys; /* of a row of weights: all that it may come to see */
};

/* A way on of a text in one step of a search. */
struct stack_beam {
  int32_t parent; /* which of the ways of the step before it goes on from; 0 in the first step */
  int32_t token;
  float log_probability; /* of the token, the model's own */
  double sum;            /* of all its tokens, by which the search goes: see stack_choice */
};

/* The steps of the search behind one text. */
struct stack_search {
  size_t steps;                  /* that were taken */
  const size_t *count;           /* [steps] ways that went on, at most `beams`; the last may be 0 */
  const struct stack_beam *beam; /* [steps, beams] the best of these first */
};

/* A listener hears each token when it is chosen, and may end the sequence behind it. */
struct stack_listener {
  /* Token `count` - 1 of the sequence `item` was chosen; of a search, all `count` tokens, once
   * it is over. The calls for one sequence come in order, from the thread that chose the token,
   * before stack_sequence_count says so; calls for several sequences may come at the same time.
   * `finish` is the choice's. Returns it, or STACK_FINISH_STOP to end the sequence, or
   * STACK_FINISH_FAILED: then `fault` has the error once the run is over. */
  enum stack_finish (*hear)(struct stack_listener *l, size_t item, size_t count,
                            enum stack_finish finish);
  enum status (*fault)(const struct stack_listener *l, struct error *e);
};

struct stack_generation {
  /* The request. */
  struct stack_choice choice;
  struct stack_sequence *sequence; /* [items] */
  size_t each; /* sequences of a text, which lie side by side, and are `beams` of a search, all
                  with the same `most`; 0 is read as 1. Once a search is over its best come first;
                  where fewer were found than it has, the others have no token, and are
                  STACK_FINISH_LENGTH */
  size_t top;  /* the likeliest so many tokens are shown beside each */
  double round_work;         /* that a round may be, about, however long the texts; 0: any */
  struct prefixes *prefixes; /* beginnings of texts that are known (stack_prefix.h), or NULL; of no
                                use where heads are masked */
  struct stack_listener *listener; /* or NULL */
  /* A round is over and another one follows. Called by a thread of the pool, under its lock: it is
   * to take no time. NULL: not wanted. */
  void (*moved)(struct stack_generation *g);

  /* The answer. */
  size_t top_count;                  /* `top`, or as many as there are tokens */
  size_t chosen;                     /* tokens of all sequences, or steps of all searches, when
                                        the last round began */
  size_t kept_bytes;                 /* of keys and values, while the run is prepared */
  const struct stack_search *search; /* [texts] of a search; else NULL */

  struct stack_rounds *rounds; /* the stack's own */
};

/* Gives back what the run still holds of `prefixes`: needed behind a run that is not computed. */
void stack_generation_end(struct stack_generation *g, size_t items);

/* Lets the listener hear a token; without one, `finish` stays. */
static inline enum stack_finish stack_tell(const struct stack_generation *g, size_t item,
                                           size_t count, enum stack_finish finish) {
  return g->listener ? g->listener->hear(g->listener, item, count, finish) : finish;
}

/* The tokens of a sequence that are there. */
static inline size_t stack_sequence_count(const struct stack_sequence *q) {
  return atomic_load_explicit(&q->count, memory_order_acquire);
}

#endif
