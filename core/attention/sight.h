/* sight: lengths, causal, window and mask of a geometry -> what each query may see.
 *
 * Lengths, causal and window leave each query a stretch of keys, from .. to - 1; the mask hides
 * some keys of it. A query without any key has from = to = 0. A key that no query of the item sees
 * is never projected, and keys beyond the last one that is seen are never looked at.
 *
 * Where each head has a mask of its own, a query's stretch is the least that holds its stretches in
 * all heads that some call needs; one of these heads may see nothing in it. */
#ifndef CORE_SIGHT_H
#define CORE_SIGHT_H

#include "core/attention/geometry.h"
#include "core/base/arena.h"

/* Reserves the memory; nothing is seen yet, and no head is needed. */
enum status sight_reserve(struct geometry *g, struct arena *a, struct error *e);

/* One more call needs these heads, of a layer of `heads` heads: of as many as the other calls'
 * where masks or biases are per head. */
enum status sight_need(struct geometry *g, size_t heads, const struct needed *more, struct arena *a,
                       struct error *e);

/* Where an item's keys begin, among those of all items. */
static inline size_t sight_key_at(const struct geometry *g, size_t index) {
  return g->sight.key_at ? g->sight.key_at[index] : g->item[index].k_row;
}

/* Works out one item: q + k steps, and q k for each mask. */
void sight_look(const struct geometry *g, size_t index);

/* May query row `i` of the item see key `j` in a head? The rule itself, slowly: for the readable
 * twin. */
bool sight_allows(const struct geometry *g, const struct item *item, size_t head, size_t i,
                  size_t j);

#endif
