/* call: one attention over a geometry, in the core's own terms: its inputs, what is asked of it,
 * and its answer.
 *
 * A call lies in its run; its arrays and its results live in the request's arena. The request part
 * is filled by the maker of the call, all other parts when it is prepared; from the submit until
 * its job has ended, the call and its geometry belong to the pool. */
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

struct call_space; /* projections and what else is kept on the way, private to the layer */
struct measures;   /* core/attention/measures.h */
struct trace;      /* core/attention/trace.h */

struct call {
  /* The request. */
  struct geometry *geometry;
  const float *queries;   /* [q_rows, query_size] */
  const float *keys;      /* [k_rows, key_size]; may be `queries` */
  const float *values;    /* [k_rows, value_size]; may be `keys` */
  struct kept_pair *kept; /* [items] where the caller keeps keys and values as they are projected:
                             new ones are added, of all heads, seen or not; or NULL */
  const float *head_mask; /* [H] or NULL */
  bool uniform_rows;      /* a query that sees nothing in a head weighs all keys alike */
  enum select select;
  uint64_t seed; /* of SELECT_SAMPLE */
  enum weights want;
  const bool *want_of; /* [items] of a geometry that moves: whose weights are wanted this time; it
                          may change from one time to the next. NULL: all */
  size_t want_rows;    /* with `want_of`: queries of an item whose weights are wanted, at most */
  const struct geometry *queried; /* whose items and rows words about queries name, at their
                                     offsets; NULL: `geometry`'s */
  size_t each; /* so many of the items of queries have one name; 0 is read as 1. Of keys likewise,
                  but where `queried` has others */
  bool want_pointers;
  bool want_measures; /* measure the heads as well */
  /* Of a loss by the outputs, [q_rows, output_size], for measures; or NULL. */
  const float *gradients;
  struct trace *trace; /* how the weights of one query in one head come about; with its answer.
                          NULL: not wanted */

  /* Memory that the layer may overwrite once queries, keys and values are projected: that of these
   * themselves, unless the caller wants them afterwards. Each stretch is named once: keys may be
   * `queries`. */
  struct spare spare;
  /* Memory that is the layer's to write from the first step to the last, and free behind it: a
   * stack gives all its layers the same. And the same for the weights, where these are not for the
   * answer.
   */
  struct spare room, weights_room;

  /* The answer, allocated when the call is prepared. */
  float *outputs; /* [q_rows, output_size] */
  float *weights; /* per item at weights_at: [H, q, k] or [q, k]; NULL if not wanted. Where
                     `want_of` leaves one out, what was there stays */
  size_t weight_count;
  size_t *weights_at;     /* [items] index in `weights`, where they are wanted */
  float *segment_weights; /* per item at segment_weights_at: [H, q, segments]; with segments where
                             the weights are wanted per head, else NULL */
  size_t segment_weight_count;
  size_t *segment_weights_at; /* [items] index in `segment_weights`, where there are any */
  int32_t *pointers; /* per item at H q_row: [H, q] the heaviest or the drawn key, -1 where nothing
                        is seen; NULL if neither wanted nor needed to measure */
  struct measures *measures; /* NULL if not wanted */
  struct spare left;         /* memory that is not read any more once the call is computed */

  struct call_space *space; /* the layer's own */
};

#endif
