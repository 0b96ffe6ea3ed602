/* whole_sizes: the sizes of a model, from its settings and its tensors. */
#ifndef CONFIG_WHOLE_SIZES_H
#define CONFIG_WHOLE_SIZES_H

#include "config/build/plan/whole_plan.h"

/* Sets the form and everything else that follows from the sizes, once the parts are found, and
 * checks that they agree with each other and with the settings. The parts of a random model get
 * their sizes here. STATUS_CONFIG with a detail that begins with the key or the tensor. */
enum status whole_sizes_find(struct whole_plan *p, struct error *e);

#endif
