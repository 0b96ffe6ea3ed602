/* random_case: a drawn model, and memory for requests to it. */
#include "tests/support/random_case.h"

void random_case_stack(struct random_case *c, uint64_t seed, struct random_stack_kind kind) {
  c->state = seed;
  arena_init(&c->a, NULL);
  random_stack_init(&c->s, &c->state, kind);
}

void random_case_decoder(struct random_case *c, uint64_t seed, struct random_stack_kind kind,
                         size_t tokens) {
  c->state = seed;
  arena_init(&c->a, NULL);
  random_decoder(&c->s, &c->state, kind, tokens);
}

void random_case_pair(struct random_case *c, uint64_t seed, struct random_stack_kind kind,
                      size_t tokens) {
  random_case_decoder(c, seed, kind, tokens);
  while (!c->s.source) {
    random_stack_done(&c->s);
    random_decoder(&c->s, &c->state, kind, tokens);
  }
}

void random_case_done(struct random_case *c) {
  arena_free(&c->a);
  random_stack_done(&c->s);
}
