/* words_grammar: the sentences that the models `words` and `story` learn, and those that `words`
 * is tested with.
 *
 * A sentence is of a small English: 110 words, most frames alike "the animal did not cross the
 * street because it was too tired". Each of its words speaks of one of its nouns, or of none.
 * Sentences for training never have certain pairs of nouns together, nor certain adjectives with
 * certain nouns; the tests are made of these. */
#ifndef TESTS_WORDS_GRAMMAR_H
#define TESTS_WORDS_GRAMMAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  WORDS_COUNT = 110, /* word 0 is <unk>; the ids of the nouns are 1 to WORDS_NOUNS */
  WORDS_NOUNS = 31,
  WORDS_LONGEST = 24, /* words of a sentence */
  WORDS_ROOM = 40     /* of a sentence that is being made, and may come out too long */
};

extern const char *const words_text[WORDS_COUNT];

/* The id of a word; -1: there is none. */
int words_id(const char *text);

enum words_kind { ANIMAL, HE, SHE, PLACE, THING, HOLDER, NO_NOUN };

enum words_kind words_kind_of(int word);

/* Is the adjective said of the noun? */
bool words_fits(int noun, int adjective);

struct words_sentence {
  size_t n;
  unsigned char word[WORDS_ROOM];
  unsigned char noun[WORDS_ROOM]; /* the word's noun, 0: none */
  bool every[WORDS_ROOM];         /* it speaks of every mention of the noun, not of the nearest */
};

/* The places of the mentions that a word speaks of, itself if of none; returns how many. */
size_t words_places(const struct words_sentence *s, size_t i, bool place[WORDS_ROOM]);

/* Draws a sentence for training. */
struct words_sentence words_draw(uint64_t *state);

/* Does training leave the pair of nouns out, or the adjective of the noun? */
bool words_pair_is_held_out(int noun, int other);
bool words_adjective_is_held_out(int noun, int adjective);

/* --- tests --- */

enum words_test {
  TEST_BECAUSE,
  TEST_SENTENCE,
  TEST_ATTRIBUTE,
  TEST_BEFORE,
  TEST_PRONOUN_FIRST,
  TEST_PLACE_FIRST,
  TEST_FIT,
  TEST_HE_OR_SHE,
  TEST_ADJECTIVE,
  TEST_OBJECT,
  TEST_ALIKE,
  WORDS_TESTS
};

extern const char *const words_test_name[WORDS_TESTS];

/* Two sentences that differ in what they say of the pronoun: it is the one noun, or the other. */
struct words_pair {
  struct words_sentence sentence[2];
};

/* All pairs of a test, of nouns that training leaves out (TEST_ADJECTIVE: of such adjectives); the
 * caller frees them. Ends the program if there is no memory. */
struct words_pair *words_pairs(enum words_test test, size_t *count);

/* The place of the pronoun; each sentence of a test has one. */
size_t words_pronoun(const struct words_sentence *s);

#endif
