/* trace: the intermediate numbers of attention for one query in one head.
 *
 * Letters as in geometry.h; k: keys of the query's item. Query and keys are shown as scores compare
 * them, projected and rotated, with n numbers each: n is d, a with SCORE_ADDITIVE, d_k with
 * SCORE_BILINEAR. A trace depends only on its query and the keys that it attends to. */
#ifndef CORE_TRACE_H
#define CORE_TRACE_H

#include <stddef.h>
#include <stdint.h>

struct trace {
  /* The request. */
  size_t item, head, row; /* `row` is the query's row in its item */

  /* The results, allocated when the call is prepared. All numbers are finite: others are a fault of
   * the call. */
  size_t keys, size, value_size; /* k, n, d_v */
  uint8_t *seen;                 /* [k] 1: the query attends to the key */
  float *query;                  /* [n] zeros if it attends to no key */
  float *key;                    /* [k, n] zeros for a masked key */
  float *value;                  /* [k, d_v] zeros for a masked key with a weight of 0 */
  float *product;                /* [k] q.k without position terms, or v.tanh(q + k); 0 if masked */
  float *score;                  /* [k] with scale, bias and all positions; 0 if masked */
  float *weight;                 /* [k] bit-identical to the call's attention weights */
  float *context;                /* [d_v] before head_mask; bit-identical to the call's */
};

#endif
