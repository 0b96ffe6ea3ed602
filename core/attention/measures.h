/* measures: how much each head of a layer does on a batch, and how much the heads differ.
 *
 * Sums run over the query rows of all items that see at least one key in some head; a head that
 * sees nothing in such a row weighs nothing there. A mean over nothing and a quotient by zero are
 * 0. A head's contribution c to an output row is its context, head_mask included, times its own
 * columns of the output projection, without the bias. All numbers are finite as float32: what is
 * not is a fault of the call. */
#ifndef CORE_MEASURES_H
#define CORE_MEASURES_H

#include <stddef.h>

struct head_measures {
  double confidence; /* mean of the greatest weight of a row */
  double entropy;    /* mean of (- sum A ln A) / ln m, 0 where m = 1; m: keys that the row
                          may see in this head */
  double distance;   /* mean of sum A |i - j| */
  double norm;       /* mean of |c| */
  double share;      /* norm / the sum of all heads' norms */
  double delta;      /* |Y - Y without the head| / |Y|: Frobenius norms over all rows */
  double michel;     /* mean over items of |sum over rows of <c, gradient>|; 0 without gradients */
};

struct measures {
  size_t rows;                /* query rows that see something in some head */
  struct head_measures *head; /* [H] */
  double *divergence;         /* [H, H] mean Jensen-Shannon divergence of two heads' weights; NULL
                                 where weights are sigmoids: then entropy means nothing either */
  size_t *ranking;            /* [H] heads, the least important first: by michel where there are
                                 gradients, else by delta; the lower index first on a tie */
};

#endif
