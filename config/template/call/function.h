/* function: the functions that every template can call. */
#ifndef CONFIG_FUNCTION_H
#define CONFIG_FUNCTION_H

#include "config/template/call/arguments.h"
#include "config/template/call/format.h"

/* The function of a name, as a value. MISSING: there is none. */
struct value function_find(const char *name);

/* Calls it. `now` is the time that strftime_now takes. */
struct value function_call(struct bounds *b, struct value function, const struct format_time *now,
                           const struct arguments *a);

#endif
