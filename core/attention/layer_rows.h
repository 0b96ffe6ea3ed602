/* layer_rows: rows through a matrix, collected in strips. Private to the layer.
 *
 * Rows of queries, keys and values are dealt out to the heads they belong to; where scores compare
 * something else than the heads themselves, each head of a row then goes through a second matrix
 * that the heads share. Heads that the call does not need are left out: their places are never
 * read. Where positions turn queries and keys, they do so in place, once all heads of a row are
 * there. Rows that no query sees are left out, too, and become zeros. Rows that are queries, keys
 * and values at once go through all three matrices while they are at hand. */
#ifndef CORE_LAYER_ROWS_H
#define CORE_LAYER_ROWS_H

#include "core/attention/layer_parts.h"

enum { ANGLES = TILE_ROWS_MAX }; /* that are kept: as many as a strip has rows */

#define ANGLE_NONE INT64_MIN

/* Rows of one item, as a unit has them. */
struct strip_part {
  struct call *call;
  size_t item, row, rows;
};

/* Rows of a part that follow each other and are seen in a role: where they come from, and where the
 * first head of the first one goes. */
struct strip_stretch {
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
  const struct layer_step *step;
  const struct layer *l;
  unsigned number;        /* of the step in its program */
  unsigned last_role;     /* that the rows go through, from the step's own on */
  size_t column, columns; /* of the matrix, where they are shared out; 0, 0: all */
  float *scratch;
  size_t rows, parts;
  struct strip_part part[TILE_ROWS_MAX];

  /* While a role has its turn. */
  unsigned role;
  const struct needed *needed; /* the same for all rows */
  size_t stretches, count;     /* stretches; rows of all stretches */
  struct strip_stretch stretch[TILE_ROWS_MAX];
  float *angle;    /* [ANGLES, head size] where positions turn rows; see rotary_angles */
  float *gathered; /* [tile rows, in] */
  float *product;  /* [tile rows, stripe] */
  float *heads;    /* [tile rows, needed heads, head size] on the way to the second matrix */
  float *compared; /* [tile rows, stripe of the second matrix] */

  /* Positions come again: those of an item's queries with its keys, those of an item with the next
   * one. So angles are kept, those of position p in place p modulo ANGLES. */
  int64_t angle_of[ANGLES]; /* the position whose angles lie there, or ANGLE_NONE */
};

/* The last role that the rows of a unit go through: usually the step's own; of self-attention all
 * three go together. */
unsigned rows_last_role(const struct layer_step *s, const struct call *c, const struct unit *u);

size_t strip_floats(const struct layer *l, unsigned role); /* of scratch for a strip */

void strip_begin(struct strip *s, const struct layer_step *step, float *scratch);
/* Rows of one of the unit's items; computes first where there is no room. */
void strip_add(struct strip *s, const struct unit *u, size_t item, size_t row, size_t rows);
void strip_flush(struct strip *s); /* computes what the strip holds */

#endif
