/* guard_value: compares values of config.json with the supported ones of guards. */
#ifndef CONFIG_GUARD_VALUE_H
#define CONFIG_GUARD_VALUE_H

#include <jansson.h>

#include "config/family/guard.h"

/* Is the value absent, null, empty, or the guard's supported one? `head_size` is 0 if it is not
 * known. */
bool guard_value_is(const struct guard *g, const json_t *value, size_t head_size);

/* Is it one of Python's false values? */
bool guard_value_is_off(const json_t *value);

/* Is the value the number `x`, as far as a file of decimal numbers can say it? */
bool guard_value_is_number(const json_t *value, double x);

#endif
