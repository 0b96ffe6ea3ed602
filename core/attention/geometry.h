/* geometry: the rows of a batch, and which keys each query attends to.
 *
 * A batch is ragged: a list of items with their own lengths, packed end to end without padding.
 * All layers computed over the same rows share one geometry; the first of them computes its sight.
 * Letters used everywhere:
 *   b items   q query rows of an item   k key rows of an item
 *   H heads   G key/value heads         d, d_v head size of query/key and of value */
#ifndef CORE_GEOMETRY_H
#define CORE_GEOMETRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which heads of a role a call needs; the others are not computed. */
struct needed {
  size_t count;         /* how many heads are needed */
  const uint32_t *slot; /* [heads of the role] how many needed heads precede this one, or
                           NEEDED_NOT if it is not needed itself; NULL: all heads are needed */
};

#define NEEDED_NOT UINT32_MAX

static inline bool needed_has(const struct needed *needed, size_t head) {
  return !needed->slot || needed->slot[head] != NEEDED_NOT;
}

/* How many needed heads precede a head that is needed itself. */
static inline size_t needed_slot(const struct needed *needed, size_t head) {
  return needed->slot ? needed->slot[head] : head;
}

struct item {
  size_t q, k;         /* rows; either may be 0 */
  size_t q_row, k_row; /* its first row in queries and outputs, and in keys and values (the first
                          one that is not in the KV cache) */
  int64_t offset;      /* causal_offset: query i has the position of key i + offset */
  size_t mask_at;      /* index in `mask` of its [q, k] or [H, q, k] */
  size_t bias_at;      /* index in `bias` of its [q, k] or [H, q, k] */
  size_t segments;     /* how many segments its keys have, if the geometry has segments */
  size_t segments_at;  /* index in `segment_end` of its [segments] */
};

/* Results of sight_look for one item. */
struct sight_item {
  size_t key_end;  /* all keys from here on are masked for all queries */
  bool some_blind; /* some query attends to no key, in at least one head */
  float bias_top;  /* greatest magnitude of its bias */
};

/* Which keys each query attends to; see sight.h. */
struct sight {
  size_t heads;            /* of the layers; 0: no call has been prepared */
  struct needed needed;    /* heads that some call needs; masks of other heads are ignored */
  struct sight_item *item; /* [items] */
  int32_t *from, *to;      /* [q_rows] each query attends to keys within from .. to - 1 */
  size_t key_rows;         /* of all items, in the KV cache or new */
  size_t *key_at;          /* [items] first index of each item in the two arrays below; NULL: its
                              k_row, since no key is in the KV cache */
  uint8_t *seen;           /* [key_rows] 1: some query of the item attends to this key */
  int32_t *reach;          /* [key_rows] scratch of sight_look: the end of the longest stretch that
                              begins at this key */
};

struct geometry {
  /* The request. */
  size_t items;
  struct item *item;     /* [items] */
  size_t q_rows, k_rows; /* sums over the items of q, and of the k that are not in the KV cache */
  const int32_t *lens;   /* [q_rows] how many leading keys each query attends to, or NULL: all */
  const uint8_t *mask;   /* 1: the query attends to the key; or NULL */
  bool mask_per_head;    /* an item's mask is [H, q, k], not [q, k]. A key that is visible only in
                            heads    that no call needs is the same as a masked key */
  const float *bias;     /* added to the scaled scores, or NULL. Ignored where the key is masked;
                            elsewhere a bias that is not finite is a fault */
  bool bias_per_head;    /* an item's bias is [H, q, k], not [q, k] */
  bool causal;
  int64_t window_left, window_right; /* -1: unbounded */
  bool moves; /* rows of an item come in several rounds of a run. Until the calls are prepared,
                 q_rows is the greatest number of any round, and each item's k that of all rounds */
  const int32_t *segment_end; /* two levels: the end of each segment, rising to k; NULL: one level.
                                 Only with SELECT_SOFT, softmax weights and without uniform_rows */

  /* Reserved when its first call is prepared; valid once that call's first step is computed. */
  struct sight sight;
};

#endif
