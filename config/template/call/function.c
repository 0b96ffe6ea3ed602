/* function: the functions that every template can call. */
#include "config/template/call/function.h"

#include <string.h>

#include "config/template/value/compare.h"
#include "config/template/value/iterate.h"
#include "config/template/value/print.h"

enum { RANGE_MAX = 100000 }; /* numbers of a range, as in Jinja's sandbox */

static struct value call_range(struct bounds *b, const struct format_time *now,
                               const struct arguments *a) {
  int64_t start = 0, stop = 0, step = 1;
  size_t length;
  (void)now;
  if (a->positions < 1 || a->positions > 3 || a->names)
    return bounds_fail(b, "range takes 1 to 3 arguments"), VALUE_FAILED;
  const struct value *p = a->position;
  const bool one = a->positions == 1;
  if ((!one && !arguments_integer(b, p[0], 0, &start)) ||
      !arguments_integer(b, p[!one], 0, &stop) ||
      (a->positions == 3 && !arguments_integer(b, p[2], 1, &step)))
    return VALUE_FAILED;
  if (step == 0) return bounds_fail(b, "range() arg 3 must not be zero"), VALUE_FAILED;
  const struct value range = value_range(b, start, stop, step);
  if (range.kind && value_items(range, &length) && length > RANGE_MAX)
    return bounds_fail(b, "a range has at most %d numbers, not %zu", RANGE_MAX, length),
           VALUE_FAILED;
  return range;
}

/* Puts the pairs of a dict, or of an iterable of pairs, into a dict. */
static bool put_pairs(struct bounds *b, struct value to, struct value from) {
  size_t length;
  if (from.kind == VALUE_DICT) from.kind = VALUE_VIEW, from.part = VALUE_ITEMS;
  struct iterator *i = iterate_value(b, from);
  struct value pair;
  while (i && (pair = iterate_next(b, i)).kind) {
    if ((pair.kind != VALUE_TUPLE && pair.kind != VALUE_LIST) || !value_items(pair, &length) ||
        length != 2)
      return bounds_fail(b, "a dict is made of pairs of a key and a value");
    if (!compare_put(b, to, value_at(pair, 0), value_at(pair, 1))) return false;
  }
  return !b->e->status;
}

static struct value dict_of(struct bounds *b, const struct arguments *a, enum value_kind kind) {
  const struct value dict = value_dict(b, kind);
  if (a->positions > 1) return bounds_fail(b, "at most 1 argument is expected"), VALUE_FAILED;
  if (!dict.kind || (a->positions && !put_pairs(b, dict, a->position[0]))) return VALUE_FAILED;
  for (size_t i = 0; i < a->names; i++)
    if (!compare_put(b, dict, a->name[i], a->named[i])) return VALUE_FAILED;
  return dict;
}

static struct value call_dict(struct bounds *b, const struct format_time *now,
                              const struct arguments *a) {
  (void)now;
  return dict_of(b, a, VALUE_DICT);
}
static struct value call_namespace(struct bounds *b, const struct format_time *now,
                                   const struct arguments *a) {
  (void)now;
  return dict_of(b, a, VALUE_NAMESPACE);
}

static struct value call_raise(struct bounds *b, const struct format_time *now,
                               const struct arguments *a) {
  static const struct arguments_wanted wanted = {{"message"}, 1};
  struct value bound[ARGUMENTS_MOST];
  (void)now;
  if (!arguments_bind(b, "raise_exception", a, &wanted, bound)) return VALUE_FAILED;
  const struct value message = print_text(b, bound[0]);
  if (message.kind)
    bounds_fail(b, "%.*s",
                (int)(message.length < ERROR_DETAIL_SIZE ? message.length : ERROR_DETAIL_SIZE),
                message.text);
  return VALUE_FAILED;
}

static struct value call_strftime(struct bounds *b, const struct format_time *now,
                                  const struct arguments *a) {
  static const struct arguments_wanted wanted = {{"format"}, 1};
  struct value bound[ARGUMENTS_MOST], format;
  if (!arguments_bind(b, "strftime_now", a, &wanted, bound) ||
      !arguments_text(b, bound[0], bound[0], &format))
    return VALUE_FAILED;
  return format_time(b, format, now);
}

static const struct function {
  const char *name;
  struct value (*call)(struct bounds *b, const struct format_time *now, const struct arguments *a);
} functions[] = {{"range", call_range},
                 {"dict", call_dict},
                 {"namespace", call_namespace},
                 {"raise_exception", call_raise},
                 {"strftime_now", call_strftime}};

struct value function_find(const char *name) {
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (strcmp(functions[i].name, name) == 0)
      return (struct value){.kind = VALUE_FUNCTION, .object = &functions[i]};
  return VALUE_FAILED;
}

struct value function_call(struct bounds *b, struct value function, const struct format_time *now,
                           const struct arguments *a) {
  return ((const struct function *)function.object)->call(b, now, a);
}
