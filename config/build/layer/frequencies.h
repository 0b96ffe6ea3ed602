/* frequencies: the base of rotary positions, from a checkpoint's own table of frequencies. */
#ifndef CONFIG_FREQUENCIES_H
#define CONFIG_FREQUENCIES_H

#include "config/checkpoint/checkpoint.h"

/* fits: does the tensor hold the frequencies of `base` for heads of `size` columns? If not, *other
 * is the base whose frequencies it holds, or 0 if there is none. STATUS_CONFIG where its numbers
 * cannot be read or are not size / 2; or STATUS_OUT_OF_MEMORY. */
enum status frequencies_compare(struct checkpoint *file, const struct checkpoint_entry *t,
                                size_t size, double base, bool *fits, double *other,
                                struct error *e);

#endif
