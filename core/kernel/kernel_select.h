/* kernel_select: what becomes of the weights of a query. */
#ifndef CORE_KERNEL_SELECT_H
#define CORE_KERNEL_SELECT_H

/* The mean of the values by their weights, the value of the heaviest key (the first one on a tie),
 * or the value of one key drawn from them. */
enum select { SELECT_SOFT, SELECT_HARD, SELECT_SAMPLE };

#endif
