/* whole_random: a randomly initialized model, from a seed, the same on every machine.
 *
 * It has the names of `plain`. Its numbers are those of random.h, with a role number that no other
 * tensor has: 64 (layer + 1) + n in a layer, and n elsewhere, where n is the number of the role in
 * whole_roles.def; plus 2^20 for the decoder of an encoder-decoder model, except in tables that
 * both stacks use. An encoder thus has the same numbers with and without a decoder. A norm's factor
 * is 1 plus what a bias of role number + 32 would be. */
#ifndef CONFIG_WHOLE_RANDOM_H
#define CONFIG_WHOLE_RANDOM_H

#include "config/build/plan/whole_plan.h"

/* Sets the parts that the stack's form has, all with biases except RMS norms and tables. Fails only
 * with STATUS_OUT_OF_MEMORY. */
enum status whole_random_list(const struct whole_plan *p, struct whole_stack *s, struct error *e);

/* Writes the numbers of a part's weight, or of its bias. */
void whole_random_fill(const struct whole_plan *p, const struct whole_stack *s,
                       const struct whole_place *at, bool bias, float *out);

#endif
