/* method: the methods of texts, lists, dicts and of the variable `loop`. */
#ifndef CONFIG_METHOD_H
#define CONFIG_METHOD_H

#include "config/template/call/arguments.h"

struct method_row {
  enum value_kind of;
  const char *name;
  /* Gets the arguments in the order of `wanted`; or all of them, if `wanted` has none. */
  struct value (*apply)(struct bounds *b, struct value self, const struct value *argument);
  struct value (*apply_all)(struct bounds *b, struct value self, const struct arguments *a);
  struct arguments_wanted wanted;
};

/* The method of a value, not called yet. MISSING: it has none of this name, or after a failure. One
 * that would change the value is undefined, as in Jinja's sandbox. */
struct value method_get(struct bounds *b, struct value self, struct value name);

/* Calls what method_get has returned. */
struct value method_call(struct bounds *b, struct value bound, const struct arguments *a);

#endif
