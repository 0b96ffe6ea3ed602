/* stack_items: places of items in the body, and how much of each item is valid. */
#include "server/model/check/stack_items.h"

#include <stdio.h>

/* --- places --- */

/* Writes the pointer, and returns its length. */
static size_t point_at_item(const struct stack_check *k, enum stack_field field, size_t item,
                            char pointer[ERROR_POINTER_SIZE]) {
  const bool text = field == STACK_FIELD_TOKENS && k->reading->texts;
  const char *of = stack_field_pointer(text ? STACK_FIELD_TEXT : field);
  size_t n = (size_t)snprintf(pointer, ERROR_POINTER_SIZE, "%.40s", of);
  if (!k->out->unbatched) n += (size_t)snprintf(pointer + n, ERROR_POINTER_SIZE - n, "/%zu", item);
  return n;
}

enum status stack_items_refuse(struct stack_check *k, enum stack_field field, size_t item,
                               const char *format, ...) {
  char pointer[ERROR_POINTER_SIZE];
  va_list args;
  point_at_item(k, field, item, pointer);
  va_start(args, format);
  error_at_v(k->e, pointer, format, args);
  va_end(args);
  return k->e->status;
}

enum status stack_items_refuse_number(struct stack_check *k, enum stack_field field, size_t item,
                                      size_t number, const char *format, ...) {
  char pointer[ERROR_POINTER_SIZE];
  va_list args;
  const size_t n = point_at_item(k, field, item, pointer);
  snprintf(pointer + n, sizeof pointer - n, "/%zu", number);
  va_start(args, format);
  error_at_v(k->e, pointer, format, args);
  va_end(args);
  return k->e->status;
}

/* --- lists --- */

size_t stack_items_count(const struct stack_check *k, enum stack_field field, size_t item) {
  const struct tensor *t = stack_check_tensor(k, field);
  return k->out->unbatched ? t->elements : tensor_shape_at(t, item).dim[0];
}

enum status stack_items_beside(struct stack_check *k, enum stack_field field) {
  const struct tensor *t = stack_check_tensor(k, field);
  const size_t items = k->items;
  const unsigned depth = k->out->unbatched ? 1 : 2;
  const bool open = !t->shaped && t->count == 0 && t->depth < depth;
  if (t->depth != depth && !open)
    return error_at(k->e, stack_field_pointer(field), "%s has %u dimensions, expected %u: %s",
                    stack_check_shown(k, field), t->depth, depth,
                    k->out->unbatched ? "a single item requires one list"
                                      : "a batch requires a list for each item");
  if (!k->out->unbatched && t->elements != items)
    return error_at(k->e, stack_field_pointer(field), "%s has %zu items, but %s has %zu",
                    stack_check_shown(k, field), t->elements, stack_check_shown(k, k->field),
                    items);
  return STATUS_OK;
}

enum status stack_items_alike(struct stack_check *k, enum stack_field field, enum stack_field as) {
  if (stack_items_beside(k, field)) return k->e->status;
  for (size_t i = 0; i < k->items; i++) {
    const size_t count = stack_items_count(k, field, i), rows = stack_items_count(k, as, i);
    if (count != rows)
      return stack_items_refuse(k, field, i, "%zu numbers, but the item has %zu positions", count,
                                rows);
  }
  return STATUS_OK;
}

/* --- valid lengths --- */

enum status stack_items_lens(struct stack_check *k, enum stack_field lengths, enum stack_field of,
                             int32_t *lens) {
  const struct tensor *t = stack_check_tensor(k, lengths);
  const size_t items = k->items;
  const char *name = stack_field_name(lengths);
  if (!t || t->null) {
    for (size_t i = 0; i < items; i++) lens[i] = (int32_t)stack_items_count(k, of, i);
    return STATUS_OK;
  }
  if (t->depth != (k->out->unbatched ? 0u : 1u))
    return error_at(k->e, stack_field_pointer(lengths), "%s has %u dimensions: %s", name, t->depth,
                    k->out->unbatched ? "a single item requires one length, not an array"
                                      : "a batch requires a list of lengths");
  if (!k->out->unbatched && t->elements != items)
    return error_at(k->e, stack_field_pointer(lengths), "%zu valid lengths for %zu items",
                    t->elements, items);
  for (size_t i = 0; i < items; i++) {
    const int32_t len = ((const int32_t *)t->data)[i];
    const size_t most = stack_items_count(k, of, i);
    if (len < 0 || (size_t)len > most)
      return stack_items_refuse(k, lengths, i, "the valid length is %d, but the item has %zu %s",
                                (int)len, most, of == STACK_FIELD_TARGETS ? "targets" : "rows");
    lens[i] = len;
  }
  return STATUS_OK;
}

enum status stack_items_mask(struct stack_check *k, enum stack_field mask, enum stack_field of,
                             int32_t *lens) {
  const int32_t *number = stack_check_tensor(k, mask)->data;
  if (stack_items_alike(k, mask, of)) return k->e->status;
  for (size_t i = 0; i < k->items; i++) {
    const size_t rows = stack_items_count(k, of, i);
    size_t ones = 0;
    while (ones < rows && number[ones] == 1) ones++;
    lens[i] = (int32_t)ones;
    size_t at = ones;
    while (at < rows && number[at] == 0) at++;
    if (at < rows)
      return stack_items_refuse_number(
          k, mask, i, at,
          "%d is not allowed here: the mask must be ones followed by zeros (pad on the right)",
          (int)number[at]);
    if (rows) number += rows; /* without rows it may be NULL */
  }
  return STATUS_OK;
}

/* --- numbers --- */

enum status stack_items_below(struct stack_check *k, enum stack_field field, size_t item,
                              const int32_t *number, size_t count, size_t end) {
  const bool type = field == STACK_FIELD_TOKEN_TYPES;
  for (size_t i = 0; i < count; i++)
    if (number[i] < 0 || (size_t)number[i] >= end)
      return stack_items_refuse_number(k, field, item, i,
                                       "%s %d is out of range: the %s is 0 to %zu",
                                       type ? "type" : "token", (int)number[i],
                                       type ? "range of token types" : "vocabulary", end - 1);
  return STATUS_OK;
}
