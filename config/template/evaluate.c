/* evaluate: the value of an expression, and the variables that it names. */
#include "config/template/evaluate.h"

#include <string.h>

#include "config/template/call/attribute.h"
#include "config/template/call/filter.h"
#include "config/template/call/function.h"
#include "config/template/call/method.h"
#include "config/template/call/test.h"
#include "config/template/value/arithmetic.h"
#include "config/template/value/compare.h"
#include "config/template/value/iterate.h"
#include "config/template/value/print.h"

/* --- variables --- */

bool evaluate_enter(struct evaluate *r) {
  struct evaluate_scope *scope = bounds_alloc(&r->b, sizeof *scope);
  if (!scope) return false;
  *scope = (struct evaluate_scope){.outer = r->scope};
  r->scope = scope;
  return true;
}

void evaluate_clear(struct evaluate *r) {
  for (struct evaluate_variable *v = r->scope->first; v; v = v->next) v->value = VALUE_FAILED;
}

bool evaluate_set(struct evaluate *r, struct value name, struct value value) {
  struct evaluate_variable *v = r->scope->first;
  size_t steps = 1;
  for (; v && v->name.text != name.text; v = v->next) steps++;
  if (!bounds_step(&r->b, steps)) return false;
  if (!v) {
    v = bounds_alloc(&r->b, sizeof *v);
    if (!v) return false;
    *v = (struct evaluate_variable){.name = name, .next = r->scope->first};
    r->scope->first = v;
  }
  v->value = value;
  return true;
}

/* A name of the template occurs in one place of memory; those of the outermost variables do not. */
static struct value variable(struct evaluate *r, struct value name) {
  size_t steps = 1;
  for (const struct evaluate_scope *s = r->scope; s; s = s->outer, steps++)
    for (const struct evaluate_variable *v = s->first; v; v = v->next, steps++)
      if (v->name.text == name.text && v->value.kind)
        return bounds_step(&r->b, steps) ? v->value : VALUE_FAILED;
  if (!bounds_step(&r->b, steps) || !bounds_text(&r->b, name.length)) return VALUE_FAILED;
  const json_t *given = json_object_get(r->variables, name.text);
  if (given) return value_of_json(given);
  const struct value function = function_find(name.text);
  return function.kind ? function : value_undefined(&r->b, name, VALUE_FAILED);
}

/* --- calls --- */

static bool add_named(struct bounds *b, struct value names, struct value values, struct value name,
                      struct value value) {
  return value_append(b, names, name) && value_append(b, values, value);
}

/* Adds *list, and **dict. */
static bool add_unpacked(struct evaluate *r, const struct node_arguments *a, struct value position,
                         struct value name, struct value named) {
  struct bounds *b = &r->b;
  struct value item;
  if (a->list) {
    const struct value list = evaluate_expression(r, a->list);
    struct iterator *i = list.kind ? iterate_value(b, list) : NULL;
    while (i && (item = iterate_next(b, i)).kind)
      if (!value_append(b, position, item)) return false;
    if (b->e->status) return false;
  }
  if (!a->dict) return true;
  struct value dict = evaluate_expression(r, a->dict);
  if (!dict.kind) return false;
  if (dict.kind != VALUE_DICT)
    return bounds_fail(b, "argument after ** must be a mapping, not %s", value_type(dict));
  dict.kind = VALUE_VIEW, dict.part = VALUE_ITEMS;
  struct iterator *i = iterate_value(b, dict);
  while (i && (item = iterate_next(b, i)).kind) {
    if (value_at(item, 0).kind != VALUE_TEXT) return bounds_fail(b, "keywords must be strings");
    if (!add_named(b, name, named, value_at(item, 0), value_at(item, 1))) return false;
  }
  return !b->e->status;
}

/* The values of arguments, and a caller if there is one. */
static bool evaluate_arguments(struct evaluate *r, const struct node_arguments *a,
                               struct value caller, struct arguments *out) {
  struct bounds *b = &r->b;
  *out = (struct arguments){0};
  const bool simple = !a->list && !a->dict && !caller.kind;
  if (simple && a->positions + a->names == 0) return true;
  const struct value position = value_list(b, VALUE_LIST), name = value_list(b, VALUE_LIST),
                     named = value_list(b, VALUE_LIST);
  if (!position.kind || !name.kind || !named.kind) return false;
  for (size_t i = 0; i < a->positions; i++) {
    const struct value v = evaluate_expression(r, a->positional[i]);
    if (!v.kind || !value_append(b, position, v)) return false;
  }
  for (size_t i = 0; i < a->names; i++) {
    const struct value v = evaluate_expression(r, a->named[i]);
    if (!v.kind || !add_named(b, name, named, a->name[i], v)) return false;
  }
  if (!add_unpacked(r, a, position, name, named)) return false;
  if (caller.kind && !add_named(b, name, named, value_word("caller"), caller)) return false;
  *out = (struct arguments){position.list->item, position.list->count, name.list->item,
                            named.list->item, name.list->count};
  return true;
}

struct value evaluate_call(struct evaluate *r, const struct node *call, struct value caller) {
  struct bounds *b = &r->b;
  struct arguments a;
  const struct value callee = evaluate_expression(r, call->x);
  if (!callee.kind || !evaluate_arguments(r, call->arguments, caller, &a)) return VALUE_FAILED;
  b->at = call->at;
  switch (callee.kind) {
  case VALUE_FUNCTION:
    return function_call(b, callee, r->now, &a);
  case VALUE_METHOD:
    return method_call(b, callee, &a);
  case VALUE_MACRO:
    return r->call_macro(r, callee, &a);
  case VALUE_LOOP:
    return r->call_loop(r, callee, &a);
  case VALUE_UNDEFINED:
    return value_fail_undefined(b, callee);
  default:
    return bounds_fail(b, "'%s' object is not callable", value_type(callee)), VALUE_FAILED;
  }
}

static struct value apply_filter(struct evaluate *r, const struct node *n, struct value x) {
  struct arguments a;
  if (!x.kind || !evaluate_arguments(r, n->arguments, VALUE_FAILED, &a)) return VALUE_FAILED;
  r->b.at = n->at;
  return filter_apply(&r->b, n->value, x, &a);
}

struct value evaluate_filters(struct evaluate *r, const struct node *filters, struct value x) {
  if (!filters) return x;
  if (!bounds_enter(&r->b)) return VALUE_FAILED;
  if (filters->x) x = evaluate_filters(r, filters->x, x);
  x = apply_filter(r, filters, x);
  bounds_leave(&r->b);
  return x;
}

static struct value apply_test(struct evaluate *r, const struct node *n, struct value x) {
  struct arguments a;
  bool holds = false;
  if (!x.kind || !evaluate_arguments(r, n->arguments, VALUE_FAILED, &a)) return VALUE_FAILED;
  r->b.at = n->at;
  return test_apply(&r->b, n->value, x, &a, &holds) ? value_bool(holds) : VALUE_FAILED;
}

/* --- operators --- */

static struct value evaluate_arithmetic(struct evaluate *r, const struct node *n) {
  const struct value x = evaluate_expression(r, n->x),
                     y = x.kind ? evaluate_expression(r, n->y) : x;
  if (!y.kind) return y;
  r->b.at = n->at;
  if (n->operator== ARITHMETIC_REMAINDER && x.kind == VALUE_TEXT) return format_values(&r->b, x, y);
  return arithmetic_values(&r->b, n->operator, x, y);
}

static struct value evaluate_concatenation(struct evaluate *r, const struct node *n) {
  struct buffer text = {0};
  for (size_t i = 0; i < n->count; i++) {
    const struct value v = evaluate_expression(r, n->item[i]);
    r->b.at = n->at;
    if (!v.kind || !print_value(&r->b, &text, v)) return VALUE_FAILED;
  }
  return buffer_value(&r->b, &text);
}

/* x < y < z: each pair, up to the first that does not hold. */
static struct value evaluate_comparison(struct evaluate *r, const struct node *n) {
  struct value x = evaluate_expression(r, n->x);
  bool holds = true;
  for (size_t i = 0; x.kind && holds && i < n->count; i++) {
    const struct value y = evaluate_expression(r, n->item[i]);
    const enum compare_operator is = n->operators[i];
    r->b.at = n->at;
    if (!y.kind) return y;
    if (is != COMPARE_IN && is != COMPARE_NOT_IN) {
      if (!compare_values(&r->b, is, x, y, &holds)) return VALUE_FAILED;
    } else {
      if (!test_contains(&r->b, y, x, &holds)) return VALUE_FAILED;
      holds = holds == (is == COMPARE_IN);
    }
    x = y;
  }
  return x.kind ? value_bool(holds) : x;
}

static struct value evaluate_condition(struct evaluate *r, const struct node *n) {
  const struct value condition = evaluate_expression(r, n->y);
  if (!condition.kind) return condition;
  if (value_truth(condition)) return evaluate_expression(r, n->x);
  if (n->z) return evaluate_expression(r, n->z);
  return value_hint(&r->b, "the inline if-expression evaluated to false and no else section was "
                           "defined.");
}

/* --- what makes values --- */

static struct value evaluate_items(struct evaluate *r, const struct node *n, enum value_kind kind) {
  const struct value list = value_list(&r->b, kind);
  for (size_t i = 0; list.kind && i < n->count; i++) {
    const struct value item = evaluate_expression(r, n->item[i]);
    if (!item.kind || !value_append(&r->b, list, item)) return VALUE_FAILED;
  }
  return list;
}

static struct value evaluate_dict(struct evaluate *r, const struct node *n) {
  const struct value dict = value_dict(&r->b, VALUE_DICT);
  for (size_t i = 0; dict.kind && i < n->count; i += 2) {
    const struct value key = evaluate_expression(r, n->item[i]),
                       value = key.kind ? evaluate_expression(r, n->item[i + 1]) : key;
    r->b.at = n->item[i]->at;
    if (!value.kind || !compare_put(&r->b, dict, key, value)) return VALUE_FAILED;
  }
  return dict;
}

static struct value evaluate_slice(struct evaluate *r, const struct node *n, struct value x) {
  struct value bound[3];
  for (size_t i = 0; i < 3; i++) {
    bound[i] = n->item[i] ? evaluate_expression(r, n->item[i]) : VALUE_FAILED;
    if (n->item[i] && !bound[i].kind) return VALUE_FAILED;
  }
  r->b.at = n->at;
  return attribute_slice(&r->b, x, bound);
}

static struct value evaluate_item(struct evaluate *r, const struct node *n, struct value x) {
  const struct value key = evaluate_expression(r, n->y);
  r->b.at = n->at;
  return key.kind ? attribute_item(&r->b, x, key) : key;
}

/* --- all --- */

/* Expressions of a value that is evaluated first. */
static struct value evaluate_part(struct evaluate *r, const struct node *n) {
  const struct value x = evaluate_expression(r, n->x);
  if (!x.kind) return x;
  r->b.at = n->at;
  switch (n->kind) {
  case NODE_ATTRIBUTE:
    return attribute_get(&r->b, x, n->value);
  case NODE_ITEM:
    return evaluate_item(r, n, x);
  case NODE_SLICE:
    return evaluate_slice(r, n, x);
  case NODE_FILTER:
    return apply_filter(r, n, x);
  case NODE_TEST:
    return apply_test(r, n, x);
  case NODE_AND:
    return value_truth(x) ? evaluate_expression(r, n->y) : x;
  case NODE_OR:
    return value_truth(x) ? x : evaluate_expression(r, n->y);
  case NODE_NOT:
    return value_bool(!value_truth(x));
  case NODE_NEGATE:
    return arithmetic_negate(&r->b, x);
  default:
    must(n->kind == NODE_PLUS);
    return arithmetic_plus(&r->b, x);
  }
}

static struct value evaluate_kind(struct evaluate *r, const struct node *n) {
  switch (n->kind) {
  case NODE_CONSTANT:
    return n->value;
  case NODE_NAME:
    return variable(r, n->value);
  case NODE_LIST:
    return evaluate_items(r, n, VALUE_LIST);
  case NODE_TUPLE:
    return evaluate_items(r, n, VALUE_TUPLE);
  case NODE_DICT:
    return evaluate_dict(r, n);
  case NODE_CALL:
    return evaluate_call(r, n, VALUE_FAILED);
  case NODE_ARITHMETIC:
    return evaluate_arithmetic(r, n);
  case NODE_CONCATENATE:
    return evaluate_concatenation(r, n);
  case NODE_COMPARE:
    return evaluate_comparison(r, n);
  case NODE_CONDITION:
    return evaluate_condition(r, n);
  default:
    return evaluate_part(r, n);
  }
}

struct value evaluate_expression(struct evaluate *r, const struct node *n) {
  r->b.at = n->at;
  if (!bounds_step(&r->b, 1) || !bounds_enter(&r->b)) return VALUE_FAILED;
  const struct value v = evaluate_kind(r, n);
  bounds_leave(&r->b);
  return v;
}
