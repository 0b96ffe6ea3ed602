/* test_json_skim: the end of a value is found, and what is no JSON is refused, as Jansson does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "server/json/json_skim.h"
#include "tests/support/number_draw.h"

/* Skims text in chunks of `step`. Returns how many bytes the value has; SIZE_MAX: it has no end. */
static size_t skim(const char *text, size_t length, size_t step, struct error *e) {
  struct json_skim s;
  bool complete = false;
  size_t at = 0;
  memset(e, 0, sizeof *e);
  json_skim_begin(&s);
  while (at < length && !complete && !e->status) {
    const size_t size = length - at < step ? length - at : step;
    char *chunk = malloc(size);
    assert_non_null(chunk);
    memcpy(chunk, text + at, size);
    at += json_skim_feed(&s, chunk, size, at, &complete, e);
    free(chunk);
  }
  return complete ? at : SIZE_MAX;
}

static void values_end_where_they_end(void **state) {
  (void)state;
  static const struct {
    const char *text;
    size_t length;
  } list[] = {
      {"1 ", 1},
      {"-0.5e+3,", 7},
      {"12]", 2},
      {"true}", 4},
      {"null,", 4},
      {"\"a\\\"]\"x", 6},
      {"[]]", 2},
      {"{}}", 2},
      {" [1, {\"a\":[]}] 2", 14},
      {"{\"a\" : \"}\"},", 11},
      {"\"\\u00E4\",", 8},
      {"false ", 5},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    for (size_t step = 1; step < 20; step++) {
      struct error e;
      const size_t length = skim(list[i].text, strlen(list[i].text), step, &e);
      if (length != list[i].length)
        fail_msg("%s: %zu, not %zu (%s)", list[i].text, length, list[i].length, e.detail);
    }
}

static void depth_has_an_end(void **state) {
  (void)state;
  struct error e;
  char text[2 * JSON_SKIM_DEPTH + 2];
  for (size_t i = 0; i < JSON_SKIM_DEPTH; i++) {
    text[i] = '[';
    text[JSON_SKIM_DEPTH + i] = ']';
  }
  assert_int_equal(skim(text, sizeof text - 2, 7, &e), sizeof text - 2);
  memset(text, '[', JSON_SKIM_DEPTH + 1);
  assert_int_equal(skim(text, sizeof text - 2, 7, &e), SIZE_MAX);
  assert_int_equal(e.status, STATUS_INVALID_JSON);
  assert_int_equal(e.offset, JSON_SKIM_DEPTH);
}

/* Texts of tokens, whole ones and such with a byte changed: taken if and only if Jansson takes
 * them. */
static void as_jansson_judges(void **state) {
  (void)state;
  static const char *const token[] = {"[",
                                      "]",
                                      "{",
                                      "}",
                                      ",",
                                      ":",
                                      "1",
                                      "-0.5",
                                      "1e2",
                                      "true",
                                      "false",
                                      "null",
                                      "\"a\"",
                                      "\"b\"",
                                      "\"\"",
                                      "\"\\n\"",
                                      "\"\\u0041\"",
                                      " ",
                                      "[1,2]",
                                      "{\"c\":0}",
                                      "\"d\":",
                                      "\t\n",
                                      "\"\xc3\xa4\"",
                                      "\"\xe2\x82\xac\"",
                                      "\"\xf0\x9f\x98\x80\":",
                                      "\"\\ud83d\\udE00\"",
                                      "\"\\ud800\"",
                                      "\"\\uDC00\":",
                                      "\"\xff\""};
  static const char soup[] = "[]{},:\"\\0123.eE+-tfnudD \n\x01\x80\x8f\x90\xa0\xbf\xc0\xc2\xe0\xed"
                             "\xf0\xf4\xf5\xff";
  uint64_t seed = 5;
  unsigned taken = 0, refused = 0;
  for (unsigned n = 0; n < 200000; n++) {
    char text[256] = "";
    size_t length = 0;
    for (unsigned tokens = 1 + draw(&seed) % 8; tokens > 0; tokens--) {
      const char *t = token[draw(&seed) % (sizeof token / sizeof *token)];
      memcpy(text + length, t, strlen(t));
      length += strlen(t);
    }
    if (draw(&seed) % 3 == 0) text[draw(&seed) % length] = soup[draw(&seed) % (sizeof soup - 1)];
    text[length++] = ' '; /* the end of a bare number */
    json_error_t why = {0};
    json_t *value = json_loadb(text, length, JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);
    /* JSON, but beyond its numbers. */
    if (!value && json_error_code(&why) == json_error_numeric_overflow) continue;
    struct error e;
    size_t used = skim(text, length, 1 + draw(&seed) % 9, &e);
    bool whole = used != SIZE_MAX && strspn(text + used, " \t\n") == length - used;
    if (whole != (value != NULL))
      fail_msg("\"%s\": %s, and Jansson %s", text, whole ? "taken" : e.detail,
               value ? "takes it" : "does not");
    taken += value != NULL;
    refused += value == NULL;
    json_decref(value);
  }
  assert_true(taken > 5000 && refused > 5000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_end_where_they_end),
      cmocka_unit_test(depth_has_an_end),
      cmocka_unit_test(as_jansson_judges),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
