/* call: one request in the core's own terms: a ragged batch of items and what is asked about them.
 *
 * Letters used everywhere:
 *   b items   q query rows of an item   k key rows of an item
 *   H heads   G key/value heads         d, d_v head size of query/key and of value
 * Rows of all items lie packed end to end: nothing is padded. A call, its arrays and its results
 * live in the request's arena. The request part is filled by the maker of the call, all other parts
 * by layer_prepare; from the submit until its job has ended, the call belongs to the pool. */
#ifndef CORE_CALL_H
#define CORE_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/kernel/kernel_select.h"
#include "core/run/run.h"
#include "core/run/spare.h"

enum weights { WEIGHTS_NONE, WEIGHTS_PER_HEAD, WEIGHTS_AVERAGE };

struct item {
  size_t q, k;         /* rows; either may be 0 */
  size_t q_row, k_row; /* its first row in queries and outputs, and in keys and values */
  int64_t offset;      /* causal_offset: query i has the position of key i + offset */
  size_t mask_at;      /* index in `mask` of its [q, k] or [H, q, k] */
  size_t bias_at;      /* index in `bias` of its [q, k] or [H, q, k] */
  size_t segments;     /* how many its keys are cut into, where the call has segments */
  size_t segments_at;  /* index in `segment_end` of its [segments] */

  /* Set by layer_prepare. */
  size_t weights_at;         /* index in `weights` of its [H, q, k] or [q, k] */
  size_t segment_weights_at; /* index in `segment_weights` of its [H, q, segments] */
};

struct call_space; /* projections and sight, private to the layer */
struct measures;   /* core/attention/measures.h */

struct call {
  struct run run; /* set by layer_prepare */

  /* The request. */
  size_t items;
  struct item *item;     /* [items] */
  size_t q_rows, k_rows; /* sums of q and of k over the items */
  const float *queries;  /* [q_rows, query_size] */
  const float *keys;     /* [k_rows, key_size]; may be `queries` */
  const float *values;   /* [k_rows, value_size]; may be `keys` */
  const int32_t *lens;   /* [q_rows] leading keys that each query may see, or NULL: all of them */
  const uint8_t *mask;   /* 1: the query may see the key; or NULL */
  bool mask_per_head; /* an item's mask is [H, q, k], not [q, k]. A key that is seen only in heads
                         that the call does not need is as hidden as one that is never seen */
  const float *bias;  /* added to the scaled scores; or NULL. May hold anything where the query
                         does not see the key; where it does, what is not finite is a fault */
  bool bias_per_head; /* an item's bias is [H, q, k], not [q, k] */
  bool causal;
  int64_t window_left, window_right; /* -1: unbounded */
  const float *head_mask;            /* [H] or NULL */
  bool uniform_rows;                 /* a query that sees nothing in a head weighs all keys alike */
  enum select select;
  uint64_t seed;              /* of SELECT_SAMPLE */
  const int32_t *segment_end; /* two levels: where each segment ends, rising to k; NULL: one level.
                                 Only with SELECT_SOFT, softmax weights and without uniform_rows */
  enum weights want;
  bool want_pointers;
  bool want_measures; /* measure the heads as well */
  /* Of a loss by the outputs, [q_rows, output_size], for measures; or NULL. */
  const float *gradients;

  /* Memory that the layer may overwrite once queries, keys and values are projected: that of these
   * themselves, unless the caller wants them afterwards. Each stretch is named once: keys may be
   * `queries`. */
  struct spare spare;

  /* The answer, allocated by layer_prepare. */
  float *outputs; /* [q_rows, output_size] */
  float *weights; /* per item at weights_at: [H, q, k] or [q, k]; NULL if not wanted */
  size_t weight_count;
  float *segment_weights; /* per item at segment_weights_at: [H, q, segments]; with segments where
                             the weights are wanted per head, else NULL */
  size_t segment_weight_count;
  int32_t *pointers; /* per item at H q_row: [H, q] the heaviest or the drawn key, -1 where nothing
                        is seen; NULL if neither wanted nor needed to measure */
  struct measures *measures; /* NULL if not wanted */
  struct spare left;         /* memory that is not read any more once the call is computed */

  struct call_space *space; /* the layer's own */
};

/* The call that a run is the first member of. */
_Static_assert(offsetof(struct call, run) == 0, "a run is the first member of its call");
static inline struct call *call_of(struct run *run) { return (struct call *)run; }
static inline const struct call *call_of_const(const struct run *run) {
  return (const struct call *)run;
}

#endif
