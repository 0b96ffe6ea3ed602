/* kept: keys or values of one item, as attention reads them: head by head, row after row.
 *
 * A request without a past has memory of its own for them, or, where nothing is projected and
 * queries are few, reads its inputs in place. A caller with a past keeps them itself, with a place
 * for every row that is to come: what is there already stays, what is new is put behind it. */
#ifndef CORE_KEPT_H
#define CORE_KEPT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct kept_rows {
  float *row;                 /* the first row of the first head */
  size_t row_step, head_step; /* floats from a row to the next one, and from a head */
  size_t turned; /* of keys that a caller keeps: the first so many rows of each head, which lie end
                    to end, are turned block by block (kernel_tile). The caller turns them */
};

/* What a caller with a past keeps. */
struct kept {
  struct kept_rows rows;
  size_t count;         /* rows that are there already: the first ones. The caller counts a call's
                           new ones once it has been computed */
  size_t capacity;      /* rows that there is a place for: at least the item's keys */
  _Atomic uint32_t top; /* bits of the greatest magnitude so far; 0 in the beginning */
};

/* The keys and values of an item. */
struct kept_pair {
  struct kept key, value;
};

#endif
