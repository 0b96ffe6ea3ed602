/* format: texts made by a format: Python's % of a text, and strftime(). */
#ifndef CONFIG_FORMAT_H
#define CONFIG_FORMAT_H

#include "config/template/value/value.h"

/* text % values: a tuple, a dict for %(name)s, or one value. */
struct value format_values(struct bounds *b, struct value text, struct value values);

/* A time of a calendar and clock, without a zone. */
struct format_time {
  int year, month, day, hour, minute, second, microsecond;
};
struct value format_time(struct bounds *b, struct value format, const struct format_time *time);

#endif
