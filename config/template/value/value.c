/* value: what an expression of a template is: Python's kinds of values, as far as templates see
 * them. */
#include "config/template/value/value.h"

#include <string.h>

struct value value_word(const char *text) {
  return value_text(text, strlen(text));
}

struct value value_of_json(const json_t *json) {
  switch (json_typeof(json)) {
  case JSON_OBJECT:
    return (struct value){.kind = VALUE_DICT, .foreign = true, .json = json};
  case JSON_ARRAY:
    return (struct value){.kind = VALUE_LIST, .foreign = true, .json = json};
  case JSON_STRING:
    return value_text(json_string_value(json), json_string_length(json));
  case JSON_INTEGER:
    return value_integer(json_integer_value(json));
  case JSON_REAL:
    return value_real(json_real_value(json));
  case JSON_TRUE:
  case JSON_FALSE:
    return value_bool(json_is_true(json));
  default:
    return value_none();
  }
}

struct value value_copy(struct bounds *b, const char *text, size_t length) {
  const char *copy = bounds_copy(b, text, length);
  return copy ? value_text(copy, length) : VALUE_FAILED;
}

static struct value undefined_as(struct bounds *b, struct value_undefined why) {
  struct value_undefined *kept = bounds_alloc(b, sizeof *kept);
  if (!kept) return VALUE_FAILED;
  *kept = why;
  return (struct value){.kind = VALUE_UNDEFINED, .undefined = kept};
}

struct value value_undefined(struct bounds *b, struct value name, struct value of) {
  return undefined_as(b, (struct value_undefined){.name = name, .of = of});
}

struct value value_unsafe(struct bounds *b, struct value name, struct value of) {
  return undefined_as(b, (struct value_undefined){.name = name, .of = of, .unsafe = true});
}

struct value value_hint(struct bounds *b, const char *hint) {
  return undefined_as(b, (struct value_undefined){.hint = hint});
}

struct value value_list(struct bounds *b, enum value_kind kind) {
  struct value_list *list = bounds_alloc(b, sizeof *list);
  if (!list) return VALUE_FAILED;
  *list = (struct value_list){0};
  return (struct value){.kind = kind, .list = list};
}

struct value value_pair(struct bounds *b, struct value first, struct value second) {
  const struct value pair = value_list(b, VALUE_TUPLE);
  if (!pair.kind || !value_append(b, pair, first) || !value_append(b, pair, second))
    return VALUE_FAILED;
  return pair;
}

struct value value_dict(struct bounds *b, enum value_kind kind) {
  struct value_dict *dict = bounds_alloc(b, sizeof *dict);
  if (!dict) return VALUE_FAILED;
  *dict = (struct value_dict){0};
  return (struct value){.kind = kind, .dict = dict};
}

struct value value_range(struct bounds *b, int64_t start, int64_t stop, int64_t step) {
  struct value_range *range = bounds_alloc(b, sizeof *range);
  if (!range) return VALUE_FAILED;
  *range = (struct value_range){start, stop, step};
  return (struct value){.kind = VALUE_RANGE, .range = range};
}

bool value_append(struct bounds *b, struct value list, struct value item) {
  struct value_list *l = list.list;
  if (!bounds_step(b, 1)) return false;
  if (!bounds_grow(b, &l->item, &l->room, l->count + 1, sizeof *l->item)) return false;
  l->item[l->count++] = item;
  return true;
}

/* --- what a value is --- */

const char *value_type(struct value v) {
  static const char *const names[] = {
      [VALUE_UNDEFINED] = "Undefined", [VALUE_NONE] = "NoneType",
      [VALUE_BOOL] = "bool",           [VALUE_INTEGER] = "int",
      [VALUE_REAL] = "float",          [VALUE_TEXT] = "str",
      [VALUE_LIST] = "list",           [VALUE_TUPLE] = "tuple",
      [VALUE_DICT] = "dict",           [VALUE_RANGE] = "range",
      [VALUE_ITERATOR] = "generator",  [VALUE_NAMESPACE] = "Namespace",
      [VALUE_LOOP] = "LoopContext",    [VALUE_MACRO] = "Macro",
      [VALUE_METHOD] = "method",       [VALUE_FUNCTION] = "function"};
  static const char *const views[] = {
      [VALUE_KEYS] = "dict_keys", [VALUE_VALUES] = "dict_values", [VALUE_ITEMS] = "dict_items"};
  return v.kind == VALUE_VIEW ? views[v.part] : names[v.kind];
}

struct value value_fail_undefined(struct bounds *b, struct value v) {
  const struct value_undefined *why = v.undefined;
  const bool named = why->name.kind == VALUE_TEXT;
  const int length = named ? (int)why->name.length : 0;
  const bool none = why->of.kind == VALUE_NONE;
  const char *of = none ? "None" : why->of.kind ? value_type(why->of) : "";
  if (why->of.kind == VALUE_NAMESPACE) of = "jinja2.utils.Namespace";
  const char *object = none ? "" : " object";
  if (why->unsafe)
    bounds_fail(b, "access to attribute '%.*s' of '%s' object is unsafe.", length, why->name.text,
                value_type(why->of));
  else if (why->hint)
    bounds_fail(b, "%s", why->hint);
  else if (!why->of.kind)
    bounds_fail(b, "'%.*s' is undefined", length, why->name.text);
  else if (named)
    bounds_fail(b, "'%s%s' has no attribute '%.*s'", of, object, length, why->name.text);
  else if (value_is_integer(why->name))
    bounds_fail(b, "%s%s has no element %lld", of, object, (long long)value_as_integer(why->name));
  else
    bounds_fail(b, "%s%s has no such element", of, object);
  return VALUE_FAILED;
}

bool value_truth(struct value v) {
  size_t length;
  switch (v.kind) {
  case VALUE_MISSING:
  case VALUE_UNDEFINED:
  case VALUE_NONE:
    return false;
  case VALUE_BOOL:
    return v.truth;
  case VALUE_INTEGER:
    return v.integer != 0;
  case VALUE_REAL:
    return v.real != 0;
  case VALUE_TEXT:
    return v.length > 0;
  default:
    return !value_items(v, &length) || length > 0;
  }
}

double value_as_real(struct value v) {
  return v.kind == VALUE_REAL ? v.real : (double)value_as_integer(v);
}

bool value_is_hashable(struct bounds *b, struct value v) {
  if (v.kind == VALUE_LIST || v.kind == VALUE_DICT || v.kind == VALUE_VIEW) return false;
  if (v.kind == VALUE_TUPLE && !bounds_step(b, v.list->count)) return false;
  for (size_t i = 0; v.kind == VALUE_TUPLE && i < v.list->count; i++) {
    const struct value item = v.list->item[i];
    /* A tuple in a tuple is a rare key: bounded recursion is not worth it. */
    if (item.kind == VALUE_TUPLE ? item.list->count > 0 : !value_is_hashable(b, item)) return false;
  }
  return true;
}

static size_t range_length(const struct value_range *r) {
  const uint64_t far = r->step > 0 ? (uint64_t)r->stop - (uint64_t)r->start
                                   : (uint64_t)r->start - (uint64_t)r->stop,
                 by = r->step > 0 ? (uint64_t)r->step : 0 - (uint64_t)r->step;
  return (r->step > 0 ? r->start < r->stop : r->start > r->stop) ? (far - 1) / by + 1 : 0;
}

bool value_items(struct value v, size_t *count) {
  switch (v.kind) {
  case VALUE_UNDEFINED:
    return *count = 0, true;
  case VALUE_LIST:
  case VALUE_TUPLE:
    return *count = v.foreign ? json_array_size(v.json) : v.list->count, true;
  case VALUE_DICT:
  case VALUE_VIEW:
    return *count = v.foreign ? json_object_size(v.json) : v.dict->count, true;
  case VALUE_RANGE:
    return *count = range_length(v.range), true;
  default:
    return false;
  }
}

bool value_length(struct bounds *b, struct value v, size_t *length) {
  if (v.kind != VALUE_TEXT) return value_items(v, length);
  if (!bounds_text(b, v.length)) return false;
  return *length = value_characters(v.text, v.length), true;
}

/* --- its parts --- */

struct value value_at(struct value v, size_t i) {
  if (v.kind == VALUE_RANGE) return value_integer(v.range->start + (int64_t)i * v.range->step);
  return v.foreign ? value_of_json(json_array_get(v.json, i)) : v.list->item[i];
}

size_t value_characters(const char *text, size_t length) {
  size_t count = 0;
  for (size_t i = 0; i < length; i++) count += (text[i] & 0xc0) != 0x80;
  return count;
}

size_t value_skip(const char *text, size_t length, size_t count) {
  size_t i = 0;
  for (; i < length; i++)
    if ((text[i] & 0xc0) != 0x80 && count-- == 0) break;
  return i;
}

bool value_index(int64_t at, size_t count, size_t *index) {
  const int64_t size = (int64_t)count, place = at < 0 ? at + size : at;
  *index = (size_t)place;
  return place >= 0 && place < size;
}
