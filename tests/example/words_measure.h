/* words_measure: what the heads of the model `words` do, in figures. */
#ifndef TESTS_WORDS_MEASURE_H
#define TESTS_WORDS_MEASURE_H

#include "tests/example/words_grammar.h"

enum {
  WORDS_LAYERS = 2,
  WORDS_HEADS = 3,
  WORDS_CLASSES = WORDS_NOUNS + 1, /* the first numbers of an output: no noun, then the nouns */
  WORDS_NAMED = NO_NOUN            /* numbers of head 0 that have a meaning: the kinds of nouns */
};

/* The questions of heads 0, 1 and 2 of the last layer. */
enum words_question { MEANT, WORD_BEFORE, SAME_WORD };

/* The weights that a row of the head should have: `smooth` of the whole evenly on all words, the
 * rest evenly on those that are right. */
void words_want(const struct words_sentence *s, enum words_question question, size_t row,
                float smooth, float *want);

/* The results of the model for a sentence. */
struct words_view {
  float output[WORDS_LONGEST][WORDS_CLASSES];
  float weight[WORDS_LAYERS][WORDS_HEADS][WORDS_LONGEST][WORDS_LONGEST];
};

typedef void words_run(void *context, const struct words_sentence *s, struct words_view *out);

/* The score of a test: shares of its pairs. */
struct words_score {
  size_t pairs;
  double right; /* head 0 gives most to the right noun, in both sentences */
  double sure;  /* ... and at least 0.7 */
  double mean;  /* of what it gives to the right noun */
  double names; /* the greatest number of the pronoun's row is that noun, in both */
  double adjective[WORDS_HEADS]; /* what heads of layer 0 give the last word, which is the
                                    pronoun's adjective except in "object" and "pronoun first" */
};

/* At most `most` pairs, evenly out of all. */
struct words_score words_score(enum words_test test, size_t most, words_run *run, void *context);

/* Habits in new sentences of the training's kinds. */
struct words_habits {
  double names;                  /* rows whose greatest number is their noun */
  double mean[3], most[3];       /* by question: what the head gives to what is right; the
                                    share of rows in which that is at least 0.8 */
  double apart[WORDS_LAYERS][3]; /* Jensen-Shannon divergence of heads 0 and 1, 0 and 2, 1
                                    and 2, in bits */
};

struct words_habits words_habits(size_t sentences, words_run *run, void *context);

#endif
