/* whole_sizes: the sizes of a whole model, from what is said and from its tensors. */
#ifndef CONFIG_WHOLE_SIZES_H
#define CONFIG_WHOLE_SIZES_H

#include "config/build/whole_plan.h"

/* Sets the form and what else follows from the sizes, once the parts are found, and checks that
 * they agree with each other and with what is said. Of a random model the parts get their sizes.
 * STATUS_CONFIG with a detail that begins with the key or the tensor. */
enum status whole_sizes_find(struct whole_plan *p, struct error *e);

#endif
