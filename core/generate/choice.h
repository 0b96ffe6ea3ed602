/* choice: how the next token of a sequence is chosen from the logits of all tokens.
 *
 * A choice works on a copy of the logits. In this order: biases are added; repetition, presence and
 * frequency penalties are applied; tokens that would repeat an n-gram, banned tokens, and tokens
 * that would end the sequence too early are banned. Of the rest the greatest logit is taken (greedy
 * decoding), or a token is sampled. */
#ifndef CORE_CHOICE_H
#define CORE_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/kernel/kernel.h"

/* When a beam search is over that has as many results as beams. */
enum stack_early {
  STACK_EARLY_NOT,  /* when the best hypothesis is no better than the results */
  STACK_EARLY_YES,  /* at once */
  STACK_EARLY_NEVER /* when it could not become better even with all tokens that it may have */
};

enum { STACK_BEAMS_MAX = 64 };

struct stack_bias {
  int32_t token;
  double added; /* to its logit */
};

struct stack_choice {
  double temperature; /* 0: greedy decoding, of equals the lowest token */
  size_t top_k;       /* sampled is one of the `top_k` most likely tokens; 0: of all */
  double top_p;       /* one of the most likely that have this probability together; 1: of all */
  double min_p;       /* one with at least this share of the greatest probability; 0: any */
  uint64_t seed;      /* of the samples */
  double repetition_penalty;     /* above 0; 1: none */
  double presence_penalty;       /* subtracted from the logit of each generated token */
  double frequency_penalty;      /* the same, once for each time that it was generated */
  size_t no_repeat_ngram;        /* the size of n-grams that must not repeat; 0: all may */
  const struct stack_bias *bias; /* [biases] each token once */
  size_t biases;
  const int32_t *banned; /* [banned_count] never chosen */
  size_t banned_count;
  const int32_t *end, *stop; /* [ends], [stops] tokens that end the sequence */
  size_t ends, stops;
  size_t min_tokens;    /* are generated before a token may end the sequence */
  int64_t forced_begin; /* the first one after a prompt of one token; -1: none is forced */
  int64_t forced_end;   /* the last one of `most` tokens; -1: none is forced */

  /* Beam search: above 1 the best `beams` hypotheses are kept. Then the temperature is 0, and the
   * choice works on a copy of the log probabilities. */
  size_t beams;
  double length_penalty; /* the score is the sum over the number of tokens to this power */
  enum stack_early early_stopping;
};

/* The inputs of a choice besides the logits. */
struct stack_past {
  const int32_t *token; /* [count] the prompt, and the generated tokens after it */
  size_t count;
  size_t chosen, most;   /* how many of these were generated; how many may be at most */
  uint32_t item, sample; /* which prompt of the request, and which sequence of it */
};

enum stack_finish {
  STACK_FINISH_NOT,    /* it continues */
  STACK_FINISH_END,    /* its last token is in the choice's `end` */
  STACK_FINISH_STOP,   /* or in its `stop` */
  STACK_FINISH_LENGTH, /* it has `most` tokens */
  STACK_FINISH_FAILED  /* a result of a listener (stack_listener); no sequence has it */
};

/* Does the list have the token? */
bool stack_choice_lists(const int32_t *list, size_t count, int32_t token);

/* Does this token end the sequence, as the last of `chosen` tokens? */
enum stack_finish stack_choice_finish(const struct stack_choice *c, int32_t token, size_t chosen,
                                      size_t most);

/* Bytes of scratch, 64-byte aligned, for a vocabulary of `tokens`. */
size_t stack_choice_scratch(size_t tokens);

/* Chooses a token, by the kernel's exponential; -1: every token is banned. `logit` [tokens] are
 * finite. */
int32_t stack_choose(const struct kernel *kernel, const struct stack_choice *c,
                     const struct stack_past *past, const float *logit, size_t tokens,
                     void *scratch);

/* Lists up to `most` candidates of a beam search, the most likely first, of equals the lower.
 * `log_sum` is the difference of a logit and its log probability. `log` [most] gets the changed log
 * probabilities; a forced token has 0. Returns how many candidates there are. */
size_t stack_choose_some(const struct stack_choice *c, const struct stack_past *past,
                         const float *logit, double log_sum, size_t tokens, size_t most,
                         int32_t *token, float *log, void *scratch);

#endif
