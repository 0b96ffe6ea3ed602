/* whole_rest: the tensors of a file that no role of the family has. */
#ifndef CONFIG_WHOLE_REST_H
#define CONFIG_WHOLE_REST_H

#include "config/build/whole_plan.h"

/* Refuses one among those of the layers, by its name: STATUS_CONFIG. Counts what is left aside:
 * buffers, heads of tasks, other stacks. */
enum status whole_rest_check(struct whole_plan *p, struct error *e);

#endif
