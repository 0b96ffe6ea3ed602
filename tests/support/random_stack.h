/* random_stack: whole models and requests to them of every kind, drawn from a seed, for tests of
 * the core. */
#ifndef TESTS_RANDOM_STACK_H
#define TESTS_RANDOM_STACK_H

#include "core/stack/stack.h"
#include "tests/support/random_call.h"

enum { RANDOM_LAYERS = 12 }; /* at most */

struct random_stack {
  struct stack_form form; /* with its parameters */
  struct stack_layer layer[RANDOM_LAYERS];
  struct stack *stack;
  struct random_stack *source; /* to whose outputs its layers attend; or NULL */
  size_t longest;              /* rows of an item, as far as positions go */
  struct arena arena;
};

/* What a model is drawn for. */
struct random_stack_kind {
  size_t layers_least, layers_most;
  size_t longest;
  bool wide;   /* so that threads share out the columns of its matrices */
  bool tokens; /* it has a vocabulary, whatever else */
  bool alone;  /* it attends to no source */
  bool bytes;  /* two of three compute in bytes: where bits are compared, and not numbers */
};

/* Of half of the models that have a vocabulary: the table of tokens, or a matrix of its own, makes
 * logits; then runs have targets. `tokens` above 0: so many, and always. */
void random_stack_draw_output(struct random_stack *s, uint64_t state, size_t tokens);

/* A form with any mixture of norms, places, positions, activations, gates, biases, heads, tables
 * and pooling that has a meaning; now and then with a source. */
void random_stack_init(struct random_stack *s, uint64_t *state, struct random_stack_kind kind);
void random_stack_done(struct random_stack *s);

/* Makes the stack of a form that is set. */
void random_stack_make(struct random_stack *s);
void random_stack_remake(struct random_stack *s); /* once the form of a made one has changed */

/* A request, not prepared: ragged, up to `items` items of up to `most` rows, some of them empty
 * where nothing is pooled; tokens or embeddings, types, and any wishes. The memory is the arena's.
 */
struct stack_run *random_run(const struct random_stack *s, uint64_t *state, size_t items,
                             size_t most, struct arena *a);

/* A run of one item of so many rows, not prepared, for which nothing is given and nothing wished.
 */
struct stack_run *random_run_of_rows(const struct random_stack *s, size_t rows, struct arena *a);

/* Rows for so many items of a run's source, if its stack has one: a run of that. Its memory is the
 * arena's. */
struct stack_run *random_source(const struct random_stack *s, uint64_t state, size_t items,
                                struct arena *a);

/* The same run of a source once more, for some of its items: not prepared. NULL stays NULL. */
struct stack_run *random_source_of(const struct random_stack *s, const struct stack_run *source,
                                   const size_t *item, size_t items, struct arena *a);

/* The same request again, not prepared, without an answer; shares the inputs. */
struct stack_run *random_run_again(const struct random_stack *s, const struct stack_run *r,
                                   struct arena *a);

/* The same request for some of its items, in an order of their own. Not prepared. */
struct stack_run *random_run_of(const struct random_stack *s, const struct stack_run *r,
                                const size_t *item, size_t items, struct arena *a);

/* Wishes of its own for a run: none of them; any. */
struct stack_wish *random_run_wishes(const struct random_stack *s, struct stack_run *r,
                                     struct arena *a);
void random_run_draw_wishes(const struct random_stack *s, struct stack_run *r, uint64_t *state,
                            struct arena *a);

#endif
