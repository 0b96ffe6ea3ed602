/* filter: the filters of templates, by name. */
#ifndef CONFIG_FILTER_H
#define CONFIG_FILTER_H

#include "config/template/call/arguments.h"

/* Applies a filter to a value. VALUE_FAILED after a failure: there is no such filter, too. */
struct value filter_apply(struct bounds *b, struct value name, struct value x,
                          const struct arguments *a);

#endif
