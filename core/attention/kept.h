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

/* A row that several sequences have belongs to the one that made it. Each of these members has a
 * place, and these lie side by side: in it are its own rows of the last block, which is not whole
 * yet, KERNEL_KEYS rows further on than they are counted; and whole blocks as they were when its
 * own sequence had them, with turned keys. A row is written once: what follows
 * upon another sequence changes only whose rows are named here. */
struct kept_lineage {
  size_t own;      /* which member it is; the first one's `top` counts for all of them */
  size_t whole;    /* rows in whole blocks */
  uint32_t *block; /* [whole / KERNEL_KEYS] the member whose block each of them is */
  uint32_t *row;   /* [KERNEL_KEYS] likewise of each row behind these */
};

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
  const struct kept_lineage *lineage; /* whose the rows are, or NULL: all its own */
  size_t member_step;                 /* floats from a member's place to the next one's */
};

/* Lays the first so many rows behind the whole blocks end to end, in one head: each from the member
 * that the lineage names. (layer_lineage.c) */
void kept_gather(const struct kept *k, size_t head, size_t rows, float *to);

/* The keys and values of an item. */
struct kept_pair {
  struct kept key, value;
};

#endif
