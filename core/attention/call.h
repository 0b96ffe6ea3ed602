/* call: one attention over a geometry: its inputs, what is requested, and its results.
 *
 * A call lies in its run; its arrays and results lie in the request's arena. The maker of the call
 * fills the request part, layer_prepare all other parts. From pool_submit until the job has ended,
 * the call and its geometry belong to the pool. */
#ifndef CORE_CALL_H
#define CORE_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/attention/geometry.h"
#include "core/attention/kept.h"
#include "core/base/spare.h"
#include "core/kernel/kernel_select.h"

enum weights { WEIGHTS_NONE, WEIGHTS_PER_HEAD, WEIGHTS_AVERAGE };

struct call_space; /* intermediate results, private to the layer */
struct measures;   /* core/attention/measures.h */
struct trace;      /* core/attention/trace.h */

struct call {
  /* The request. */
  struct geometry *geometry;
  const float *queries;   /* [q_rows, query_size] */
  const float *keys;      /* [k_rows, key_size]; may be `queries` */
  const float *values;    /* [k_rows, value_size]; may be `keys` */
  struct kept_pair *kept; /* [items] KV cache to which the projected keys and values are added, of
                             all heads, masked or not; or NULL */
  const float *head_mask; /* [H] or NULL */
  bool uniform_rows;      /* a query that attends to no key in a head has equal weights for all */
  enum select select;
  uint64_t seed; /* of SELECT_SAMPLE */
  enum weights want;
  const bool *want_of; /* [items] of a geometry that moves: whether the item's weights are requested
                          in this round; may change between rounds. NULL: all are */
  size_t want_rows;    /* with `want_of`: most queries of an item whose weights are requested */
  const struct geometry *queried; /* geometry whose items and rows (at their offsets) errors about
                                     queries name; NULL: `geometry` */
  size_t each; /* how many consecutive items have one name in errors; 0 is read as 1. Not used for
                  queries if `queried` is set */
  bool want_pointers;
  bool want_measures;     /* compute head measures */
  const float *gradients; /* of a loss with respect to the outputs, [q_rows, output_size], for
                             measures; or NULL */
  struct trace *trace;    /* trace request of one query in one head, and its results; or NULL */

  /* Memory that the layer may overwrite once queries, keys and values are projected: the memory of
   * these inputs, unless the caller needs them afterwards. Each stretch is listed once: keys may be
   * `queries`. */
  struct spare spare;
  /* Memory for the layer from its first step to its last; free afterwards. A stack gives all its
   * layers the same. The second is for weights that are not part of the results. */
  struct spare room, weights_room;

  /* The results, allocated when the call is prepared. */
  float *outputs; /* [q_rows, output_size] */
  float *weights; /* per item at weights_at: [H, q, k] or [q, k]; NULL if not requested. Items that
                     `want_of` excludes are not written */
  size_t weight_count;
  size_t *weights_at;     /* [items] index in `weights`, if requested */
  float *segment_weights; /* per item at segment_weights_at: [H, q, segments]; NULL without segments
                             or if weights per head are not requested */
  size_t segment_weight_count;
  size_t *segment_weights_at; /* [items] index in `segment_weights`, if there are any */
  int32_t *pointers; /* per item at H q_row: [H, q] the key with the greatest weight, or the sampled
                        key; -1 if the query attends to none. NULL if not needed */
  struct measures *measures; /* NULL if not requested */
  struct spare left;         /* memory that is not read any more once the call is computed */

  struct call_space *space; /* private to the layer */
};

#endif
