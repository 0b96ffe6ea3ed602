/* config_differ: in what one configuration differs from another. */
#include <inttypes.h>
#include <string.h>

#include "config/settings/config.h"
#include "config/settings/option.h"

enum { VALUE_SIZE = 32 }; /* of a number as text */

/* The value as a user would write it; `out` has room for a number. */
static const char *value_of(const struct option *o, struct config *c, char out[VALUE_SIZE]) {
  if (o->kind == OPTION_IS_FLAG) return *option_flag(o, c) ? "on" : "off";
  if (o->kind != OPTION_IS_COUNT) return *option_text(o, c);
  snprintf(out, VALUE_SIZE, "%" PRIu64, *option_number(o, c));
  return out;
}

void config_differ(const struct config *now, const struct config *next,
                   void (*tell)(void *of, const char *name, const char *value), void *of) {
  struct config a = *now, b = *next; /* the accessors of options give places to write to */
  char before[VALUE_SIZE], after[VALUE_SIZE];
  for (size_t i = 0; i < option_count(); i++) {
    const struct option *o = option_at(i);
    if (strcmp(o->name, "default_model") == 0) continue;
    const char *value = value_of(o, &b, after);
    if (strcmp(value_of(o, &a, before), value) != 0) tell(of, o->name, value);
  }
}

bool config_same_model(const struct config *a, const struct config *b, const char *name) {
  const json_t *first = json_object_get(a->models, name),
               *second = json_object_get(b->models, name);
  return first && second && json_equal(first, second);
}
