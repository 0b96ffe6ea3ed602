/* adapter_term: what an adapter adds to the numbers of one tensor when they are read. */
#ifndef CONFIG_ADAPTER_TERM_H
#define CONFIG_ADAPTER_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/adapter/adapter.h"

struct adapter_term;

/* Reads the matrices of a pair. With `turned`, the tensor's numbers are stored in the order of the
 * product's columns. NULL with the errors of checkpoint_read_floats, or STATUS_OUT_OF_MEMORY. */
struct adapter_term *adapter_term_read(const struct adapter *a, const struct adapter_pair *pair,
                                       bool turned, struct error *e);
void adapter_term_free(struct adapter_term *t); /* and those after it; NULL is fine */

/* Appends the term of another adapter to the same tensor. */
void adapter_term_append(struct adapter_term *t, struct adapter_term *next);

/* Adds the terms, one after the other, to numbers of the tensor: of a struct checkpoint_edit. Each
 * number becomes the float32 nearest to w + scale * sum over k of b_k a_k, where the sum is in
 * float64 in the order of k. */
void adapter_term_add(const void *term, uint64_t first, size_t count, float *numbers);

#endif
