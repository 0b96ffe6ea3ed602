/* measures: how much each head of a layer contributes on a batch, and how much the heads differ.
 *
 * Sums run over the query rows of all items that attend to at least one key in some head; a head
 * that attends to none in such a row has weights of 0 there. A mean over nothing and a quotient by
 * 0 are 0. A head's contribution c to an output row is its context, multiplied by head_mask, times
 * its own columns of the output projection, without the bias. All numbers are finite as float32:
 * others are a fault of the call. */
#ifndef CORE_MEASURES_H
#define CORE_MEASURES_H

#include <stddef.h>

struct head_measures {
  double confidence; /* mean of the greatest weight of a row */
  double entropy;    /* mean of (- sum A ln A) / ln m, 0 if m = 1; m: how many keys the row attends
                        to in this head */
  double distance;   /* mean of sum A |i - j| */
  double norm;       /* mean of |c| */
  double share;      /* norm / the sum of all heads' norms */
  double delta;      /* |Y - Y without the head| / |Y|: Frobenius norms over all rows */
  double michel;     /* mean over items of |sum over rows of <c, gradient>|; 0 without gradients */
};

struct measures {
  size_t rows;                /* query rows that attend to some key in some head */
  struct head_measures *head; /* [H] */
  double *divergence;         /* [H, H] mean Jensen-Shannon divergence of two heads' weights. NULL
                                 with sigmoid weights: then the entropy is meaningless, too */
  size_t *ranking;            /* [H] heads, the least important first: by michel if there are
                                 gradients, else by delta; a tie is ordered by index */
};

#endif
