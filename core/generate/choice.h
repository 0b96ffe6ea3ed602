/* choice: how the next token of a text is chosen from the logits of all tokens.
 *
 * Choosing works on a copy of the logits. In this order: a bias is added to tokens that have one,
 * tokens of the text are made less likely, those that were chosen pay their penalties, what would
 * repeat a stretch is banned, and so are tokens that are not wanted, and those that end a text that
 * is too short. Of what is left the greatest is taken; or one is drawn, the likelier the more
 * often. */
#ifndef CORE_CHOICE_H
#define CORE_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* When is a search over, of which as many ways are done as are kept? */
enum stack_early {
  STACK_EARLY_NOT,  /* when the best that goes on is no better than those that are done */
  STACK_EARLY_YES,  /* at once */
  STACK_EARLY_NEVER /* when it could not become better even with all tokens that it may have */
};

enum { STACK_BEAMS_MAX = 64 };

struct stack_bias {
  int32_t token;
  double added; /* to its logit */
};

struct stack_choice {
  double temperature;        /* 0: the greatest is taken, of equals the lowest token */
  size_t top_k;              /* drawn is one of the likeliest so many; 0: of all */
  double top_p;              /* of the likeliest that have this probability together; 1: of all */
  double min_p;              /* drawn has at least so much of the greatest probability; 0: any */
  uint64_t seed;             /* of what is drawn */
  double repetition_penalty; /* above 0; 1: none */
  double presence_penalty;   /* off the logit of each token that was chosen */
  double frequency_penalty;  /* off the same logit, once for each time that it was chosen */
  size_t no_repeat_ngram;    /* no so many tokens in a row come twice; 0: they may */
  const struct stack_bias *bias; /* [biases] each token once */
  size_t biases;
  const int32_t *banned; /* [banned_count] never chosen */
  size_t banned_count;
  const int32_t *end, *stop; /* [ends], [stops] tokens behind which a text is over */
  size_t ends, stops;
  size_t min_tokens;    /* so many are chosen before one that ends the text may be */
  int64_t forced_begin; /* the first one behind a text of one token; -1: none is forced */
  int64_t forced_end;   /* the last one where `most` are chosen; -1: none is forced */

  /* A search: above 1 the likeliest so many ways on are followed side by side. Then the temperature
   * is 0, and choosing works on a copy of the log probabilities. */
  size_t beams;
  double length_penalty; /* a way's score is its sum over the number of its tokens to this power */
  enum stack_early early;
};

/* What a choice depends on, besides the logits. */
struct stack_past {
  const int32_t *token; /* [count] the text so far, and what was chosen behind it */
  size_t count;
  size_t chosen, most;   /* how many of these were chosen; how many may be at most */
  uint32_t item, sample; /* which text of the request, and which way on from it */
};

enum stack_finish {
  STACK_FINISH_NOT,    /* it goes on */
  STACK_FINISH_END,    /* its last token is one of the choice's `end` */
  STACK_FINISH_STOP,   /* or one of its `stop` */
  STACK_FINISH_LENGTH, /* it has as many as it may have */
  STACK_FINISH_FAILED  /* what a listener may say (stack_listener); no sequence has it */
};

/* Is the token one of the list? */
bool stack_choice_lists(const int32_t *list, size_t count, int32_t token);

/* Is a text over behind this token, the last of so many that were chosen? */
enum stack_finish stack_choice_finish(const struct stack_choice *c, int32_t token, size_t chosen,
                                      size_t most);

/* Bytes of scratch, 64-byte aligned, for a vocabulary of `tokens`. */
size_t stack_choice_scratch(size_t tokens);

/* The token, or -1 where every token is banned. `logit` [tokens] are finite. */
int32_t stack_choose(const struct stack_choice *c, const struct stack_past *past,
                     const float *logit, size_t tokens, void *scratch);

/* Up to `most` tokens of a search, the likeliest first, of equals the lower: those that may come.
 * `log_sum` is what makes a log probability of a logit: their difference. `log` [most] gets what
 * the choice makes of these; a token that has to come has 0. Returns how many there are. */
size_t stack_choose_some(const struct stack_choice *c, const struct stack_past *past,
                         const float *logit, double log_sum, size_t tokens, size_t most,
                         int32_t *token, float *log, void *scratch);

#endif
