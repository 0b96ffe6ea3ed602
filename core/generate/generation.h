/* generation: a run that generates tokens, one of each sequence a round.
 *
 * Every item of the run's geometry is the prompt of a sequence. The first rounds take the prompts
 * (prefill), in chunks where they are long; each later round takes the last generated token. Keys
 * and values of a sequence are kept until it is over; their memory goes to the next prompt or back
 * to the arena. A sequence
 * has the bits that it would have alone, and those of a run over its prompt and tokens. */
#ifndef CORE_GENERATION_H
#define CORE_GENERATION_H

#include <stdatomic.h>

#include "core/attention/kept.h"
#include "core/base/status.h"
#include "core/generate/choice.h"

struct stack_sequence {
  /* The request. The prompt is the item's of the geometry: at least one token. */
  uint32_t item, sample; /* as stack_past has them */
  size_t most;           /* tokens to generate, at most; above 0 */

  /* The response, allocated when the run is prepared. All that belongs to token t is complete, and
   * does not change any more, once `count` is above t. */
  size_t recalled;        /* tokens of the prompt whose keys and values were in the prefix cache */
  atomic_size_t count;    /* generated tokens */
  int32_t *token;         /* [most] */
  float *log_probability; /* [most] the model's own, before the choice changes any */
  int32_t *top_token;     /* [most, top_count] as in a run that scores */
  float *top_log_probability;
  double score;                     /* the sum of the log probabilities, once it is finished; of a
                                       beam search the score that orders results */
  _Atomic enum stack_finish finish; /* set after the last token's count */

  /* Its rows in what the run shows (stack_shown), once the run is over: row t is of the pass that
   * chose token t. */
  size_t row;  /* the first of its `most` rows, among those of all sequences */
  size_t keys; /* of a row of weights: all that its tokens may attend to */

  /* The stack's own (generate_parts.h). Its rows are those of its tokens, whose keys and values are
   * kept. */
  int32_t *fed;  /* [text + most] the prompt, and the generated tokens after it */
  size_t text;   /* tokens of the prompt */
  size_t kept;   /* rows whose keys and values are there: those of the rounds that are over */
  size_t turned; /* how many of these have turned keys (kernel_tile), in whole blocks; ... */
  size_t turns;  /* ... and how many once this round is over. A block is turned when a row after
                    it is there: a twin copies all rows of a prompt without the last */
  size_t asks;   /* the place of its logits among those of this round; STACK_ASKS_NOT: its prompt
                    continues in the next round, or it is finished */
  size_t first;  /* the first of the neighboring items with this prompt; STACK_NO_TWIN: itself */
  size_t twin;   /* the one of these whose rows it copies; STACK_NO_TWIN: none */
  size_t copies; /* the round that begins with a copy: of its twin's rows, or of the prefix cache;
                    0: none */
  float *room;   /* its keys and values; NULL: it has not begun, or they are released */
  size_t room_bytes;
  bool leaves; /* it was finished before this round, which releases them at its end */
  /* A hypothesis, whose keys and values lie in rows of several sequences: */
  struct kept_lineage lineage; /* references to these rows, in one of two sets */
  struct {
    uint32_t *block, *row; /* [blocks], [KERNEL_KEYS] */
  } refers[2];
  int32_t *other; /* like `fed`: the two change places in each step */
  bool opens;     /* the rows of its prompt become the other hypotheses', too, in this round */
  bool weaves;    /* its last rows become a block in this round, ... */
  size_t woven;   /* ... which this sequence of the prompt stores */
  /* The prefix cache: */
  struct prefix_block **block; /* [recalls] the blocks that begin its prompt */
  size_t recalls, held;        /* how many of these; how many are not given back yet */
  uint64_t known; /* the last block of it that is cached, or the root; 0: no more are cached */
};

/* A hypothesis in one step of a beam search. */
struct stack_beam {
  int32_t parent; /* the hypothesis of the step before that it continues; 0 in the first step */
  int32_t token;
  float log_probability; /* of the token, the model's own */
  double sum;            /* of all its tokens, after the changes of stack_choice */
};

/* The steps of the beam search of one prompt. */
struct stack_search {
  size_t steps;        /* that were taken */
  const size_t *count; /* [steps] selected hypotheses, at most `beams`; the last may be 0 */
  const struct stack_beam *beam; /* [steps, beams] the best first */
};

/* A callback for every chosen token, which may end the sequence after it. */
struct stack_listener {
  /* Token `count` - 1 of the sequence `item` was chosen; of a beam search, all `count` tokens, once
   * it is over. The calls for one sequence are in order, by the thread that chose the token, before
   * stack_sequence_count counts it; calls for several sequences may be at the same time.
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
  size_t each; /* sequences of a prompt, which are adjacent; 0 is read as 1. Of a beam search they
                  are `beams`, all with the same `most`: its results, the best first; if there are
                  fewer, the others have no token and are STACK_FINISH_LENGTH */
  size_t top;  /* how many of the most likely tokens are listed for each token */
  double round_work;         /* operations of a round, about, however long the prompts; 0: any */
  struct prefixes *prefixes; /* the prefix cache (prefix.h), or NULL; unused where heads are masked
                              */
  struct stack_listener *listener; /* or NULL */
  /* Called after a round that another one follows, by the thread that computes, which may hold the
   * pool's lock: it must take no time. Or NULL. */
  void (*next_round)(struct stack_generation *g);

  /* The response. */
  size_t top_count;                  /* `top`, or as many as there are tokens */
  size_t chosen;                     /* tokens of all sequences, or steps of all searches, as
                                        counted when the current round was laid out */
  size_t kept_bytes;                 /* of keys and values, while the run is prepared */
  const struct stack_search *search; /* [prompts] of a beam search; else NULL */

  struct stack_rounds *rounds; /* the stack's own */
};

/* Gives back the blocks of `prefixes` that the run still holds: needed after a run that is not
 * computed. */
void stack_generation_end(struct stack_generation *g, size_t items);

struct stack;

/* Bytes that a token's keys and values take in a generation. */
size_t stack_kept_bytes(const struct stack *s);

/* Calls the listener, and returns its result; without one, `finish`. */
static inline enum stack_finish stack_tell(const struct stack_generation *g, size_t item,
                                           size_t count, enum stack_finish finish) {
  return g->listener ? g->listener->hear(g->listener, item, count, finish) : finish;
}

/* How many tokens of a sequence are complete. */
static inline size_t stack_sequence_count(const struct stack_sequence *q) {
  return atomic_load_explicit(&q->count, memory_order_acquire);
}

#endif
