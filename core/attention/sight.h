/* sight: lengths, causal, window and mask of a call -> what each query may see.
 *
 * Lengths, causal and window leave each query a stretch of keys, from .. to - 1; the mask hides
 * some keys of it. A query without any key has from = to = 0. A key that no query of the item sees
 * is never projected, and keys beyond the last one that is seen are never looked at.
 *
 * Where each head has a mask of its own, a query's stretch is the least that holds its stretches in
 * all heads that the call needs; one of these heads may see nothing in it. */
#ifndef CORE_SIGHT_H
#define CORE_SIGHT_H

#include "core/attention/call.h"
#include "core/attention/needed.h"
#include "core/run/arena.h"

struct sight_item {
  size_t key_end;  /* no query sees a key from here on */
  bool some_blind; /* a query of the item sees nothing, at least in one head */
};

struct sight {
  struct sight_item *item; /* [items] */
  int32_t *from, *to;      /* [q_rows] */
  uint8_t *seen;           /* [k_rows] 1: some query of the item sees this key */
  int32_t *reach;          /* [k_rows] while looking: where the longest stretch ends that begins at
                              this key */
};

/* Reserves the memory; nothing is seen yet. */
enum status sight_reserve(struct sight *s, const struct call *c, struct arena *a, struct error *e);

/* Works out one item of a layer of `heads` heads: q + k steps, and q k for each mask. */
void sight_look(struct sight *s, const struct call *c, size_t index, size_t heads,
                const struct needed *needed);

/* May query row `i` of the item see key `j` in a head? The rule itself, slowly: for the readable
 * twin. */
bool sight_allows(const struct call *c, const struct item *item, size_t head, size_t i, size_t j);

#endif
