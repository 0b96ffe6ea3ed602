/* random_texts: drawn models that go on from drawn texts, and how their runs are computed. */
#ifndef TESTS_RANDOM_TEXTS_H
#define TESTS_RANDOM_TEXTS_H

#include "tests/support/random_stack.h"

enum { RANDOM_TEXTS_TOP = 3 }; /* likeliest tokens that are shown, at most */
enum { RANDOM_BEAMS = 8 };     /* at most */

/* A drawn model whose runs generate, of so many tokens; 0: of any number. */
void random_decoder(struct random_stack *s, uint64_t *state, struct random_stack_kind kind,
                    size_t tokens);

/* `items` texts of up to `longest` tokens, of which up to `most` more are wanted, greedily.
 * The memory is the arena's. */
struct stack_run *random_texts(const struct random_stack *s, uint64_t *state, size_t items,
                               size_t longest, size_t most, struct arena *a);

/* The same request for some of its items, `items` of them from `first` on; for all. Not prepared:
 * their geometry and tokens are what they were. */
struct stack_run *texts_of(const struct random_stack *s, const struct stack_run *r, size_t first,
                           size_t items, struct arena *a);
struct stack_run *texts_again(const struct random_stack *s, const struct stack_run *r,
                              struct arena *a);

/* A run over the text of an item and `count` tokens behind it as over one text, with its source:
 * not prepared, and without wishes. */
struct stack_run *whole_text_of(const struct random_stack *s, const struct stack_run *r,
                                size_t item, const int32_t *token, size_t count, struct arena *a);

/* A request to search with any choice: each text is that of as many items as there are beams, so
 * many, or where `beams` is 0 up to RANDOM_BEAMS. */
struct stack_run *random_search(const struct random_stack *s, uint64_t *state, size_t beams,
                                size_t texts, size_t longest, size_t most, struct arena *a);

/* The same for some of its texts, from `first` on: not prepared. */
struct stack_run *search_of(const struct random_stack *s, const struct stack_run *r, size_t first,
                            size_t texts, struct arena *a);

/* Computes prepared runs together, round by round, with a grain of so much work. Returns the
 * rounds.
 */
size_t compute_rounds(const struct random_stack *s, struct stack_run **run, size_t runs,
                      double work);

/* Prepares a run, and computes it. */
void generate(const struct random_stack *s, struct stack_run *r, double work, struct arena *a);

#endif
