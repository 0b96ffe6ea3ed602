/* whole_find: finds the tensors of a whole model by their names. */
#ifndef CONFIG_WHOLE_FIND_H
#define CONFIG_WHOLE_FIND_H

#include "config/model/whole_plan.h"

/* Finds the family where config.json tells none, and the prefix. STATUS_CONFIG where the names are
 * those of none, or of several models. */
enum status whole_find_family(struct whole_plan *p, struct error *e);

/* Sets the kind, the number of layers and the parts, but for their agreement with the sizes. */
enum status whole_find_parts(struct whole_plan *p, struct error *e);

/* Writes the whole name of a role's tensor without what stands behind its last dot: "weight". */
void whole_find_name(const struct whole_plan *p, enum whole_role role, size_t layer,
                     char out[LAYOUT_ADDRESS_SIZE]);

#endif
