/* test_template: chat templates: the golden conversations, what fails and where, and the bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/document/file.h"
#include "config/template/template.h"
#include "tests/support/poisoned.h"

#define FOLDER "tests/golden/chat-templates/"

static const struct format_time now = {2026, 11, 28, 9, 5, 7, 0};

struct rendered {
  struct arena arena;
  struct error e;
  const char *text;
  size_t length;
};

static void render_at(const char *source, const json_t *variables, const struct format_time *time,
                      const struct template_limits *limits, struct rendered *r) {
  *r = (struct rendered){.text = NULL};
  arena_init(&r->arena, NULL);
  struct template *t = template_parse(source, strlen(source), limits, &r->e);
  if (t) template_render(t, variables, time, limits, &r->arena, &r->text, &r->length, &r->e);
  assert_int_equal(t == NULL && !r->e.status, 0);
  template_free(t);
}

/* --- the golden conversations --- */

static json_t *read_golden(const char *name) {
  struct error e = {0};
  json_t *json = file_json(name, &e);
  if (!json) fail_msg("%s", e.detail);
  return json;
}

static struct format_time time_of(const json_t *given) {
  struct format_time time = now;
  if (given)
    assert_int_equal(sscanf(json_string_value(given), "%d-%d-%dT%d:%d:%d", &time.year, &time.month,
                            &time.day, &time.hour, &time.minute, &time.second),
                     6);
  return time;
}

/* A message of Python's own is not copied; those of the template and of Jinja are. */
static void check_failure(size_t number, const json_t *one, const struct rendered *r) {
  const char *kind = json_string_value(json_object_get(one, "error")),
             *message = json_string_value(json_object_get(one, "message")),
             *said = strstr(r->e.detail, ": ");
  if (!kind || r->e.status != STATUS_INVALID_REQUEST || !said)
    fail_msg("case %zu: %s", number, r->e.detail);
  if (strcmp(kind, "other") != 0 && strcmp(said + 2, message) != 0)
    fail_msg("case %zu: %s, not %s", number, said + 2, message);
}

static void golden(void **state) {
  json_t *cases = read_golden(FOLDER "cases.json"), *texts = read_golden(FOLDER "templates.json");
  size_t number;
  json_t *one;
  (void)state;
  assert_int_equal(json_array_size(cases), 200);
  json_array_foreach(cases, number, one) {
    struct rendered r;
    const struct format_time time = time_of(json_object_get(one, "now"));
    const char *name = json_string_value(json_object_get(one, "template")),
               *wanted = json_string_value(json_object_get(one, "rendered"));
    /* These are none, if a case has none; other names are undefined. */
    json_t *variables = json_pack("{s:n, s:n}", "tools", "documents");
    assert_int_equal(json_object_update(variables, one), 0);
    json_object_del(variables, "template");
    render_at(json_string_value(json_object_get(texts, name)), variables, &time, &TEMPLATE_LIMITS,
              &r);
    if (r.e.status)
      check_failure(number, one, &r);
    else if (!wanted || r.length != strlen(wanted) || strcmp(r.text, wanted) != 0)
      fail_msg("case %zu: %s, not %s", number, r.text, wanted);
    arena_free(&r.arena);
    json_decref(variables);
  }
  json_decref(cases);
  json_decref(texts);
}

/* --- one template, one text --- */

static const char conversation[] =
    "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi \\u00df\"}, {\"role\": \"tool\", "
    "\"content\": [1, 2.5, null]}], \"n\": 7}";

static void expect(const char *source, const char *text) {
  json_t *variables = json_loads(conversation, 0, NULL);
  struct rendered r;
  render_at(source, variables, &now, &TEMPLATE_LIMITS, &r);
  if (r.e.status) fail_msg("%s: %s", source, r.e.detail);
  assert_string_equal(r.text, text);
  assert_int_equal(r.length, strlen(text));
  arena_free(&r.arena);
  json_decref(variables);
}

static void expressions(void **state) {
  (void)state;
  expect("{{ messages[0].role ~ n ~ none }}", "user7None");
  expect("{{ messages }}", "[{'role': 'user', 'content': 'Hi \u00df'}, {'role': 'tool', 'content': "
                           "[1, 2.5, None]}]");
  expect("{{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** -1 }} {{ 1e16 }} {{ 0.1 + 0.2 }}",
         "-4 2 3.5 0.5 1e+16 0.30000000000000004");
  expect("{{ 'a' 'b' }} {{ 1 < 2 < 3 }} {{ 'x' in 'xyz' not in [false] }}", "ab True True");
  expect("{{ missing }}|{{ missing is defined }}|{{ missing | default('d') }}", "|False|d");
  expect("{{ messages[1].content[::-1] | tojson }}", "[null, 2.5, 1]");
  expect("{{ messages[0].content | upper }} {{ '%s-%05.1f' | format('a', 2.25) }}",
         "HI SS a-002.2");
  expect("{{ strftime_now('%d %b %Y %H:%M:%S') }}", "28 Nov 2026 09:05:07");
  expect("{{ '\x7f~' | tojson(ensure_ascii=true) }}", "\"\\u007f~\"");
  expect("{{ 'abcabcab'.rfind('abc') }} {{ 'aaaa'.rsplit('aa') }} {{ 'ab'.rfind('b', 0, 1) }} "
         "{{ '\u00dfx\u00e9b\u00e9'.strip('\u00e9b\u00df') }}",
         "3 ['', '', ''] -1 x");
  expect("{{ 'a\\u00e9\\x41\\n' | tojson }} {{ '\\'' }}", "\"a\u00e9A\\n\" '");
}

static void statements(void **state) {
  (void)state;
  expect(
      "{% for m in messages %}\n  {% if loop.first %}\n{{ m.role }}\n  {% endif %}\n{% endfor %}\n",
      "user\n");
  expect("{%- set ns = namespace(a=1) -%} {% for i in range(5) %}{% if i == 3 %}{% break %}"
         "{% endif %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}",
         "4");
  expect("{% macro m(a, b=2) %}{{ a }}{{ b }}{{ caller(a) }}{% endmacro %}"
         "{% call(x) m(1) %}<{{ x }}>{% endcall %}",
         "12<1>");
  expect("{% for x in [1, [2, [3]]] recursive %}{{ loop(x) if x is iterable else x }}{% endfor %}",
         "123");
  expect("{% set x %}a{% endset %}{% filter upper %}{{ x }}{% endfilter %}{% generation %}b"
         "{% endgeneration %}{% with y = 1 %}{{ y }}{% endwith %}{{ y }}",
         "Ab1");
  expect("{% for i in range(3) %}{{ x is defined }}{% set x = i %}{{ x }}{% endfor %}",
         "False0False1False2");
  expect("{% for i in [1, 2] recursive %}{% if i == 1 %}{% set y = 'a' %}{{ loop([5]) }}"
         "{% endif %}{{ y }}{{ i }};{% endfor %}",
         "5;a1;2;");
  expect("{# note #}a{% raw %}{{ x }}{% endraw %}", "a{{ x }}");
}

static void fails(const char *source, const char *message) {
  json_t *variables = json_loads(conversation, 0, NULL);
  struct rendered r;
  render_at(source, variables, &now, &TEMPLATE_LIMITS, &r);
  if (strcmp(r.e.detail, message) != 0) fail_msg("%s: %s, not %s", source, r.e.detail, message);
  assert_int_equal(r.e.status, STATUS_INVALID_REQUEST);
  arena_free(&r.arena);
  json_decref(variables);
}

static void places(void **state) {
  (void)state;
  fails("a\n\u00df{{ 1 + }}", "line 2, column 9: unexpected '}}'");
  fails("{{ 'a", "line 1, column 4: the string does not end");
  fails("{{ a", "line 1, column 1: the tag does not end");
  fails("\n{# a", "line 2, column 1: the comment does not end");
  fails("{% raw %}a", "line 1, column 1: the raw block does not end");
  fails("{% if a %}", "line 1, column 11: unexpected end of template: 'elif' is missing");
  fails("{% include 'a' %}", "line 1, column 4: unknown or unsupported tag 'include'");
  fails("{% break %}", "line 1, column 4: this tag needs a loop around it");
  fails("{% set 1 = 2 %}", "line 1, column 8: cannot assign to this expression");
  fails("{{ 9223372036854775808 }}",
        "line 1, column 4: an integer of more than 64 bits is not supported");
  fails("{{ (1] }}", "line 1, column 6: unexpected bracket");
  fails("{{ '\\xq' }}", "line 1, column 4: the string has \\x without 2 digits");
  fails("{{ 9223372036854775807 + 1 }}",
        "line 1, column 24: the result is an integer of more than 64 bits, which is not supported");
  fails("{{ n.a.b }}", "line 1, column 7: 'int object' has no attribute 'a'");
  fails("{{ messages[5].a }}", "line 1, column 15: list object has no element 5");
  fails("{{ a.b }}", "line 1, column 5: 'a' is undefined");
  fails("{{ n // 0 }}", "line 1, column 6: division by zero");
  fails("{{ 'a' + n }}", "line 1, column 8: unsupported operand types for +: 'str' and 'int'");
  fails("{{ messages.append(1) }}",
        "line 1, column 19: access to attribute 'append' of 'list' object is unsafe.");
  fails("{{ n.__class__.x }}",
        "line 1, column 15: access to attribute '__class__' of 'int' object is unsafe.");
  fails("{{ n | nothing }}", "line 1, column 8: No filter named 'nothing'.");
  fails("{{ n is nothing }}", "line 1, column 6: No test named 'nothing'.");
  fails("{{ n() }}", "line 1, column 5: 'int' object is not callable");
  fails("{{ raise_exception('no: ' ~ n) }}", "line 1, column 19: no: 7");
  fails("{% for a, b in [[1]] %}{% endfor %}",
        "line 1, column 16: not enough values to unpack (expected 2, got 1)");
  fails("{{ messages | map('upper') }}",
        "line 1, column 1: an iterator has no text: add the filter \"list\" or \"join\"");
}

/* --- bounds --- */

static void ends_with(const char *source, const struct template_limits *limits,
                      const char *message) {
  json_t *variables = json_object();
  struct rendered r;
  render_at(source, variables, &now, limits, &r);
  if (!strstr(r.e.detail, message)) fail_msg("%s: %s, not %s", source, r.e.detail, message);
  arena_free(&r.arena);
  json_decref(variables);
}

static void bounds(void **state) {
  const struct template_limits small = {
      .source = 1000, .memory = 500000, .output = 100, .steps = 2000, .depth = 50};
  (void)state;
  ends_with("{% for a in range(99999) %}{% endfor %}", &small, "too many steps");
  ends_with("{% for a in range(99) %}{% for b in range(99) %}{% endfor %}{% endfor %}", &small,
            "too many steps");
  ends_with("{% for a in range(99) %}ab{% endfor %}", &small, "writes more than 100 bytes");
  ends_with("{% set a %}{% for a in range(99) %}ab{% endfor %}{% endset %}", &small,
            "writes more than 100 bytes");
  struct template_limits tight = small;
  tight.memory = 5000;
  ends_with("{{ [1] * 900 }}", &tight, "too much memory");
  ends_with("{{ 'a' * 9223372036854775807 }}", &small, "too m");
  ends_with("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", &small, "nested too deeply");
  ends_with("{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}", &small, "nested too deeply");
  ends_with("{{ ((((((((((((((((((((((((((((((1)))))))))))))))))))))))))))))) }}", &small,
            "nested too deeply");
  ends_with("{% set n = namespace(a=[]) %}{% for i in range(90) %}{% set n.a = [n.a] %}{% endfor %}"
            "{{ n.a }}",
            &small, "nested too deeply");
  ends_with(
      "{% set n = namespace(a=[]) %}{% for i in range(90) %}{% set n.a = n.a | map('upper') %}"
      "{% endfor %}{{ n.a | list }}",
      &small, "");
  /* A loop takes as much memory as one of its iterations. */
  ends_with("{% for a in range(99999) %}{% for b in range(99999) %}{% set c = b %}{% endfor %}"
            "{% endfor %}",
            &TEMPLATE_LIMITS, "too many steps");
  char large[2000];
  memset(large, 'a', sizeof large - 1);
  large[sizeof large - 1] = '\0';
  ends_with(large, &small, "the template has 1999 bytes, more than 1000");
}

/* Filters, tests and methods that read a long text take steps for it, before the work. */
static void long_texts(void **state) {
  enum { LONG = 1 << 20, NUMBERS = 20000 };
  static const char *const expressions[] = {"x | length",
                                            "x | wordcount",
                                            "x | truncate",
                                            "x is upper",
                                            "x.isalpha()",
                                            "x.zfill(1)",
                                            "x.center(1)",
                                            "x.partition('b')",
                                            "x.rpartition('b')",
                                            "x.rfind('b')",
                                            "x.rsplit('b')",
                                            "x.splitlines()",
                                            "x in d",
                                            "d[x]",
                                            "d.get(x)",
                                            "d.get((x, l)[0])",
                                            "'b'.strip(x)",
                                            "x.strip('a')",
                                            "'b'.ljust(5, x)",
                                            "'%c' % x",
                                            "x.startswith((x,))",
                                            "x.startswith('b', 1)",
                                            "x.removeprefix(y)",
                                            "x < y",
                                            "l == l",
                                            "x.count('b')",
                                            "strftime_now(z)",
                                            "x in x",
                                            "x.upper()",
                                            "x[5]",
                                            "x[5:6]",
                                            "l.index(-1)",
                                            "d == {1: 2} or e == e"};
  struct template_limits some = TEMPLATE_LIMITS;
  char *text = malloc(LONG + 1);
  json_t *variables = json_pack("{s:o, s:o, s:{}}", "e", json_object(), "l", json_array(), "d");
  (void)state;
  some.steps = 10000;
  text[LONG] = '\0';
  for (size_t i = 0; i < LONG; i++) text[i] = i % 2 ? 'z' : '%';
  json_object_set_new(variables, "z", json_string(text));
  memset(text, 'a', LONG);
  json_object_set_new(variables, "x", json_string(text));
  json_object_set_new(json_object_get(variables, "e"), text, json_null());
  text[LONG - 1] = 'b';
  json_object_set_new(variables, "y", json_string(text));
  for (int i = 0; i < NUMBERS; i++)
    json_array_append_new(json_object_get(variables, "l"), json_integer(i));
  for (size_t i = 0; i < sizeof expressions / sizeof *expressions; i++) {
    char source[100];
    struct rendered r;
    snprintf(source, sizeof source, "{%% if %s %%}{%% endif %%}", expressions[i]);
    render_at(source, variables, &now, &some, &r);
    if (!strstr(r.e.detail, "too many steps")) fail_msg("%s: %s", source, r.e.detail);
    arena_free(&r.arena);
  }
  json_decref(variables);
  free(text);
}

static unsigned questions;

static enum status ask_twice(struct patience *p) {
  p->asked = 0; /* the next question is not too early */
  return ++questions > 2 ? STATUS_DEADLINE : STATUS_OK;
}

static void patience(void **state) {
  struct patience p = {.ask = ask_twice};
  struct template_limits limits = TEMPLATE_LIMITS;
  json_t *variables = json_object();
  struct rendered r;
  (void)state;
  limits.patience = &p;
  render_at("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
            variables, &now, &limits, &r);
  assert_int_equal(r.e.status, STATUS_DEADLINE);
  assert_int_equal(questions, 3);
  arena_free(&r.arena);
  json_decref(variables);
}

/* --- the depth --- */

/* A template of levels: each begins, and, in their middle, ends. */
static void check_levels(const char *first, const char *begin, const char *middle, const char *end,
                         const char *last, int levels, bool fits) {
  const size_t size = strlen(first) + strlen(middle) + strlen(last) + 1 +
                      (size_t)levels * (strlen(begin) + strlen(end));
  char *source = malloc(size), *at = stpcpy(source, first);
  json_t *variables = json_object();
  struct rendered r;
  for (int i = 0; i < levels; i++) at = stpcpy(at, begin);
  at = stpcpy(at, middle);
  for (int i = 0; i < levels; i++) at = stpcpy(at, end);
  strcpy(at, last);
  render_at(source, variables, &now, &TEMPLATE_LIMITS, &r);
  if (fits && r.e.status) fail_msg("%d times %s: %s", levels, begin, r.e.detail);
  if (!fits && !strstr(r.e.detail, "nested too deeply") && !strstr(r.e.detail, "too many brackets"))
    fail_msg("%d times %s: %s", levels, begin, r.e.status ? r.e.detail : r.text);
  arena_free(&r.arena);
  json_decref(variables);
  free(source);
}

/* As deep as the limit has it, which takes most of the stack, and far deeper. */
static void deepest(void **state) {
  static const struct {
    const char *first, *begin, *middle, *end, *last;
    int most;
  } nested[] = {{"{{ ", "(", "1", ")", " }}", 190},
                {"{{ ", "[", "1", "]", " }}", 190},
                {"{{ ", "{1: ", "1", "}", " }}", 190},
                {"{{ ", "-", "1", "", " }}", 390},
                {"{{ ", "not ", "1", "", " }}", 390},
                {"{{ 1", " + 1", "", "", " }}", 390},
                {"{{ ''", " | upper", "", "", " }}", 390},
                {"{{ [1]", "[:]", "", "", " }}", 390},
                {"", "{% if 1 %}", "1", "{% endif %}", "", 190},
                {"", "{% for a in [1] %}", "1", "{% endfor %}", "", 190},
                {"", "{% set a %}", "1", "{% endset %}", "", 190},
                {"", "{% filter upper %}", "1", "{% endfilter %}", "", 190},
                {"{% set n = namespace(a=[], i=0) %}{% for i in range(", "", "380", "",
                 ") %}{% set n.a = [n.a] %}{% endfor %}{{ n.a | tojson }}{{ n.a == [n.a] }}", 1},
                {"{% macro m(i) %}{% if i %}{{ m(i - 1) }}{% endif %}{% endmacro %}{{ m(", "", "60",
                 "", ") }}", 1},
                {"{% macro m(i) %}{{ m((i)) }}{% endmacro %}{{ m(1", "", "", "", ") }}", 0}};
  (void)state;
  for (size_t i = 0; i < sizeof nested / sizeof *nested; i++) {
    if (nested[i].most)
      check_levels(nested[i].first, nested[i].begin, nested[i].middle, nested[i].end,
                   nested[i].last, nested[i].most, true);
    if (nested[i].most != 1)
      check_levels(nested[i].first, nested[i].begin, nested[i].middle, nested[i].end,
                   nested[i].last, 5000, false);
  }
}

static void no_memory(void **state) {
  json_t *variables = json_loads(conversation, 0, NULL);
  bool done = false;
  (void)state;
  for (size_t n = 1; !done; n++) {
    struct rendered r;
    poisoned_fail(n);
    render_at("{% for m in messages %}{{ m.content | string | upper }}{% endfor %}", variables,
              &now, &TEMPLATE_LIMITS, &r);
    poisoned_fail(0);
    done = !r.e.status;
    if (!done) assert_int_equal(r.e.status, STATUS_OUT_OF_MEMORY);
    assert_true(!done || n > 2);
    arena_free(&r.arena);
  }
  json_decref(variables);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(golden),     cmocka_unit_test(expressions),
                                     cmocka_unit_test(statements), cmocka_unit_test(places),
                                     cmocka_unit_test(bounds),     cmocka_unit_test(long_texts),
                                     cmocka_unit_test(patience),   cmocka_unit_test(deepest),
                                     cmocka_unit_test(no_memory)};
  return cmocka_run_group_tests_name("template", tests, NULL, NULL);
}
