/* iterate: one item of a value after the other, as Python's iterators give them.
 *
 * An iterator is read once: items are computed when they are asked for, and gone afterwards. What
 * filters give that Python's would give lazily are iterators with a `next` of their own. */
#ifndef CONFIG_ITERATE_H
#define CONFIG_ITERATE_H

#include "config/template/value/value.h"

struct iterator {
  /* The next item; MISSING at the end, and after a failure. */
  struct value (*next)(struct bounds *b, struct iterator *i);
  struct value of;       /* what is iterated, for the iterators of this file */
  size_t at;             /* its next item or byte */
  void *entry;           /* of a Jansson object: the next one */
  struct iterator *from; /* what the iterator of a filter reads */
  const void *how;       /* ... and what it does with each item */
};

/* Makes an iterator of a value. NULL after a failure: nothing that can be iterated, or no memory.
 */
struct iterator *iterate_value(struct bounds *b, struct value v);

/* Makes an iterator with a `next` of its own, as a value: a generator of Python. */
struct value iterate_lazily(struct bounds *b,
                            struct value (*next)(struct bounds *b, struct iterator *i),
                            struct iterator *from, const void *how);

/* The next item, which takes a step. MISSING at the end, and after a failure. */
struct value iterate_next(struct bounds *b, struct iterator *i);

/* All items, as a new list. */
struct value iterate_list(struct bounds *b, struct iterator *i, enum value_kind kind);

bool iterate_can(struct value v); /* can it be iterated? */

#endif
