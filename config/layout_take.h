/* layout_take: the tensors of one layer, role by role. For layout alone. */
#ifndef CONFIG_LAYOUT_TAKE_H
#define CONFIG_LAYOUT_TAKE_H

#include "config/layout.h"

/* The roles that the settled definition has: at the layout's place, or as `tensors` names them.
 * Where that place's family has a table of relative positions, also how many heads it is for; else
 * *heads stays as it is. STATUS_CONFIG naming the tensor. */
enum status layout_take(struct layout *l, const struct checkpoint *file, const struct definition *d,
                        size_t *heads, struct error *e);

#endif
