/* layout_take: the tensors of one layer, role by role. */
#ifndef CONFIG_LAYOUT_TAKE_H
#define CONFIG_LAYOUT_TAKE_H

#include "config/model/layout.h"

/* The roles that the settled definition has: at the layout's place, or as `tensors` names them.
 * Where that place's family has a table of relative positions, also how many heads it is for; else
 * *heads stays as it is. STATUS_CONFIG naming the tensor. */
enum status layout_take(struct layout *l, const struct checkpoint *file, const struct definition *d,
                        size_t *heads, struct error *e);

/* Are these a textbook's additive pooling, which gives the parameters of its score the names of
 * projections, and projects no values? */
bool layout_is_pooling(const struct checkpoint *file, const struct family *family,
                       const char *address);

#endif
