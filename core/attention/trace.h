/* trace: how the weights of one query in one head come about.
 *
 * Letters as in geometry.h: k are the keys of the query's item. Queries and keys are as scores
 * compare them: projected, turned, and n numbers each: d, with SCORE_ADDITIVE a, with
 * SCORE_BILINEAR d_k. A trace depends on what its query sees in its head, and on nothing else. */
#ifndef CORE_TRACE_H
#define CORE_TRACE_H

#include <stddef.h>
#include <stdint.h>

struct trace {
  /* The request. */
  size_t item, head, row; /* the query's row in its item */

  /* The answer, allocated when the call is prepared. All of its numbers are finite: what is not is
   * a fault of the call. */
  size_t keys, size, value_size; /* k, n, d_v */
  uint8_t *seen;                 /* [k] 1: the query may see the key */
  float *query;                  /* [n] zeros where it sees none */
  float *key;                    /* [k, n] zeros where the key is not seen */
  float *value;                  /* [k, d_v] zeros where the key is not seen and weighs nothing */
  float *product;                /* [k] q.k, or v.tanh(q + k); 0 where the key is not seen */
  float *score;                  /* [k] with scale, bias and relative positions; 0 likewise */
  float *weight;                 /* [k] the bits of the call's weights, if it gave them */
  float *context;                /* [d_v] before head_mask; the bits of what head_mask multiplies */
};

#endif
