/* layer_measure: what a measured call keeps, and where the sums of its groups lie. Private to the
 * layer.
 *
 * The query rows of every item are cut into pieces, a panel of queries each; a piece is measured in
 * steps, a run of keys each, so that no unit of work holds a worker for long. Consecutive pieces
 * make a group, whichever items they are of: its steps are done one after the other, in rounds, and
 * are added up in the group's sums; the groups of a round are done side by side. How a call is cut
 * depends on the layer and the call alone, and so do the bits of its sums. */
#ifndef CORE_LAYER_MEASURE_H
#define CORE_LAYER_MEASURE_H

#include "core/attention/layer_parts.h"

/* A group's run of doubles: first two that are of no head, then [H] each, then [H (H - 1) / 2]. */
struct sums {
  double *rows;    /* query rows that see something */
  double *outputs; /* their squares, summed */
  double *confidence, *entropy, *distance, *norm, *square;
  double *divergence; /* see struct kernel_measure; NULL with sigmoids */
};

size_t sums_count(const struct layer *l); /* of the doubles of a group */
struct sums sums_at(const struct layer *l, const struct call *c, size_t group);

#endif
