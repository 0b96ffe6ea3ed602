/* kernel_select: how the weights of a query select values. */
#ifndef CORE_KERNEL_SELECT_H
#define CORE_KERNEL_SELECT_H

/* The mean of the values by their weights; the value of the key with the greatest weight (the first
 * one on a tie); or the value of one key sampled by the weights. */
enum select { SELECT_SOFT, SELECT_HARD, SELECT_SAMPLE };

#endif
