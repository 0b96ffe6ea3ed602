/* kept: keys or values of one item in the KV cache, as attention reads them: head by head, row
 * after row.
 *
 * A call without a KV cache has its own memory for them, or reads its inputs in place if nothing is
 * projected and queries are few. A caller with a KV cache reserves a place for every row in
 * advance; new rows are written after those that are already there. */
#ifndef CORE_KEPT_H
#define CORE_KEPT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Rows shared by the hypotheses of a beam search, called members. A row belongs to the member that
 * computed it. The places of all members lie side by side, member_step floats apart. A member's
 * place holds its rows of the last, incomplete block, KERNEL_KEYS rows after their index; and
 * complete blocks with transposed keys. A row is written once: if a hypothesis continues another
 * one, only the owners listed here change. */
struct kept_lineage {
  size_t own;      /* index of this member; the first member's `top` is that of all members */
  size_t whole;    /* rows in complete blocks */
  uint32_t *block; /* [whole / KERNEL_KEYS] the member that owns each complete block */
  uint32_t *row;   /* [KERNEL_KEYS] the member that owns each row after these */
};

struct kept_rows {
  float *row;                 /* first row of the first head */
  size_t row_step, head_step; /* floats from a row to the next one, and from a head to the next */
  size_t turned; /* keys of a KV cache: how many leading rows of each head, end to end, are
                    transposed block by block (kernel_tile). The caller transposes them */
};

/* Keys or values of one item in a KV cache. */
struct kept {
  struct kept_rows rows;
  size_t count;         /* how many rows are there, from the first one on. The caller adds a call's
                           new rows once it is computed */
  size_t capacity;      /* how many rows have a place: at least the item's keys */
  _Atomic uint32_t top; /* bits of the greatest magnitude so far; 0 at first */
  const struct kept_lineage *lineage; /* owners of the rows, or NULL: all are its own */
  size_t member_step;                 /* floats from a member's place to the next one's */
};

/* Copies the first `rows` rows after the complete blocks end to end, in one head, each from the
 * member that the lineage names. (layer_kept.c) */
void kept_gather(const struct kept *k, size_t head, size_t rows, float *to);

struct kept_pair {
  struct kept key, value;
};

#endif
