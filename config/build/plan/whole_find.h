/* whole_find: finds the tensors of a model by their names. */
#ifndef CONFIG_WHOLE_FIND_H
#define CONFIG_WHOLE_FIND_H

#include "config/build/plan/whole_plan.h"

/* Finds the family, unless config.json determines it, and the prefix. STATUS_CONFIG if the names
 * match no family, or several models. */
enum status whole_find_family(struct whole_plan *p, struct error *e);

/* Sets the kind, the stacks, their numbers of layers and their parts. Sizes are not compared yet.
 * STATUS_CONFIG, STATUS_OUT_OF_MEMORY. */
enum status whole_find_parts(struct whole_plan *p, struct error *e);

/* Checks the tensors that no role uses, once the sizes are known. Counts those that may be ignored:
 * buffers, heads of other tasks, other stacks. STATUS_CONFIG naming a tensor that would change what
 * the model computes. */
enum status whole_find_check_rest(struct whole_plan *p, struct error *e);

/* The tensor of this name after the prefix, or after a shorter prefix: the last members are left
 * out one by one, because the model may be a member of a module. NULL: there is none. */
const struct checkpoint_entry *whole_find_near(const struct whole_plan *p, const char *name);

/* Makes a part of all of a tensor, which must have `rank` dimensions; a vector is one row.
 * STATUS_CONFIG naming the tensor. */
enum status whole_find_set(struct layout_part *out, const struct checkpoint_entry *t, size_t rank,
                           struct error *e);

/* The same for a tensor of the model's own file, which is marked as used. */
enum status whole_find_use(struct whole_plan *p, const struct checkpoint_entry *t, size_t rank,
                           struct layout_part *out, struct error *e);

/* Must a tensor of the role have a bias? */
bool whole_find_needs_bias(const struct whole_family *f, enum whole_role role);

/* Writes the full name of a role's tensor without its end, "weight", and returns the separator
 * before that end: "." or "". */
const char *whole_find_name(const struct whole_plan *p, const struct whole_stack *stack,
                            const struct whole_place *at, char out[LAYOUT_ADDRESS_SIZE]);

#endif
