/* layer_rows: rows through a matrix, collected in strips. Private to the layer.
 *
 * Rows of queries, keys and values are dealt out to the heads they belong to; where scores compare
 * something else than the heads themselves, each head of a row then goes through a second matrix
 * that the heads share. Heads that the call does not need are left out, and nobody reads their
 * places. Where positions turn queries and keys, that is done in their places, once a row's heads
 * are all there. Rows that nobody sees are left out, too: zeros stand for these. Rows that are
 * queries, keys and values at once go through all three matrices while they are at hand. */
#ifndef CORE_LAYER_ROWS_H
#define CORE_LAYER_ROWS_H

#include "core/attention/layer_parts.h"

enum { ANGLES = TILE_ROWS_MAX }; /* that are kept: as many as a strip has rows */

#define ANGLE_NONE INT64_MIN

/* Rows of one item, as a unit has them. */
struct taken {
  struct call *call;
  size_t item, row, rows;
};

/* Those of them that follow each other and are seen in a role: where they come from, where the
 * first head of the first one goes. */
struct run {
  const float *from;
  float *to;
  size_t rows, row_step; /* floats from one row's place to the next one's */
  size_t head_step;      /* and from one head's */
  struct call *call;
  size_t item, number; /* the first row's number over all items, for faults */
  uint32_t top;        /* bits of the greatest magnitude among them */
  size_t bad;          /* the first row that holds something that is not finite; `rows`: none */
};

/* Rows collected for one product. They may belong to several items and calls. */
struct strip {
  const struct layer *l;
  unsigned first_role, last_role;
  float *scratch;
  size_t rows, parts;
  struct taken part[TILE_ROWS_MAX];

  /* While a role has its turn. */
  unsigned role;
  const struct live *live; /* the same for all rows */
  size_t count, runs;      /* rows of all runs; runs */
  struct run run[TILE_ROWS_MAX];
  float *angle;    /* [ANGLES, head size] where positions turn rows; see rotary_angles */
  float *gathered; /* [tile rows, in] */
  float *product;  /* [tile rows, stripe] */
  float *heads;    /* [tile rows, needed heads, head size] on the way to the second matrix */
  float *compared; /* [tile rows, stripe of the second matrix] */

  /* Rows to come often stand where others stood: keys where the queries of an item, the next item's
   * where this one's. So angles are kept: those of position p, if any, in place p modulo ANGLES. */
  int64_t stands_at[ANGLES]; /* the position that each is of; ANGLE_NONE: of none yet */
};

size_t strip_floats(const struct layer *l, unsigned role); /* scratch that a strip needs */

void strip_begin(struct strip *s, const struct layer *l, float *scratch);
void strip_take(struct strip *s, const struct unit *u); /* computes whenever it must */
void strip_flush(struct strip *s);                      /* computes what it holds */

#endif
