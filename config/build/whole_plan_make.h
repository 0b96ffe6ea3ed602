/* whole_plan_make: makes the plan of a model from its definition. */
#ifndef CONFIG_WHOLE_PLAN_MAKE_H
#define CONFIG_WHOLE_PLAN_MAKE_H

#include "config/build/plan/whole_plan.h"

/* Makes a plan from a definition, which must outlive it. STATUS_CONFIG, with a detail that begins
 * with the key, the file or the tensor, or STATUS_OUT_OF_MEMORY. The caller frees it with
 * whole_plan_free in any case. */
enum status whole_plan_make(struct whole_plan *p, const json_t *definition, const char *directory,
                            struct error *e);

/* The same from open files: *p is zeroed except `source`. */
enum status whole_plan_from_source(struct whole_plan *p, const json_t *definition, struct error *e);

#endif
