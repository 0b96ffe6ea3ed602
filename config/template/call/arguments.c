/* arguments: what a filter, test, method, function or macro is called with. */
#include "config/template/call/arguments.h"

#include <string.h>

bool arguments_bind(struct bounds *b, const char *what, const struct arguments *given,
                    const struct arguments_wanted *wanted, struct value out[ARGUMENTS_MOST]) {
  size_t most = 0;
  while (most < ARGUMENTS_MOST && wanted->name[most]) most++;
  if (given->positions > most)
    return bounds_fail(b, "%s takes at most %zu arguments, got %zu", what, most, given->positions);
  for (size_t i = 0; i < ARGUMENTS_MOST; i++)
    out[i] = i < given->positions ? given->position[i] : VALUE_FAILED;
  for (size_t i = 0; i < given->names; i++) {
    size_t at = 0;
    while (at < most && strcmp(given->name[i].text, wanted->name[at]) != 0) at++;
    if (at == most) return bounds_fail(b, "%s has no argument '%.80s'", what, given->name[i].text);
    if (out[at].kind)
      return bounds_fail(b, "%s got the argument '%.80s' twice", what, given->name[i].text);
    out[at] = given->named[i];
  }
  for (size_t i = 0; i < wanted->least; i++)
    if (!out[i].kind) return bounds_fail(b, "%s needs %zu arguments", what, wanted->least);
  return true;
}

bool arguments_integer(struct bounds *b, struct value v, int64_t otherwise, int64_t *out) {
  *out = v.kind ? value_as_integer(v) : otherwise;
  if (!v.kind || value_is_integer(v)) return true;
  if (v.kind == VALUE_UNDEFINED) return value_fail_undefined(b, v).kind;
  return bounds_fail(b, "an integer is needed, got '%s'", value_type(v));
}

bool arguments_text(struct bounds *b, struct value v, struct value otherwise, struct value *out) {
  *out = v.kind ? v : otherwise;
  if (!v.kind || v.kind == VALUE_TEXT) return true;
  return bounds_fail(b, "a string is needed, got '%s'", value_type(v));
}
