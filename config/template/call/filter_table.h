/* filter_table: the rows of the table of filters, which several files have. */
#ifndef CONFIG_FILTER_TABLE_H
#define CONFIG_FILTER_TABLE_H

#include "config/template/call/arguments.h"

struct filter {
  const char *name;
  /* Gets the arguments in the order of `wanted`. */
  struct value (*apply)(struct bounds *b, struct value x, const struct value *argument);
  struct arguments_wanted wanted;
};

/* The row of a name, of filters of texts and numbers, and of lists and dicts. NULL: none. */
const struct filter *filter_text_find(const char *name);
const struct filter *filter_list_find(const char *name);

#endif
