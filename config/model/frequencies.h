/* frequencies: the base of rotary positions, as a checkpoint's own table of angles tells it. */
#ifndef CONFIG_FREQUENCIES_H
#define CONFIG_FREQUENCIES_H

#include "config/checkpoint/checkpoint.h"

/* Whether the tensor, of any type that is read, holds the frequencies that `base` makes of heads of
 * `size` columns; if not, *other is the base that it holds those of, or 0 if there is none.
 * STATUS_CONFIG where its numbers cannot be read or are not size / 2, or STATUS_OUT_OF_MEMORY. */
enum status frequencies_compare(struct checkpoint *file, const struct checkpoint_entry *t,
                                size_t size, double base, bool *fits, double *other,
                                struct error *e);

#endif
