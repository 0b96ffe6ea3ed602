/* filter: the filters of templates, by name. */
#include "config/template/call/filter.h"

#include <string.h>

#include "config/template/call/attribute.h"
#include "config/template/call/filter_table.h"
#include "config/template/call/format.h"
#include "config/template/call/test.h"
#include "config/template/value/compare.h"
#include "config/template/value/iterate.h"
#include "config/template/value/print.h"

static const struct filter *find_filter(const char *name) {
  const struct filter *text = filter_text_find(name);
  return text ? text : filter_list_find(name);
}

/* --- filters that apply others to each item --- */

struct picking {
  struct value name, attribute, otherwise; /* of the filter or test, MISSING: none; a path */
  struct arguments arguments;
  bool negated;
};

static struct value next_mapped(struct bounds *b, struct iterator *i) {
  const struct picking *p = i->how;
  const struct value item = iterate_next(b, i->from);
  if (!item.kind) return item;
  return p->name.kind ? filter_apply(b, p->name, item, &p->arguments)
                      : attribute_path(b, item, p->attribute, p->otherwise);
}

static struct value next_selected(struct bounds *b, struct iterator *i) {
  const struct picking *p = i->how;
  struct value item;
  while ((item = iterate_next(b, i->from)).kind) {
    const struct value of = attribute_path(b, item, p->attribute, VALUE_FAILED);
    bool holds = value_truth(of);
    if (!of.kind || (p->name.kind && !test_apply(b, p->name, of, &p->arguments, &holds)))
      return VALUE_FAILED;
    if (holds != p->negated) break;
  }
  return item;
}

static struct value pick_from(struct bounds *b, struct value x, struct picking how,
                              struct value (*next)(struct bounds *b, struct iterator *i)) {
  struct picking *kept = bounds_alloc(b, sizeof *kept);
  if (!kept) return VALUE_FAILED;
  *kept = how;
  if (how.name.kind && how.name.kind != VALUE_TEXT)
    return bounds_fail(b, "the name of a filter or test must be a string"), VALUE_FAILED;
  /* A value that counts as false has no items, even if it cannot be iterated. */
  const struct value items = value_truth(x) ? x : value_list(b, VALUE_LIST);
  return items.kind ? iterate_lazily(b, next, iterate_value(b, items), kept) : items;
}

/* The arguments after the first ones. */
static struct arguments after(const struct arguments *a, size_t count) {
  struct arguments rest = *a;
  rest.position += count;
  rest.positions -= count;
  return rest;
}

static struct value apply_map(struct bounds *b, struct value x, const struct arguments *a) {
  struct picking how = {0};
  if (!value_truth(x)) return pick_from(b, x, how, next_mapped);
  if (a->positions > 0) {
    how.name = a->position[0];
    how.arguments = after(a, 1);
    return pick_from(b, x, how, next_mapped);
  }
  for (size_t i = 0; i < a->names; i++) {
    const bool attribute = strcmp(a->name[i].text, "attribute") == 0;
    if (!attribute && strcmp(a->name[i].text, "default") != 0)
      return bounds_fail(b, "Unexpected keyword argument '%.80s'", a->name[i].text), VALUE_FAILED;
    *(attribute ? &how.attribute : &how.otherwise) = a->named[i];
  }
  if (!how.attribute.kind) return bounds_fail(b, "map requires a filter argument"), VALUE_FAILED;
  return pick_from(b, x, how, next_mapped);
}

static struct value select_from(struct bounds *b, struct value x, const struct arguments *a,
                                bool attribute, bool negated) {
  struct picking how = {.negated = negated};
  if (!value_truth(x)) return pick_from(b, x, how, next_selected);
  if (attribute && a->positions == 0)
    return bounds_fail(b, "Missing parameter for attribute name"), VALUE_FAILED;
  if (attribute) how.attribute = a->position[0];
  if (a->positions > attribute) {
    how.name = a->position[attribute];
    how.arguments = after(a, 1 + (size_t)attribute);
  }
  return pick_from(b, x, how, next_selected);
}

static struct value apply_select(struct bounds *b, struct value x, const struct arguments *a) {
  return select_from(b, x, a, false, false);
}
static struct value apply_reject(struct bounds *b, struct value x, const struct arguments *a) {
  return select_from(b, x, a, false, true);
}
static struct value apply_selectattr(struct bounds *b, struct value x, const struct arguments *a) {
  return select_from(b, x, a, true, false);
}
static struct value apply_rejectattr(struct bounds *b, struct value x, const struct arguments *a) {
  return select_from(b, x, a, true, true);
}

/* --- a format, with any arguments --- */

static struct value apply_format(struct bounds *b, struct value x, const struct arguments *a) {
  const struct value text = print_text(b, x), values = value_dict(b, VALUE_DICT),
                     list = value_list(b, VALUE_TUPLE);
  if (!text.kind || !values.kind || !list.kind) return VALUE_FAILED;
  if (a->positions && a->names)
    return bounds_fail(b, "can't handle positional and keyword arguments at the same time"),
           VALUE_FAILED;
  for (size_t i = 0; i < a->names; i++)
    if (!compare_put(b, values, a->name[i], a->named[i])) return VALUE_FAILED;
  for (size_t i = 0; i < a->positions; i++)
    if (!value_append(b, list, a->position[i])) return VALUE_FAILED;
  return format_values(b, text, a->names ? values : list);
}

/* --- all --- */

static const struct filter_of_all {
  const char *name;
  struct value (*apply)(struct bounds *b, struct value x, const struct arguments *a);
} filters[] = {{"map", apply_map},
               {"select", apply_select},
               {"reject", apply_reject},
               {"selectattr", apply_selectattr},
               {"rejectattr", apply_rejectattr},
               {"format", apply_format}};
enum { FILTERS = sizeof filters / sizeof *filters };

struct value filter_apply(struct bounds *b, struct value name, struct value x,
                          const struct arguments *a) {
  struct value bound[ARGUMENTS_MOST];
  for (size_t i = 0; i < FILTERS; i++)
    if (strcmp(filters[i].name, name.text) == 0) return filters[i].apply(b, x, a);
  const struct filter *f = find_filter(name.text);
  if (!f) return bounds_fail(b, "No filter named '%.80s'.", name.text), VALUE_FAILED;
  return arguments_bind(b, f->name, a, &f->wanted, bound) ? f->apply(b, x, bound) : VALUE_FAILED;
}
