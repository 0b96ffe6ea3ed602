/* layer_measure: what is shared by cutting the measures of heads, and making them. Private to the
 * layer.
 *
 * The query rows of every item are cut into pieces, a panel of queries each. A piece is measured in
 * turns, a stretch of keys each, so that no unit of work holds a worker for long. Consecutive
 * pieces make a group, whichever items they are of: its turns follow each other, one a pass, and
 * are added up in the group's sums; the groups of a pass are measured side by side. How a call is
 * cut depends on the layer and the call alone, and so do the bits of its sums. */
#ifndef CORE_LAYER_MEASURE_H
#define CORE_LAYER_MEASURE_H

#include "core/attention/layer_parts.h"

/* The doubles of a group: first two that are of no head, then [H] each, then [H (H - 1) / 2]. */
struct measure_sums {
  double *rows;    /* query rows that see something */
  double *outputs; /* their squares, summed */
  double *confidence, *entropy, *distance, *norm, *square;
  double *divergence; /* see struct kernel_measure; NULL with sigmoids */
};

size_t measure_sums_count(const struct layer *l); /* of the doubles of a group */
struct measure_sums measure_sums_at(const struct layer *l, const struct call *c, size_t group);

/* A turn, and where it is. */
struct measure_turn {
  struct unit piece; /* its rows */
  size_t number;     /* of the piece, in the call */
  size_t from, to;   /* keys */
};

size_t measure_piece_rows(const struct layer *l);                    /* at most */
size_t measure_group_begin(const struct measuring *m, size_t group); /* its first turn */
struct measure_turn measure_turn_at(const struct layer_step *s, struct run *run, size_t turn);

/* Of STEP_MEASURE, a unit is a group, whose number is the unit's row; of STEP_SUM it is the call.
 */
bool measure_unit(const struct step *step, struct cursor *at, struct unit *u);
bool measure_sum_unit(const struct step *step, struct cursor *at, struct unit *u);
double measure_unit_work(const struct step *step, const struct unit *u);
double measure_sum_work(const struct step *step, const struct unit *u);
size_t measure_passes(const struct step *step, const struct run *r); /* of STEP_MEASURE */

#endif
