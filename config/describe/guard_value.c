/* guard_value: compares JSON with the values in the table of guards. */
#include "config/describe/guard_value.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool guard_value_is_number(const json_t *value, double x) {
  return json_is_number(value) && fabs(json_number_value(value) - x) <= 1e-6 * fabs(x);
}

bool guard_value_is_off(const json_t *value) {
  return json_is_false(value) || (json_is_number(value) && fabs(json_number_value(value)) <= 1e-6);
}

static bool is_only(const json_t *value, const char *only) {
  if (json_is_boolean(value)) return strcmp(only, json_is_true(value) ? "true" : "false") == 0;
  if (json_is_string(value))
    return *only == '"' && strlen(only) == json_string_length(value) + 2 &&
           strncmp(only + 1, json_string_value(value), json_string_length(value)) == 0;
  return *only >= '0' && *only <= '9' && guard_value_is_number(value, strtod(only, NULL));
}

bool guard_value_is(const struct guard *g, const json_t *value, size_t head_size) {
  const json_t *one;
  size_t i;
  if (!value || json_is_null(value)) return true;
  const bool flag = strcmp(g->only, "true") == 0 || strcmp(g->only, "false") == 0;
  if (json_is_object(value)) return !flag && json_object_size(value) == 0;
  if (json_is_array(value) && !flag) {
    json_array_foreach((json_t *)value, i, one) {
      if (g->value != GUARD_EACH || !is_only(one, g->only)) return false;
    }
    return true;
  }
  switch (g->value) {
  case GUARD_OFF:
    return guard_value_is_off(value);
  case GUARD_HEAD_SIZE:
    return head_size > 0 && guard_value_is_number(value, (double)head_size);
  case GUARD_HEAD_SCALE:
    return head_size > 0 && guard_value_is_number(value, 1 / sqrt((double)head_size));
  default:
    return is_only(value, g->only);
  }
}
