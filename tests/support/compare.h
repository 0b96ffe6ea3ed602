/* compare: what the fast layer computed, beside its readable twin and beside itself. */
#ifndef TESTS_COMPARE_H
#define TESTS_COMPARE_H

#include "tests/support/random_call.h"

/* Computes a chain of prepared calls in spans of `work`, with scratch of its own. */
void compute(const struct layer *l, struct layer_run *first, double work);

/* Does the computed call agree with the twin, within what is promised? Where rounding decides
 * between two keys either is right, if what follows from it is. False: `e` tells what differs. */
bool agrees_with_twin(const struct random_layer *l, const struct layer_run *c, struct error *e);

/* Are the answers of two computed calls the same, bit for bit, as far as both asked for them? */
bool same_bits(const struct random_layer *l, const struct layer_run *x, const struct layer_run *y,
               struct error *e);

/* Are two traces of one query the same, bit for bit? */
bool same_trace(const struct trace *x, const struct trace *y, struct error *e);

/* Are those of `part` the same as those of some queries of `whole`, from query `first` of an item
 * on? */
bool same_bits_of_rows(const struct random_layer *l, const struct layer_run *whole, size_t item,
                       size_t first, const struct layer_run *part, struct error *e);

#endif
