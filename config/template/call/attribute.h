/* attribute: parts of values: x.name, x[key], x[first:last:step]. */
#ifndef CONFIG_ATTRIBUTE_H
#define CONFIG_ATTRIBUTE_H

#include "config/template/value/value.h"

/* x.name: a method or attribute, or else the value of the key. x[key]: the other way round. What is
 * not there is undefined; VALUE_FAILED after a failure: x is undefined itself, for example. */
struct value attribute_get(struct bounds *b, struct value x, struct value name);
struct value attribute_item(struct bounds *b, struct value x, struct value key);

/* x[first:last:step], each of which may be none. */
struct value attribute_slice(struct bounds *b, struct value x, const struct value bound[3]);

/* Follows "name.name.0", or an integer, from a value, as the filters' argument `attribute` does.
 * `otherwise` replaces what is undefined, unless it is MISSING or none. */
struct value attribute_path(struct bounds *b, struct value x, struct value path,
                            struct value otherwise);

#endif
