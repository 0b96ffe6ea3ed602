/* sight: lengths, causal, window and mask of a geometry -> which keys each query attends to.
 *
 * Lengths, causal and window leave each query a stretch of keys, from .. to - 1; the mask removes
 * some keys of it. A query without any key has from = to = 0. A key that no query of the item
 * attends to is never projected; keys after the last visible one are never read.
 *
 * If each head has its own mask, a query's stretch is the smallest one that contains its stretches
 * in all heads that some call needs; one of these heads may mask all keys of it. */
#ifndef CORE_SIGHT_H
#define CORE_SIGHT_H

#include "core/attention/geometry.h"
#include "core/base/arena.h"

/* Reserves the memory of g->sight and clears it. Returns e->status. */
enum status sight_reserve(struct geometry *g, struct arena *a, struct error *e);

/* Adds the heads that one more call needs, of a layer with `heads` heads. Calls over the same
 * geometry have the same number of heads if masks or biases are per head. Returns e->status. */
enum status sight_need(struct geometry *g, size_t heads, const struct needed *more, struct arena *a,
                       struct error *e);

/* The index of an item's first key among the keys of all items. */
static inline size_t sight_key_at(const struct geometry *g, size_t index) {
  return g->sight.key_at ? g->sight.key_at[index] : g->item[index].k_row;
}

/* Computes the sight of one item in q + k steps, and q k for each mask. */
void sight_look(const struct geometry *g, size_t index);

/* Returns whether query row `i` of the item attends to key `j` in a head: the rule itself, slow,
 * for the reference implementation. */
bool sight_allows(const struct geometry *g, const struct item *item, size_t head, size_t i,
                  size_t j);

#endif
