/* stack_positions: reads the positions that a request to fill names. */
#include "server/model/fields/stack_positions.h"

#include <jansson.h>
#include <stdio.h>

#include "server/json/json_small.h"
#include "server/model/fields/stack_values.h"

/* Appends the numbers of a list, which is at `pointer` of the body. */
static enum status read_list(const json_t *list, const char *pointer, int32_t *to, size_t *count,
                             struct error *e) {
  json_int_t before = -1;
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *one = json_array_get(list, i);
    const json_int_t position = json_is_integer(one) ? json_integer_value(one) : -1;
    char at[ERROR_POINTER_SIZE];
    snprintf(at, sizeof at, "%.60s/%zu", pointer, i);
    if (position < 0 || position > INT32_MAX)
      return error_at(e, at, "must be a position: an integer of at least 0");
    if (position <= before)
      return error_at(e, at, "positions must ascend, but %d follows %d", (int)position,
                      (int)before);
    before = position;
    to[(*count)++] = (int32_t)position;
  }
  return json_array_size(list) > 0 ? STATUS_OK : error_at(e, pointer, "the list has no positions");
}

enum status stack_read_positions(const json_t *value, const struct contract_field *field,
                                 void *values, struct error *e) {
  struct stack_values *v = values;
  struct stack_positions *p = &v->positions;
  const size_t size = json_array_size(value);
  if (json_small_is_text(value, "masks")) return STATUS_OK;
  if (json_small_is_text(value, "all")) {
    p->which = STACK_FILL_ALL;
    return STATUS_OK;
  }
  if (!json_is_array(value))
    return error_at(e, field->pointer,
                    "positions must be \"masks\", \"all\", or a list of positions; of a batch, a "
                    "list of positions for each item");
  p->which = STACK_FILL_LISTED;
  p->batch = json_is_array(json_array_get(value, 0));
  p->lists = p->batch ? size : 1;
  size_t most = size, count = 0;
  for (size_t i = 0; i < size; i++) most += json_array_size(json_array_get(value, i));
  int32_t *position = arena_alloc(v->arena, most, sizeof *position, e);
  size_t *end = arena_alloc(v->arena, p->lists, sizeof *end, e);
  if (e->status) return e->status;
  for (size_t i = 0; i < p->lists; i++) {
    const json_t *list = p->batch ? json_array_get(value, i) : value;
    char pointer[ERROR_POINTER_SIZE];
    snprintf(pointer, sizeof pointer, p->batch ? "%s/%zu" : "%s", field->pointer, i);
    if (!json_is_array(list)) return error_at(e, pointer, "must be a list of positions");
    if (read_list(list, pointer, position, &count, e)) return e->status;
    end[i] = count;
  }
  p->end = end;
  p->position = position;
  return STATUS_OK;
}
