/* layer_rows: rows through a matrix, collected in strips. Private to the layer.
 *
 * Rows of queries, keys and values are dealt out to the heads they belong to; where scores compare
 * something else than the heads themselves, each head of a row then goes through a second matrix
 * that the heads share. Heads that the call does not need are left out, and nobody reads their
 * places. Rows that nobody sees are left out, too: zeros stand for these. */
#ifndef CORE_LAYER_ROWS_H
#define CORE_LAYER_ROWS_H

#include "core/layer_parts.h"

/* A row on its way: where it comes from, where its first head goes. */
struct row {
  const float *from;
  float *to;
  size_t head_step; /* floats from one head's place to the next one's */
  struct call *call;
  size_t item, number; /* its number over all items, for faults */
};

/* Rows collected for one product. They may belong to several items and calls. */
struct strip {
  const struct layer *l;
  unsigned role;
  const struct live *live; /* the same for all its rows */
  size_t count;
  struct row row[TILE_ROWS_MAX];
  uint32_t top[TILE_ROWS_MAX];
  float *gathered; /* [tile rows, in] */
  float *product;  /* [tile rows, stripe] */
  float *heads;    /* [tile rows, needed heads, head size] on the way to the second matrix */
  float *compared; /* [tile rows, stripe of the second matrix] */
};

size_t strip_floats(const struct layer *l, unsigned role); /* scratch that a strip needs */

void strip_begin(struct strip *s, const struct layer *l, unsigned role, float *scratch);
void strip_take(struct strip *s, const struct unit *u); /* computes whenever it is full */
void strip_flush(struct strip *s);                      /* computes what it holds */

#endif
