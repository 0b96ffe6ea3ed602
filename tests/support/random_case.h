/* random_case: what a test of drawn models begins and ends with: a model, and memory for requests
 * to it. */
#ifndef TESTS_RANDOM_CASE_H
#define TESTS_RANDOM_CASE_H

#include "tests/support/random_texts.h"

struct random_case {
  uint64_t state; /* of what is drawn next */
  struct random_stack s;
  struct arena a; /* charged to nobody */
};

/* A model of any form; one whose runs generate, as random_decoder draws it; and such a one that has
 * a source. */
void random_case_stack(struct random_case *c, uint64_t seed, struct random_stack_kind kind);
void random_case_decoder(struct random_case *c, uint64_t seed, struct random_stack_kind kind,
                         size_t tokens);
void random_case_pair(struct random_case *c, uint64_t seed, struct random_stack_kind kind,
                      size_t tokens);
void random_case_done(struct random_case *c);

#endif
