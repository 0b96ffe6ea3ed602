/* compare: equality and order of values, and what depends on them: membership, and keys of dicts.
 */
#include "config/template/value/compare.h"

#include <math.h>
#include <string.h>

static bool equal_lists(struct bounds *b, struct value x, struct value y) {
  size_t count, other;
  value_items(x, &count), value_items(y, &other);
  if (count != other || !bounds_enter(b)) return false;
  size_t i = 0;
  while (i < count && bounds_step(b, 1) && compare_equal(b, value_at(x, i), value_at(y, i))) i++;
  bounds_leave(b);
  return i == count;
}

static bool equal_dicts(struct bounds *b, struct value x, struct value y) {
  size_t count, other, found = 0;
  value_items(x, &count), value_items(y, &other);
  if (count != other || !bounds_enter(b)) return false;
  if (x.foreign) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)x.json, key, value) {
      const struct value word = value_word(key);
      if (!bounds_step(b, 1) || !bounds_text(b, word.length)) break;
      const struct value in_y = compare_find(b, y, word);
      if (!in_y.kind || !compare_equal(b, value_of_json(value), in_y)) break;
      found++;
    }
  } else {
    for (; found < count && bounds_step(b, 1); found++) {
      const struct value in_y = compare_find(b, y, x.dict->key[found]);
      if (!in_y.kind || !compare_equal(b, x.dict->value[found], in_y)) break;
    }
  }
  bounds_leave(b);
  return found == count;
}

/* Compares an integer to a real as numbers: -1, 0, 1; 2 if the real is none. */
static int order_mixed(int64_t x, double y) {
  if (isnan(y)) return 2;
  if (y >= 0x1p63) return -1;
  if (y < -0x1p63) return 1;
  const int64_t whole = (int64_t)y;
  if (x != whole) return x < whole ? -1 : 1;
  const double rest = y - (double)whole;
  return rest > 0 ? -1 : rest < 0;
}

static int order_numbers(struct value x, struct value y) {
  if (x.kind == VALUE_REAL && y.kind == VALUE_REAL) {
    if (isnan(x.real) || isnan(y.real)) return 2;
    return (x.real > y.real) - (x.real < y.real);
  }
  if (y.kind == VALUE_REAL) return order_mixed(value_as_integer(x), y.real);
  if (x.kind == VALUE_REAL) {
    const int order = order_mixed(value_as_integer(y), x.real);
    return order == 2 ? 2 : -order;
  }
  const int64_t i = value_as_integer(x), k = value_as_integer(y);
  return (i > k) - (i < k);
}

static int order_texts(struct value x, struct value y) {
  const size_t shorter = x.length < y.length ? x.length : y.length;
  const int order = memcmp(x.text, y.text, shorter);
  return order ? (order > 0) - (order < 0) : (x.length > y.length) - (x.length < y.length);
}

bool compare_equal(struct bounds *b, struct value x, struct value y) {
  if (b->e->status) return false;
  if (value_is_number(x) && value_is_number(y)) return order_numbers(x, y) == 0;
  if (x.kind != y.kind) return false;
  switch (x.kind) {
  case VALUE_UNDEFINED:
  case VALUE_NONE:
    return true;
  case VALUE_TEXT:
    return x.length == y.length && bounds_text(b, x.length) &&
           memcmp(x.text, y.text, x.length) == 0;
  case VALUE_LIST:
  case VALUE_TUPLE:
  case VALUE_RANGE:
    return equal_lists(b, x, y);
  case VALUE_DICT:
    return equal_dicts(b, x, y);
  default:
    return x.object == y.object && (x.kind != VALUE_VIEW || x.part == y.part);
  }
}

static bool holds_for(enum compare_operator is, int order) {
  switch (is) {
  case COMPARE_LESS:
    return order == -1;
  case COMPARE_LESS_EQUAL:
    return order == -1 || order == 0;
  case COMPARE_GREATER:
    return order == 1;
  default:
    return order == 1 || order == 0;
  }
}

/* Lists are ordered by their first items that differ, or by their lengths. */
static bool compare_lists(struct bounds *b, enum compare_operator is, struct value x,
                          struct value y, bool *holds) {
  size_t count, other, i = 0;
  value_items(x, &count), value_items(y, &other);
  const size_t shorter = count < other ? count : other;
  if (!bounds_enter(b)) return false;
  while (i < shorter && bounds_step(b, 1) && compare_equal(b, value_at(x, i), value_at(y, i))) i++;
  bool done = !b->e->status;
  if (done && i < shorter)
    done = compare_values(b, is, value_at(x, i), value_at(y, i), holds);
  else if (done)
    *holds = holds_for(is, (count > other) - (count < other));
  bounds_leave(b);
  return done;
}

bool compare_values(struct bounds *b, enum compare_operator is, struct value x, struct value y,
                    bool *holds) {
  static const char *const signs[] = {[COMPARE_LESS] = "<",
                                      [COMPARE_LESS_EQUAL] = "<=",
                                      [COMPARE_GREATER] = ">",
                                      [COMPARE_GREATER_EQUAL] = ">="};
  if (is == COMPARE_EQUAL || is == COMPARE_UNEQUAL) {
    *holds = compare_equal(b, x, y) == (is == COMPARE_EQUAL);
    return !b->e->status;
  }
  if (x.kind == VALUE_UNDEFINED || y.kind == VALUE_UNDEFINED)
    return value_fail_undefined(b, x.kind == VALUE_UNDEFINED ? x : y).kind;
  if (value_is_number(x) && value_is_number(y))
    return *holds = holds_for(is, order_numbers(x, y)), true;
  if (x.kind == VALUE_TEXT && y.kind == VALUE_TEXT)
    return bounds_text(b, x.length < y.length ? x.length : y.length) &&
           (*holds = holds_for(is, order_texts(x, y)), true);
  if (x.kind == y.kind && (x.kind == VALUE_LIST || x.kind == VALUE_TUPLE))
    return compare_lists(b, is, x, y, holds);
  return bounds_fail(b, "'%s' not supported between instances of '%s' and '%s'", signs[is],
                     value_type(x), value_type(y));
}

/* --- keys --- */

/* The place of a key in a dict of the template's; its count if it is not there. */
static size_t find_key(struct bounds *b, const struct value_dict *dict, struct value key) {
  size_t i = 0;
  while (i < dict->count && bounds_step(b, 1) && !compare_equal(b, dict->key[i], key)) i++;
  return b->e->status ? dict->count : i;
}

bool compare_put(struct bounds *b, struct value dict, struct value key, struct value value) {
  struct value_dict *d = dict.dict;
  if (!value_is_hashable(b, key)) return bounds_fail(b, "unhashable type: '%s'", value_type(key));
  const size_t at = find_key(b, d, key);
  if (b->e->status || !bounds_grow(b, &d->key, &d->room, at + 1, sizeof *d->key) ||
      !bounds_grow(b, &d->value, &d->value_room, at + 1, sizeof *d->value))
    return false;
  if (at == d->count) d->key[d->count++] = key;
  d->value[at] = value;
  return true;
}

struct value compare_find(struct bounds *b, struct value dict, struct value key) {
  if (dict.foreign) {
    if (key.kind != VALUE_TEXT || !bounds_text(b, key.length) || strlen(key.text) != key.length)
      return VALUE_FAILED;
    const json_t *found = json_object_get(dict.json, key.text);
    return found ? value_of_json(found) : VALUE_FAILED;
  }
  const size_t at = find_key(b, dict.dict, key);
  return at < dict.dict->count ? dict.dict->value[at] : VALUE_FAILED;
}
