/* whole_random: a whole model from a seed, the same on every machine.
 *
 * It has the names of `plain`, and its numbers are those of random.h, of a role that no other
 * tensor has: 64 (layer + 1) + n for what is in a layer, else n alone, where n is that of the role
 * in the table of whole_random.c; and 2^20 more for a decoder beside an encoder, but for tables
 * that both have. So an encoder has the same numbers alone and beside a decoder. A norm's factor is
 * 1 plus what a bias of that role + 32 would be. */
#ifndef CONFIG_WHOLE_RANDOM_H
#define CONFIG_WHOLE_RANDOM_H

#include "config/build/whole_plan.h"

/* Lists the parts that the stack's form has, with biases but in RMS norms and tables. Fails only
 * with STATUS_OUT_OF_MEMORY. */
enum status whole_random_list(const struct whole_plan *p, struct whole_stack *s, struct error *e);

/* Draws a part's weight, or its bias. */
void whole_random_draw(const struct whole_plan *p, const struct whole_stack *s,
                       const struct whole_place *at, bool bias, float *out);

#endif
