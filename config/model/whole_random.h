/* whole_random: a whole model from a seed, the same on every machine.
 *
 * It has the names of `plain`, and its numbers are those of random.h, of a role that no other
 * tensor has: 64 (layer + 1) + enum whole_role for what is in a layer, else enum whole_role alone.
 * A norm's factor is 1 plus what a bias of that role + 32 would be. */
#ifndef CONFIG_WHOLE_RANDOM_H
#define CONFIG_WHOLE_RANDOM_H

#include "config/model/whole_plan.h"

/* Lists the parts that the form has, with biases but in RMS norms and tables. Fails only with
 * STATUS_OUT_OF_MEMORY. */
enum status whole_random_list(struct whole_plan *p, struct error *e);

/* Draws a part's weight, or its bias. */
void whole_random_draw(const struct whole_plan *p, enum whole_role role, size_t layer, bool bias,
                       float *out);

#endif
