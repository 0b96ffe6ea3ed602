/* geometry: which rows there are, and what each query may see: a ragged batch of items.
 *
 * Letters used everywhere:
 *   b items   q query rows of an item   k key rows of an item
 *   H heads   G key/value heads         d, d_v head size of query/key and of value
 * Rows of all items lie packed end to end: nothing is padded. All layers that are computed over the
 * same rows share one geometry: what a query sees is worked out once, by the first of them. */
#ifndef CORE_GEOMETRY_H
#define CORE_GEOMETRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/attention/needed.h"

struct item {
  size_t q, k;         /* rows; either may be 0 */
  size_t q_row, k_row; /* its first row in queries and outputs, and in keys and values: the first
                          one that is not kept already */
  int64_t offset;      /* causal_offset: query i has the position of key i + offset */
  size_t mask_at;      /* index in `mask` of its [q, k] or [H, q, k] */
  size_t bias_at;      /* index in `bias` of its [q, k] or [H, q, k] */
  size_t segments;     /* how many its keys are cut into, where the geometry has segments */
  size_t segments_at;  /* index in `segment_end` of its [segments] */
};

/* What is worked out of an item. */
struct sight_item {
  size_t key_end;  /* no query sees a key from here on */
  bool some_blind; /* a query of the item sees nothing, at least in one head */
  float bias_top;  /* the greatest magnitude of its bias */
};

/* What each query may see; see sight.h. */
struct sight {
  size_t heads;            /* of the layers; 0: no call has been prepared */
  struct needed needed;    /* which heads the calls need: masks of others hide and show nothing */
  struct sight_item *item; /* [items] */
  int32_t *from, *to;      /* [q_rows] */
  size_t key_rows;         /* of all items, kept already or new */
  size_t *key_at;          /* [items] where each item's keys begin in the two below; NULL: where its
                              rows of keys do, since none of them is kept already */
  uint8_t *seen;           /* [key_rows] 1: some query of the item sees this key */
  int32_t *reach;          /* [key_rows] while looking: where the longest stretch ends that begins
                              at this key */
};

struct geometry {
  /* The request. */
  size_t items;
  struct item *item;     /* [items] */
  size_t q_rows, k_rows; /* sums over the items: of q, and of k that are not kept already */
  const int32_t *lens;   /* [q_rows] leading keys that each query may see, or NULL: all of them */
  const uint8_t *mask;   /* 1: the query may see the key; or NULL */
  bool mask_per_head; /* an item's mask is [H, q, k], not [q, k]. A key that is seen only in heads
                         that no call needs is as hidden as one that is never seen */
  const float *bias;  /* added to the scaled scores; or NULL. May hold anything where the query
                         does not see the key; where it does, what is not finite is a fault */
  bool bias_per_head; /* an item's bias is [H, q, k], not [q, k] */
  bool causal;
  int64_t window_left, window_right; /* -1: unbounded */
  bool moves; /* rows of an item come in several rounds of a run: q_rows is then the most that a
                 round has, until the calls are prepared, and each item's k the most of all */
  const int32_t *segment_end; /* two levels: where each segment ends, rising to k; NULL: one level.
                                 Only with SELECT_SOFT, softmax weights and without uniform_rows */

  /* Reserved when the first call over it is prepared, known once that call's first step is over. */
  struct sight sight;
};

#endif
