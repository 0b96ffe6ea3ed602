/* test_json_string: JSON strings byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/text/json_string.h"

/* What stands behind the quote becomes `meant`, and ends as said. */
static void check(const char *text, size_t length, const char *meant, int end) {
  struct json_string s = {0};
  char got[64];
  size_t count = 0;
  int c = JSON_STRING_WITHIN;
  for (size_t i = 0; i < length && c != JSON_STRING_END && c != JSON_STRING_BAD; i++) {
    c = json_string_byte(&s, text[i]);
    if (c != JSON_STRING_BAD) assert_int_equal(json_string_is_within(&s), c == JSON_STRING_WITHIN);
    if (c >= 0) got[count++] = (char)c;
  }
  got[count] = '\0';
  assert_string_equal(got, meant);
  assert_int_equal(c, end);
}

#define CHECK(text, meant, end) check(text, sizeof(text) - 1, meant, end)

static void strings(void **state) {
  (void)state;
  CHECK("\"", "", JSON_STRING_END);
  CHECK("abc\"", "abc", JSON_STRING_END);
  CHECK("\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", JSON_STRING_END);
  CHECK("\\u0041\\u002b\\u002B\\u007f\"", "A++\x7f", JSON_STRING_END);
  CHECK("\\u0080\\u2b41\\uFFff\"", "\xff\xff\xff", JSON_STRING_END);
  CHECK("\xc3\xa9\xef\xbf\xbd\xf4\x8f\xbf\xbfz\"", "\xff\xff\xffz", JSON_STRING_END);
  CHECK("\\ud83d\\uDE00\\ud800\\udfff\"", "\xff\xff", JSON_STRING_END);
}

static void what_is_none(void **state) {
  (void)state;
  CHECK("a\n", "a", JSON_STRING_BAD);
  CHECK("a\0", "a", JSON_STRING_BAD);
  CHECK("a\x1f", "a", JSON_STRING_BAD);
  CHECK("\\a", "", JSON_STRING_BAD);
  CHECK("\\\0", "", JSON_STRING_BAD);
  CHECK("\\U0041", "", JSON_STRING_BAD);
  CHECK("\\u00g1", "", JSON_STRING_BAD);
  CHECK("\\u\0", "", JSON_STRING_BAD);
  CHECK("\\u004\"", "", JSON_STRING_BAD);
  CHECK("a\\udc00", "a", JSON_STRING_BAD);
  CHECK("\\ud800\"", "", JSON_STRING_BAD);
  CHECK("\\ud800a", "", JSON_STRING_BAD);
  CHECK("\\ud800\\n", "", JSON_STRING_BAD);
  CHECK("\\ud800\\u0041", "", JSON_STRING_BAD);
  CHECK("\\ud800\\ud800", "", JSON_STRING_BAD);
  CHECK("\\ud83d\\ude00\\ude00", "\xff", JSON_STRING_BAD);
  CHECK("\x80", "", JSON_STRING_BAD);
  CHECK("\xc1", "", JSON_STRING_BAD);
  CHECK("\xc3\"", "", JSON_STRING_BAD);
  CHECK("\xe0\x9f", "", JSON_STRING_BAD);
  CHECK("\xed\xa0", "", JSON_STRING_BAD);
  CHECK("\xe2\x82z", "", JSON_STRING_BAD);
  CHECK("\xf0\x8f", "", JSON_STRING_BAD);
  CHECK("\xf4\x90", "", JSON_STRING_BAD);
  CHECK("\xf5", "", JSON_STRING_BAD);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(strings),
      cmocka_unit_test(what_is_none),
  };
  return cmocka_run_group_tests_name("json_string", tests, NULL, NULL);
}
