/* drawn_model: whole models of random weights that have the scale of trained ones, for programs
 * that measure. */
#ifndef TESTS_DRAWN_MODEL_H
#define TESTS_DRAWN_MODEL_H

#include "core/run/pool.h"
#include "core/stack/stack.h"
#include "tests/support/random_call.h"

extern uint64_t drawn_state;        /* of all that is drawn */
extern enum kernel_form drawn_form; /* that has the numbers of matrices */

/* Uniform around `middle`; the spread is that of trained weights, or of biases and norms. */
const float *drawn_numbers(struct arena *a, size_t count, float middle, float spread);
struct stack_norm drawn_norm(struct arena *a, size_t width);

/* What the layers of a stack have. */
struct drawn_layers {
  bool biased; /* every matrix has a bias */
  bool gated;
  bool gemma;        /* norms of heads, and of what branches give */
  size_t full_every; /* one layer of so many is of the first kind, the others of the second; 0: all
                        are */
  bool full_first;   /* the first one of them; else the last */
};

/* A stack of a form whose embedding lies in the arena, which is freed. The layers of the first
 * function have biases, and nothing else of these. Where there is cross attention, it has the sizes
 * of the other one. */
struct stack *drawn_stack(const struct stack_form *form, struct arena *a);
struct stack *drawn_stack_of(const struct stack_form *form, const struct drawn_layers *layers,
                             struct arena *a);

/* A run over texts of so many drawn tokens each, which lie one after the other: not prepared. */
struct stack_run *drawn_run(const struct stack *s, size_t items, size_t length, struct arena *a);

/* It goes on from its items by `most` tokens, `each` items being those of one text: greedily, or as
 * the beams of a search. */
void drawn_go_on(struct stack_run *r, size_t each, bool search, size_t most, struct arena *a);

/* A pool for one run at a time. */
struct pool *drawn_pool(const struct stack *s, size_t workers);
struct pool *drawn_pool_of(size_t scratch_bytes, size_t workers);

/* Nanoseconds from the submission of a prepared run to its end, and that of those behind it. */
double drawn_time(struct pool *p, struct run *first);

/* What a run that generates takes: all of it, and each step behind the first token. */
struct drawn_taken {
  double whole, step; /* nanoseconds */
};

/* `best` keeps the less of what it has and what this run takes; it chooses two tokens or more. */
void drawn_generate(struct pool *p, struct stack_run *r, struct drawn_taken *best);

#endif
