/* visible: lengths, causal, window and mask of a call -> what each query may see.
 *
 * Lengths, causal and window leave each query one run of keys, from .. to - 1; the mask takes keys
 * out of it. A query that is left with nothing has from = to = 0. What no query of the item sees
 * is never projected, and what is beyond the last key that any query sees is never looked at.
 *
 * Where each head has a mask of its own, a query sees what it sees in any head that the call needs:
 * its run is the least that holds the runs of all these heads, and one of them may see nothing in
 * it. */
#ifndef CORE_VISIBLE_H
#define CORE_VISIBLE_H

#include "core/attention/call.h"
#include "core/attention/live.h"
#include "core/run/arena.h"

struct visible_item {
  size_t key_end;  /* no query sees a key from here on */
  bool some_blind; /* a query of the item sees nothing, at least in one head */
};

struct visible {
  struct visible_item *item; /* [items] */
  int32_t *from, *to;        /* [q_rows] */
  uint8_t *seen;             /* [k_rows] 1: some query of the item sees this key */
  int32_t *reach;            /* [k_rows] while looking: how far runs go that begin at this key */
};

/* Takes the memory; nothing is seen yet. */
enum status visible_reserve(struct visible *v, const struct call *c, struct arena *a,
                            struct error *e);

/* Works out one item of a layer of `heads` heads: q + k steps, and q k for each mask. */
void visible_look(struct visible *v, const struct call *c, size_t index, size_t heads,
                  const struct live *live);

/* May query row `i` of the item see key `j` in a head? The rule itself, slowly: for the readable
 * twin. */
bool visible_pair(const struct call *c, const struct item *item, size_t head, size_t i, size_t j);

#endif
