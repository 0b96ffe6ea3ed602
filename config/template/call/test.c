/* test: the tests of templates, "x is NAME". */
#include "config/template/call/test.h"

#include <string.h>

#include "config/template/value/arithmetic.h"
#include "config/template/value/compare.h"
#include "config/template/value/iterate.h"
#include "config/template/value/letters.h"
#include "config/template/value/print.h"

bool test_contains(struct bounds *b, struct value container, struct value x, bool *holds) {
  *holds = false;
  if (container.kind == VALUE_TEXT) {
    if (x.kind != VALUE_TEXT)
      return bounds_fail(b, "'in <string>' requires string as left operand, not %s", value_type(x));
    if (!bounds_text(b, container.length)) return false;
    *holds = memmem(container.text, container.length, x.text, x.length) != NULL;
    return true;
  }
  if (container.kind == VALUE_DICT) {
    if (!value_is_hashable(b, x)) return bounds_fail(b, "unhashable type: '%s'", value_type(x));
    *holds = compare_find(b, container, x).kind;
    return !b->e->status;
  }
  if (!iterate_can(container))
    return bounds_fail(b, "argument of type '%s' is not iterable", value_type(container));
  struct iterator *i = iterate_value(b, container);
  struct value item;
  while (i && !*holds && (item = iterate_next(b, i)).kind) *holds = compare_equal(b, item, x);
  return !b->e->status;
}

/* --- kinds of values --- */

#define KIND(name, condition)                                                               \
  static bool is_##name(struct bounds *b, struct value x, const struct value *a, bool *h) { \
    (void)b, (void)x, (void)a;                                                              \
    *h = condition;                                                                         \
    return true;                                                                            \
  }
KIND(defined, x.kind != VALUE_UNDEFINED)
KIND(undefined, x.kind == VALUE_UNDEFINED)
KIND(none, x.kind == VALUE_NONE)
KIND(boolean, x.kind == VALUE_BOOL)
KIND(true, x.kind == VALUE_BOOL && x.truth)
KIND(false, x.kind == VALUE_BOOL && !x.truth)
KIND(integer, x.kind == VALUE_INTEGER)
KIND(float, x.kind == VALUE_REAL)
KIND(number, value_is_number(x))
KIND(string, x.kind == VALUE_TEXT)
KIND(mapping, x.kind == VALUE_DICT)
KIND(iterable, iterate_can(x))
KIND(sequence, x.kind == VALUE_TEXT || x.kind == VALUE_LIST || x.kind == VALUE_TUPLE ||
                   x.kind == VALUE_DICT || x.kind == VALUE_RANGE || x.kind == VALUE_UNDEFINED)
KIND(callable, x.kind == VALUE_MACRO || x.kind == VALUE_METHOD || x.kind == VALUE_FUNCTION ||
                   x.kind == VALUE_LOOP || x.kind == VALUE_UNDEFINED)
KIND(escaped, false)

static bool are_letters(struct bounds *b, struct value x, enum letters_class is, bool *holds) {
  const struct value text = print_text(b, x);
  return text.kind && letters_are(b, text, is, holds);
}

static bool is_lower(struct bounds *b, struct value x, const struct value *a, bool *holds) {
  (void)a;
  return are_letters(b, x, LETTERS_ARE_LOWER, holds);
}
static bool is_upper(struct bounds *b, struct value x, const struct value *a, bool *holds) {
  (void)a;
  return are_letters(b, x, LETTERS_ARE_UPPER, holds);
}

/* --- numbers and comparisons --- */

static bool has_remainder(struct bounds *b, struct value x, struct value by, int64_t remainder,
                          bool *holds) {
  const struct value left = arithmetic_values(b, ARITHMETIC_REMAINDER, x, by);
  return left.kind && compare_values(b, COMPARE_EQUAL, left, value_integer(remainder), holds);
}

static bool is_odd(struct bounds *b, struct value x, const struct value *a, bool *holds) {
  (void)a;
  return has_remainder(b, x, value_integer(2), 1, holds);
}
static bool is_even(struct bounds *b, struct value x, const struct value *a, bool *holds) {
  (void)a;
  return has_remainder(b, x, value_integer(2), 0, holds);
}
static bool is_divisibleby(struct bounds *b, struct value x, const struct value *a, bool *holds) {
  return has_remainder(b, x, a[0], 0, holds);
}

#define COMPARE(name, operator)                                                                 \
  static bool is_##name(struct bounds *b, struct value x, const struct value *a, bool *holds) { \
    return compare_values(b, operator, x, a[0], holds);                                         \
  }
COMPARE(eq, COMPARE_EQUAL)
COMPARE(ne, COMPARE_UNEQUAL)
COMPARE(lt, COMPARE_LESS)
COMPARE(le, COMPARE_LESS_EQUAL)
COMPARE(gt, COMPARE_GREATER)
COMPARE(ge, COMPARE_GREATER_EQUAL)

static bool is_in(struct bounds *b, struct value x, const struct value *a, bool *holds) {
  return test_contains(b, a[0], x, holds);
}

/* The same object: of values without parts, an equal one of the same kind. */
static bool is_sameas(struct bounds *b, struct value x, const struct value *a, bool *holds) {
  const bool same_kind = x.kind == a[0].kind;
  *holds = same_kind && (x.kind == VALUE_NONE || x.kind == VALUE_BOOL || x.kind == VALUE_INTEGER
                             ? compare_equal(b, x, a[0])
                             : x.object == a[0].object);
  return true;
}

/* --- all --- */

#define TEST(name, argument) \
  { #name, is_##name, argument }

static const struct template_test {
  const char *name;
  bool (*holds)(struct bounds *b, struct value x, const struct value *a, bool *holds);
  const char *argument; /* NULL: none */
} tests[] = {TEST(defined, NULL),
             TEST(undefined, NULL),
             TEST(none, NULL),
             TEST(boolean, NULL),
             TEST(true, NULL),
             TEST(false, NULL),
             TEST(integer, NULL),
             TEST(float, NULL),
             TEST(number, NULL),
             TEST(string, NULL),
             TEST(mapping, NULL),
             TEST(iterable, NULL),
             TEST(sequence, NULL),
             TEST(callable, NULL),
             TEST(escaped, NULL),
             TEST(lower, NULL),
             TEST(upper, NULL),
             TEST(odd, NULL),
             TEST(even, NULL),
             TEST(divisibleby, "num"),
             TEST(eq, "-"),
             TEST(ne, "-"),
             TEST(lt, "-"),
             TEST(le, "-"),
             TEST(gt, "-"),
             TEST(ge, "-"),
             TEST(in, "seq"),
             TEST(sameas, "other"),
             {"==", is_eq, "-"},
             {"equalto", is_eq, "-"},
             {"!=", is_ne, "-"},
             {"<", is_lt, "-"},
             {"lessthan", is_lt, "-"},
             {"<=", is_le, "-"},
             {">", is_gt, "-"},
             {"greaterthan", is_gt, "-"},
             {">=", is_ge, "-"}};

static const struct template_test *find_test(const char *name) {
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
    if (strcmp(tests[i].name, name) == 0) return &tests[i];
  return NULL;
}

bool test_apply(struct bounds *b, struct value name, struct value x, const struct arguments *a,
                bool *holds) {
  const struct template_test *t = find_test(name.text);
  struct value bound[ARGUMENTS_MOST];
  if (!t) return bounds_fail(b, "No test named '%.80s'.", name.text);
  const struct arguments_wanted wanted = {.name = {t->argument}, .least = t->argument != NULL};
  return arguments_bind(b, t->name, a, &wanted, bound) && t->holds(b, x, bound, holds);
}
