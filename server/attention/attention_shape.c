/* attention_shape: lists of one element per item, and where in them something is wrong. */
#include <stdio.h>

#include "server/attention/attention_parts.h"

enum status check_fail_at(struct check *k, enum attention_field field, size_t item,
                          const char *format, ...) {
  char pointer[ERROR_POINTER_SIZE];
  int n = snprintf(pointer, sizeof pointer, "%s", field_pointer(field));
  if (!k->unbatched) snprintf(pointer + n, sizeof pointer - (size_t)n, "/%zu", item);
  va_list args;
  va_start(args, format);
  error_at_v(k->e, pointer, format, args);
  va_end(args);
  return k->e->status;
}

enum status check_depth(struct check *k, enum attention_field field, unsigned depth) {
  const struct tensor *t = check_tensor(k, field);
  bool open = !t->shaped && t->count == 0 && t->depth < depth;
  if (t->depth != depth && !open)
    return error_at(k->e, field_pointer(field), "%s of depth %u beside queries of depth %u",
                    field_name(field), t->depth, check_query_depth(k));
  if (k->unbatched && t->count == 0 && t->elements > 0)
    return check_fail_at(k, field, 0, "rows without numbers");
  if (!k->unbatched && t->elements != k->c->items)
    return error_at(k->e, field_pointer(field), "%s of %zu items beside queries of %zu",
                    field_name(field), t->elements, k->c->items);
  return STATUS_OK;
}
