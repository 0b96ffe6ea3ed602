/* frequencies: the base of rotary positions that a checkpoint's table of frequencies has. */
#ifndef CONFIG_FREQUENCIES_H
#define CONFIG_FREQUENCIES_H

#include "config/checkpoint/checkpoint.h"

/* *fits becomes whether the tensor has the frequencies of `base` for heads of `size` columns. If
 * not, *other becomes the base whose frequencies it has, or 0. STATUS_CONFIG if its numbers cannot
 * be read or are not size / 2; or STATUS_OUT_OF_MEMORY. */
enum status frequencies_compare(struct checkpoint *file, const struct checkpoint_entry *t,
                                size_t size, double base, bool *fits, double *other,
                                struct error *e);

#endif
