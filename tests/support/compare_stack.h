/* compare_stack: what a stack computed, beside its readable twin and beside itself. */
#ifndef TESTS_COMPARE_STACK_H
#define TESTS_COMPARE_STACK_H

#include "tests/support/random_stack.h"

/* Prepares and computes the source of a run, if it has one. */
void prepare_source(const struct random_stack *s, struct stack_run *r, struct arena *a);

/* Prepares a run, which must go well; what it needs of its source is computed already then. */
void prepare_run(const struct random_stack *s, struct stack_run *r, struct arena *a);

/* Prepares a run and its source, and computes neither: returns what is to be computed first. */
struct run *prepare_chain(const struct random_stack *s, struct stack_run *r, struct arena *a);

/* The scratch that computing both needs. */
size_t chain_scratch_bytes(const struct random_stack *s);

/* Computes a chain of prepared runs in spans of `work`, with scratch of its own. What the runs
 * leave is overwritten then. */
void compute_runs(const struct random_stack *s, struct stack_run *first, double work);

/* Does the computed run agree with the twin, within what is promised? False: `e` tells what
 * differs.
 */
bool run_agrees_with_twin(const struct random_stack *s, const struct stack_run *r, struct error *e);

/* Are the answers for item i of a computed run and item j of another the same, bit for bit, as far
 * as both asked for the same? */
bool same_bits_of_items(const struct random_stack *s, const struct stack_run *x, size_t i,
                        const struct stack_run *y, size_t j, struct error *e);

/* Of all items of two runs that have the same. */
bool same_bits_of_runs(const struct random_stack *s, const struct stack_run *x,
                       const struct stack_run *y, struct error *e);

/* Are the thumbnails that a run shows those of the weights that another one shows, of the same
 * items? */
bool thumbnails_are_those_of(const struct random_stack *s, const struct stack_run *r,
                             const struct stack_run *whole, struct error *e);

#endif
