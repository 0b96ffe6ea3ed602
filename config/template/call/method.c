/* method: the methods of texts, lists, dicts and of the variable `loop`. */
#include "config/template/call/method.h"

#include <string.h>

#include "config/template/call/loop.h"
#include "config/template/call/method_text.h"
#include "config/template/value/compare.h"

struct method_bound {
  const struct method_row *method;
  struct value self;
};

/* --- dicts --- */

static struct value dict_get(struct bounds *b, struct value self, const struct value *a) {
  if (!value_is_hashable(b, a[0]))
    return bounds_fail(b, "unhashable type: '%s'", value_type(a[0])), VALUE_FAILED;
  const struct value found = compare_find(b, self, a[0]);
  if (found.kind || b->e->status) return found;
  return a[1].kind ? a[1] : value_none();
}

static struct value dict_view(struct value self, enum value_part part) {
  self.kind = VALUE_VIEW;
  self.part = part;
  return self;
}

static struct value dict_items(struct bounds *b, struct value self, const struct value *a) {
  (void)b, (void)a;
  return dict_view(self, VALUE_ITEMS);
}

static struct value dict_keys(struct bounds *b, struct value self, const struct value *a) {
  (void)b, (void)a;
  return dict_view(self, VALUE_KEYS);
}

static struct value dict_values(struct bounds *b, struct value self, const struct value *a) {
  (void)b, (void)a;
  return dict_view(self, VALUE_VALUES);
}

/* Nothing changes a value: it is its own copy. */
static struct value copy_of(struct bounds *b, struct value self, const struct value *a) {
  (void)b, (void)a;
  return self;
}

/* --- lists --- */

static struct value list_index(struct bounds *b, struct value self, const struct value *a) {
  size_t count;
  value_items(self, &count);
  for (size_t i = 0; i < count && bounds_step(b, 1); i++)
    if (compare_equal(b, value_at(self, i), a[0])) return value_integer((int64_t)i);
  bounds_fail(b, "the value is not in the list");
  return VALUE_FAILED;
}

static struct value list_count(struct bounds *b, struct value self, const struct value *a) {
  size_t count, found = 0;
  value_items(self, &count);
  for (size_t i = 0; i < count && bounds_step(b, 1); i++)
    found += compare_equal(b, value_at(self, i), a[0]);
  return b->e->status ? VALUE_FAILED : value_integer((int64_t)found);
}

/* --- the variable `loop` --- */

static struct value loop_cycle(struct bounds *b, struct value self, const struct arguments *a) {
  const struct loop *l = self.object;
  if (a->positions == 0) return bounds_fail(b, "no items for cycling given"), VALUE_FAILED;
  return a->position[(size_t)l->index0 % a->positions];
}

static struct value loop_changed(struct bounds *b, struct value self, const struct arguments *a) {
  struct loop *l = (struct loop *)self.object;
  const struct value now = value_list(b, VALUE_TUPLE);
  for (size_t i = 0; now.kind && i < a->positions; i++)
    if (!value_append(b, now, a->position[i])) return VALUE_FAILED;
  if (!now.kind) return now;
  const bool same = l->changed.kind && compare_equal(b, l->changed, now);
  l->changed = now;
  return b->e->status ? VALUE_FAILED : value_bool(!same);
}

/* --- all --- */

static const struct method_row others[] = {
    {VALUE_DICT, "get", .apply = dict_get, .wanted = {{"-", "-"}, 1}},
    {VALUE_DICT, "items", .apply = dict_items},
    {VALUE_DICT, "keys", .apply = dict_keys},
    {VALUE_DICT, "values", .apply = dict_values},
    {VALUE_DICT, "copy", .apply = copy_of},
    {VALUE_LIST, "index", .apply = list_index, .wanted = {{"-"}, 1}},
    {VALUE_LIST, "count", .apply = list_count, .wanted = {{"-"}, 1}},
    {VALUE_LIST, "copy", .apply = copy_of},
    {VALUE_TUPLE, "index", .apply = list_index, .wanted = {{"-"}, 1}},
    {VALUE_TUPLE, "count", .apply = list_count, .wanted = {{"-"}, 1}},
    {VALUE_LOOP, "cycle", .apply_all = loop_cycle},
    {VALUE_LOOP, "changed", .apply_all = loop_changed},
};

/* Methods of lists and dicts that change them; for these, the sandbox has nothing. */
static bool is_changing(struct value self, const char *name) {
  static const char *const changing[][10] = {
      [VALUE_LIST] = {"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"},
      [VALUE_DICT] = {"clear", "pop", "popitem", "setdefault", "update"}};
  if (self.kind != VALUE_LIST && self.kind != VALUE_DICT) return false;
  for (size_t i = 0; changing[self.kind][i]; i++)
    if (strcmp(changing[self.kind][i], name) == 0) return true;
  return false;
}

struct value method_get(struct bounds *b, struct value self, struct value name) {
  const size_t count = sizeof others / sizeof *others;
  const struct method_row *m = self.kind == VALUE_TEXT ? method_text_find(name.text) : NULL;
  for (size_t i = 0; !m && i < count; i++)
    if (others[i].of == self.kind && strcmp(others[i].name, name.text) == 0) m = &others[i];
  if (is_changing(self, name.text)) return value_unsafe(b, name, self);
  struct method_bound *bound = m ? bounds_alloc(b, sizeof *bound) : NULL;
  if (!bound) return VALUE_FAILED;
  *bound = (struct method_bound){m, self};
  return (struct value){.kind = VALUE_METHOD, .object = bound};
}

struct value method_call(struct bounds *b, struct value bound, const struct arguments *a) {
  const struct method_bound *m = bound.object;
  struct value bind[ARGUMENTS_MOST];
  if (m->method->apply_all) return m->method->apply_all(b, m->self, a);
  if (!arguments_bind(b, m->method->name, a, &m->method->wanted, bind)) return VALUE_FAILED;
  return m->method->apply(b, m->self, bind);
}
