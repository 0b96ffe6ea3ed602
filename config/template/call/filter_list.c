/* filter_list: the filters of lists and dicts, and those of any value. */
#include <stdlib.h>
#include <string.h>

#include "config/template/call/attribute.h"
#include "config/template/call/filter_table.h"
#include "config/template/value/arithmetic.h"
#include "config/template/value/compare.h"
#include "config/template/value/iterate.h"
#include "config/template/value/letters.h"
#include "config/template/value/print.h"

static struct value list_of(struct bounds *b, struct value x) {
  struct iterator *i = iterate_value(b, x);
  return i ? iterate_list(b, i, VALUE_LIST) : VALUE_FAILED;
}

/* --- parts --- */

static struct value apply_length(struct bounds *b, struct value x, const struct value *a) {
  size_t length;
  (void)a;
  if (value_length(b, x, &length)) return value_integer((int64_t)length);
  return bounds_fail(b, "object of type '%s' has no len()", value_type(x)), VALUE_FAILED;
}

static struct value apply_list(struct bounds *b, struct value x, const struct value *a) {
  (void)a;
  return list_of(b, x);
}

static struct value apply_first(struct bounds *b, struct value x, const struct value *a) {
  struct iterator *i = iterate_value(b, x);
  const struct value first = i ? iterate_next(b, i) : VALUE_FAILED;
  (void)a;
  if (first.kind || b->e->status) return first;
  return value_hint(b, "No first item, sequence was empty.");
}

/* Python's reversed() needs a length. */
static bool can_reverse(struct bounds *b, struct value x) {
  if (x.kind == VALUE_ITERATOR || !iterate_can(x))
    bounds_fail(b, "'%s' object is not reversible", value_type(x));
  return !b->e->status;
}

static struct value apply_last(struct bounds *b, struct value x, const struct value *a) {
  (void)a;
  if (!can_reverse(b, x)) return VALUE_FAILED;
  const struct value list = list_of(b, x);
  if (!list.kind || list.list->count)
    return list.kind ? list.list->item[list.list->count - 1] : list;
  return value_hint(b, "No last item, sequence was empty.");
}

static struct value next_reversed(struct bounds *b, struct iterator *i) {
  (void)b;
  return i->at > 0 ? i->of.list->item[--i->at] : VALUE_FAILED;
}

static struct value apply_reverse(struct bounds *b, struct value x, const struct value *a) {
  (void)a;
  if (x.kind == VALUE_TEXT)
    return attribute_slice(b, x, (struct value[]){value_none(), value_none(), value_integer(-1)});
  const struct value list = list_of(b, x);
  struct iterator *from = list.kind ? iterate_value(b, list) : NULL;
  const struct value reversed = iterate_lazily(b, next_reversed, from, NULL);
  if (!reversed.kind) return reversed;
  reversed.iterator->of = list;
  reversed.iterator->at = list.list->count;
  return reversed;
}

static struct value next_pair(struct bounds *b, struct iterator *i) {
  return iterate_next(b, i->from);
}

/* An undefined value has none. */
static struct value apply_items(struct bounds *b, struct value x, const struct value *a) {
  (void)a;
  if (x.kind == VALUE_DICT) x.kind = VALUE_VIEW, x.part = VALUE_ITEMS;
  if (x.kind != VALUE_VIEW && x.kind != VALUE_UNDEFINED)
    return bounds_fail(b, "Can only get item pairs from a mapping."), VALUE_FAILED;
  return iterate_lazily(b, next_pair, iterate_value(b, x), NULL);
}

static struct value apply_attr(struct bounds *b, struct value x, const struct value *a) {
  struct value name;
  if (!arguments_text(b, a[0], a[0], &name)) return VALUE_FAILED;
  if (x.kind == VALUE_DICT) x = value_dict(b, VALUE_DICT); /* methods alone, no keys */
  return x.kind ? attribute_get(b, x, name) : x;
}

static struct value apply_default(struct bounds *b, struct value x, const struct value *a) {
  (void)b;
  const bool absent =
      x.kind == VALUE_UNDEFINED || (arguments_truth(a[1], false) && !value_truth(x));
  return absent ? a[0].kind ? a[0] : value_word("") : x;
}

static struct value apply_join(struct bounds *b, struct value x, const struct value *a) {
  struct buffer out = {0};
  struct iterator *i = iterate_value(b, x);
  const struct value between = a[0].kind ? print_text(b, a[0]) : value_word("");
  struct value item;
  bool done = i && between.kind;
  for (bool any = false; done && (item = iterate_next(b, i)).kind; any = true) {
    item = attribute_path(b, item, a[1], VALUE_FAILED);
    done = item.kind && (!any || buffer_add(b, &out, between.text, between.length)) &&
           print_value(b, &out, item);
  }
  return done && !b->e->status ? buffer_value(b, &out) : VALUE_FAILED;
}

/* --- order --- */

/* The key of an item, which it is ordered by: texts in lower case, unless case matters. */
static struct value key_of(struct bounds *b, struct value item, struct value path,
                           bool case_matters, struct value otherwise) {
  const struct value key = attribute_path(b, item, path, otherwise);
  return key.kind == VALUE_TEXT && !case_matters ? letters_case(b, key, LETTERS_LOWER) : key;
}

/* A list of keys, by the paths between commas: what has no order is no failure while it is equal.
 */
static struct value keys_of(struct bounds *b, struct value item, struct value paths,
                            bool case_matters) {
  const struct value list = value_list(b, VALUE_LIST);
  const bool text = paths.kind == VALUE_TEXT;
  for (size_t at = 0; list.kind && (text ? at <= paths.length : at == 0);) {
    const size_t length = text ? strcspn(paths.text + at, ",") : 0;
    const struct value path = text ? value_copy(b, paths.text + at, length) : paths;
    if (text && !path.kind) return VALUE_FAILED;
    const struct value key = key_of(b, item, path, case_matters, VALUE_FAILED);
    if (!key.kind || !value_append(b, list, key)) return VALUE_FAILED;
    at += length + 1;
  }
  return list;
}

struct sorted {
  struct value key, item;
};

/* Merges two sorted parts; equal keys stay in their order, in reverse order, too. */
static bool merge(struct bounds *b, struct sorted *in, size_t middle, size_t count,
                  struct sorted *out, bool reverse) {
  for (size_t i = 0, k = middle, n = 0; n < count; n++) {
    bool later = i == middle;
    if (i < middle && k < count &&
        !compare_values(b, reverse ? COMPARE_GREATER : COMPARE_LESS, in[k].key, in[i].key, &later))
      return false;
    out[n] = later ? in[k++] : in[i++];
  }
  return true;
}

static bool sort_items(struct bounds *b, struct sorted *in, size_t count, bool reverse) {
  struct sorted *out = bounds_alloc(b, count * sizeof *out);
  for (size_t width = 1; out && width < count; width *= 2) {
    for (size_t at = 0; at < count; at += 2 * width) {
      const size_t some = count - at < 2 * width ? count - at : 2 * width;
      if (!bounds_step(b, some) ||
          !merge(b, in + at, width < some ? width : some, some, out + at, reverse))
        return false;
    }
    memcpy(in, out, count * sizeof *in);
  }
  return out != NULL;
}

/* How a list is sorted: by one path, or by a list of paths. */
struct sorting {
  struct value path, otherwise;
  bool several, case_matters, reverse;
};

/* The items of a list with their keys, in their order. NULL after a failure. */
static struct sorted *sorted_of(struct bounds *b, struct value list, const struct sorting *how) {
  struct sorted *sorted = list.kind ? bounds_alloc(b, list.list->count * sizeof *sorted) : NULL;
  for (size_t i = 0; sorted && i < list.list->count; i++) {
    const struct value item = list.list->item[i];
    sorted[i] = (struct sorted){how->several
                                    ? keys_of(b, item, how->path, how->case_matters)
                                    : key_of(b, item, how->path, how->case_matters, how->otherwise),
                                item};
    if (!sorted[i].key.kind) return NULL;
  }
  return sorted && sort_items(b, sorted, list.list->count, how->reverse) ? sorted : NULL;
}

static struct value sort_list(struct bounds *b, struct value list, const struct sorting *how) {
  const struct sorted *sorted = sorted_of(b, list, how);
  for (size_t i = 0; sorted && i < list.list->count; i++) list.list->item[i] = sorted[i].item;
  return sorted ? list : VALUE_FAILED;
}

static struct value apply_sort(struct bounds *b, struct value x, const struct value *a) {
  const struct sorting how = {.path = a[2],
                              .several = true,
                              .case_matters = arguments_truth(a[1], false),
                              .reverse = arguments_truth(a[0], false)};
  return sort_list(b, list_of(b, x), &how);
}

static struct value apply_dictsort(struct bounds *b, struct value x, const struct value *a) {
  struct value by;
  if (!arguments_text(b, a[1], value_word("key"), &by)) return VALUE_FAILED;
  const bool value = strcmp(by.text, "value") == 0;
  if (!value && strcmp(by.text, "key") != 0)
    return bounds_fail(b, "You can only sort by either \"key\" or \"value\""), VALUE_FAILED;
  if (x.kind == VALUE_UNDEFINED) return value_fail_undefined(b, x);
  if (x.kind != VALUE_DICT)
    return bounds_fail(b, "dictsort needs a dict, got '%s'", value_type(x)), VALUE_FAILED;
  x.kind = VALUE_VIEW;
  x.part = VALUE_ITEMS;
  const struct sorting how = {.path = value_integer(value),
                              .case_matters = arguments_truth(a[0], false),
                              .reverse = arguments_truth(a[2], false)};
  return sort_list(b, list_of(b, x), &how);
}

/* Lists of the items with the same key, each with the key of its first item. */
static struct value apply_groupby(struct bounds *b, struct value x, const struct value *a) {
  const struct sorting how = {.path = a[0],
                              .otherwise = a[1],
                              .case_matters = arguments_truth(a[2], false)};
  const struct value groups = value_list(b, VALUE_LIST), list = list_of(b, x);
  const struct sorted *sorted = sorted_of(b, list, &how);
  if (!groups.kind || !sorted) return VALUE_FAILED;
  for (size_t i = 0; i < list.list->count;) {
    const struct value key = key_of(b, sorted[i].item, a[0], true, a[1]),
                       some = value_list(b, VALUE_LIST);
    const size_t first = i;
    if (!key.kind || !some.kind) return VALUE_FAILED;
    for (; i < list.list->count && compare_equal(b, sorted[i].key, sorted[first].key); i++)
      if (!value_append(b, some, sorted[i].item)) return VALUE_FAILED;
    const struct value group = value_pair(b, key, some);
    if (!group.kind || b->e->status || !value_append(b, groups, group)) return VALUE_FAILED;
  }
  return groups;
}

/* The first item whose key is less, or greater, than all before it. */
static struct value extreme(struct bounds *b, struct value x, const struct value *a,
                            enum compare_operator is) {
  struct iterator *i = iterate_value(b, x);
  struct value item, key, best = VALUE_FAILED, best_key = VALUE_FAILED;
  bool better = true;
  while (i && (item = iterate_next(b, i)).kind) {
    key = key_of(b, item, a[1], arguments_truth(a[0], false), VALUE_FAILED);
    if (!key.kind || (best.kind && !compare_values(b, is, key, best_key, &better)))
      return VALUE_FAILED;
    if (better) best = item, best_key = key;
  }
  if (best.kind || b->e->status) return b->e->status ? VALUE_FAILED : best;
  return value_hint(b, "No aggregated item, sequence was empty.");
}

static struct value apply_min(struct bounds *b, struct value x, const struct value *a) {
  return extreme(b, x, a, COMPARE_LESS);
}
static struct value apply_max(struct bounds *b, struct value x, const struct value *a) {
  return extreme(b, x, a, COMPARE_GREATER);
}

static struct value apply_sum(struct bounds *b, struct value x, const struct value *a) {
  struct iterator *i = iterate_value(b, x);
  struct value item, sum = a[1].kind ? a[1] : value_integer(0);
  if (sum.kind == VALUE_TEXT)
    return bounds_fail(b, "sum() can't sum strings [use ''.join(seq) instead]"), VALUE_FAILED;
  while (i && (item = iterate_next(b, i)).kind) {
    item = attribute_path(b, item, a[0], VALUE_FAILED);
    if (!item.kind) return item;
    sum = arithmetic_values(b, ARITHMETIC_ADD, sum, item);
    if (!sum.kind) return sum;
  }
  return b->e->status ? VALUE_FAILED : sum;
}

struct unique {
  struct value seen, path; /* a dict of keys */
  bool case_matters;
};

static struct value next_unique(struct bounds *b, struct iterator *i) {
  const struct unique *u = i->how;
  struct value item;
  while ((item = iterate_next(b, i->from)).kind) {
    const struct value key = key_of(b, item, u->path, u->case_matters, VALUE_FAILED);
    const size_t count = u->seen.dict->count;
    if (!key.kind || !compare_put(b, u->seen, key, value_none())) return VALUE_FAILED;
    if (u->seen.dict->count > count) break;
  }
  return item;
}

static struct value apply_unique(struct bounds *b, struct value x, const struct value *a) {
  struct unique *u = bounds_alloc(b, sizeof *u);
  if (!u) return VALUE_FAILED;
  *u = (struct unique){value_dict(b, VALUE_DICT), a[1], arguments_truth(a[0], false)};
  return u->seen.kind ? iterate_lazily(b, next_unique, iterate_value(b, x), u) : VALUE_FAILED;
}

/* --- groups of a size --- */

static bool fill(struct bounds *b, struct value list, int64_t count, struct value with) {
  if (!with.kind || with.kind == VALUE_NONE) return true;
  for (int64_t i = 0; i < count; i++)
    if (!value_append(b, list, with)) return false;
  return true;
}

static struct value apply_batch(struct bounds *b, struct value x, const struct value *a) {
  const struct value all = list_of(b, x), out = value_list(b, VALUE_LIST);
  int64_t size;
  if (!all.kind || !out.kind || !arguments_integer(b, a[0], 0, &size)) return VALUE_FAILED;
  struct value some = VALUE_FAILED;
  for (size_t i = 0; i < all.list->count; i++) {
    if (!some.kind || (int64_t)some.list->count == size) {
      some = value_list(b, VALUE_LIST);
      if (!some.kind || !value_append(b, out, some)) return VALUE_FAILED;
    }
    if (!value_append(b, some, all.list->item[i])) return VALUE_FAILED;
  }
  if (some.kind && !fill(b, some, size - (int64_t)some.list->count, a[1])) return VALUE_FAILED;
  struct iterator *i = iterate_value(b, out);
  return i ? (struct value){.kind = VALUE_ITERATOR, .iterator = i} : VALUE_FAILED;
}

static struct value apply_slice(struct bounds *b, struct value x, const struct value *a) {
  const struct value all = list_of(b, x), out = value_list(b, VALUE_LIST);
  int64_t slices;
  if (!all.kind || !out.kind || !arguments_integer(b, a[0], 0, &slices)) return VALUE_FAILED;
  if (slices == 0) return bounds_fail(b, "division by zero"), VALUE_FAILED;
  const int64_t count = (int64_t)all.list->count, extra = slices > 0 ? count % slices : 0;
  for (int64_t i = 0, at = 0; i < slices; i++) {
    const struct value some = value_list(b, VALUE_LIST);
    const int64_t end = at + count / slices + (i < extra);
    if (!some.kind || !value_append(b, out, some)) return VALUE_FAILED;
    for (; at < end; at++)
      if (!value_append(b, some, all.list->item[at])) return VALUE_FAILED;
    if (i >= extra && !fill(b, some, 1, a[1])) return VALUE_FAILED;
  }
  struct iterator *i = iterate_value(b, out);
  return i ? (struct value){.kind = VALUE_ITERATOR, .iterator = i} : VALUE_FAILED;
}

/* --- all --- */

#define FILTER(name, ...)                \
  {                                      \
#name, apply_##name, { __VA_ARGS__ } \
  }

static const struct filter filters[] = {
    FILTER(length, {0}, 0),
    {"count", apply_length, {{0}, 0}},
    FILTER(list, {0}, 0),
    FILTER(first, {0}, 0),
    FILTER(last, {0}, 0),
    FILTER(reverse, {0}, 0),
    FILTER(items, {0}, 0),
    FILTER(attr, {"name"}, 1),
    FILTER(default, {"default_value", "boolean"}, 0),
    {"d", apply_default, {{"default_value", "boolean"}, 0}},
    FILTER(join, {"d", "attribute"}, 0),
    FILTER(sort, {"reverse", "case_sensitive", "attribute"}, 0),
    FILTER(dictsort, {"case_sensitive", "by", "reverse"}, 0),
    FILTER(groupby, {"attribute", "default", "case_sensitive"}, 1),
    FILTER(min, {"case_sensitive", "attribute"}, 0),
    FILTER(max, {"case_sensitive", "attribute"}, 0),
    FILTER(sum, {"attribute", "start"}, 0),
    FILTER(unique, {"case_sensitive", "attribute"}, 0),
    FILTER(batch, {"linecount", "fill_with"}, 1),
    FILTER(slice, {"slices", "fill_with"}, 1),
};

const struct filter *filter_list_find(const char *name) {
  for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
    if (strcmp(filters[i].name, name) == 0) return &filters[i];
  return NULL;
}
