/* attention_checking: errors at an item of a field. */
#include "server/attention/attention_checking.h"

#include <stdarg.h>
#include <stdio.h>

bool attention_items_alike(const struct geometry *g) {
  for (size_t i = 1; i < g->items; i++)
    if (g->item[i].q != g->item[0].q || g->item[i].k != g->item[0].k) return false;
  return true;
}

enum status attention_fail_at(struct attention_check *k, enum attention_field field, size_t item,
                              const char *format, ...) {
  char pointer[ERROR_POINTER_SIZE];
  int n = snprintf(pointer, sizeof pointer, "%s", attention_field_pointer(field));
  if (!k->unbatched) snprintf(pointer + n, sizeof pointer - (size_t)n, "/%zu", item);
  va_list args;
  va_start(args, format);
  error_at_v(k->e, pointer, format, args);
  va_end(args);
  return k->e->status;
}
