/* whole_find: finds the tensors of a whole model by their names. */
#ifndef CONFIG_WHOLE_FIND_H
#define CONFIG_WHOLE_FIND_H

#include "config/build/whole_plan.h"

/* Finds the family where config.json tells none, and the prefix. STATUS_CONFIG where the names are
 * those of none, or of several models. */
enum status whole_find_family(struct whole_plan *p, struct error *e);

/* Sets the kind, the stacks, their numbers of layers and their parts, but for their agreement with
 * the sizes. */
enum status whole_find_parts(struct whole_plan *p, struct error *e);

/* The tensor of this name behind the prefix, or before its last members, where what the prefix is
 * about is a member of a module; NULL: there is none. */
const struct checkpoint_entry *whole_find_near(const struct whole_plan *p, const char *name);

/* Makes a part of a tensor of so many dimensions, all of it, and notes that it is used. */
enum status whole_find_use(struct whole_plan *p, const struct checkpoint_entry *t, size_t rank,
                           struct layout_part *out, struct error *e);

/* Must a tensor of the role have a bias? */
bool whole_find_needs_bias(const struct whole_family *f, enum whole_role role);

/* Writes the whole name of a role's tensor but for its end, "weight", and returns what stands
 * before that: a dot, or nothing. */
const char *whole_find_name(const struct whole_plan *p, const struct whole_stack *stack,
                            const struct whole_place *at, char out[LAYOUT_ADDRESS_SIZE]);

#endif
