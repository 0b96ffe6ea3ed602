/* test_cors: which origins may be named, and which of them an answer names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "config/settings/origins.h"
#include "server/http/cors.h"
#include "server/http/reply.h"

static void origins_as_browsers_write_them(void **state) {
  (void)state;
  static const char *const good[] = {"",
                                     "*",
                                     "https://a.example",
                                     "http://localhost:3000",
                                     "http://127.0.0.1:8081",
                                     "https://a.example,https://b.example",
                                     " https://a.example , http://b.example:65535\t",
                                     "http://[::1]:8080",
                                     "https://[2001:db8::1]",
                                     "https://xn--bcher-kva.example",
                                     "chrome-extension://abcdefghijklmnop",
                                     "http://a.example:443",
                                     "https://a.example:80",
                                     "https://under_score.example"};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    struct error e = {0};
    if (origins_check(good[i], "here", &e)) fail_msg("%s: %s", good[i], e.detail);
  }
}

static void what_no_browser_sends_is_refused(void **state) {
  (void)state;
  static const char *const bad[][2] = {
      {"https://a.example/", "not even a '/'"},
      {"https://a.example/page", "a path"},
      {"a.example", "is not an origin"},
      {"//a.example", "is not an origin"},
      {"https:/a.example", "is not an origin"},
      {"https://", "is not an origin"},
      {"https://a b", "is not an origin"},
      {"1http://a", "is not an origin"},
      {"https://user@a.example", "is not an origin"},
      {"https://a.example?x", "is not an origin"},
      {"https://*.a.example", "is not an origin"},
      {"https://-a.example", "is not an origin"},
      {"https://.a.example", "is not an origin"},
      {"https://b\xc3\xbc"
       "cher.example",
       "is not an origin"},
      {"https://[::1", "is not an origin"},
      {"https://[::0001]", "is not an origin"},
      {"https://[a.example]", "is not an origin"},
      {"https://[::1]x", "is not an origin"},
      {"https://A.example", "capital letters"},
      {"HTTPS://a.example", "capital letters"},
      {"https://[2001:DB8::1]", "capital letters"},
      {"https://a.example:", "no port"},
      {"https://a.example:0", "no port"},
      {"https://a.example:08", "no port"},
      {"https://a.example:65536", "no port"},
      {"https://a.example:99999999999999999999", "no port"},
      {"https://a.example:80a", "no port"},
      {"https://a.example:+80", "no port"},
      {"https://a.example:443", "leave out"},
      {"http://a.example:80", "leave out"},
      {"null", "anybody"},
      {"https://a.example,null", "anybody"},
      {"*,https://a.example", "cannot be in a list"},
      {"https://a.example,*", "cannot be in a list"},
      {" ", "empty"},
      {",https://a.example", "empty"},
      {"https://a.example,,https://b.example", "empty"},
      {"https://a.example,", "ends with a comma"},
      {"https://a.example\r\nx: y", "is not an origin"},
      {"https://a.example https://b.example", "is not an origin"},
  };
  char longest[300] = "https://";
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    struct error e = {0};
    if (origins_check(bad[i][0], "here", &e) != STATUS_CONFIG) fail_msg("%s passed", bad[i][0]);
    if (!strstr(e.detail, bad[i][1])) fail_msg("%s: %s", bad[i][0], e.detail);
    assert_int_equal(strncmp(e.detail, "here: ", 6), 0);
  }
  memset(longest + 8, 'a', 255 - 8);
  struct error e = {0};
  assert_int_equal(origins_check(longest, "here", &e), STATUS_OK);
  longest[255] = 'a';
  assert_int_equal(origins_check(longest, "here", &e), STATUS_CONFIG);
}

static void named_origins_and_no_others(void **state) {
  (void)state;
  struct error e = {0};
  struct cors *c;
  assert_int_equal(cors_new("", &c, &e), STATUS_OK);
  assert_null(c);
  cors_free(NULL);
  assert_int_equal(cors_new(" https://a.example ,http://b.example:81", &c, &e), STATUS_OK);
  assert_string_equal(cors_allow(c, "https://a.example"), "https://a.example");
  assert_string_equal(cors_allow(c, "http://b.example:81"), "http://b.example:81");
  static const char *const others[] = {"",
                                       "null",
                                       "*",
                                       "https://a.exampl",
                                       "https://a.example.evil",
                                       "https://A.example",
                                       "http://a.example",
                                       "http://b.example",
                                       "https://a.example,http://b.example:81",
                                       ","};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) assert_null(cors_allow(c, others[i]));
  cors_free(c);
  assert_int_equal(cors_new("*", &c, &e), STATUS_OK);
  assert_string_equal(cors_allow(c, "https://any.example"), "*");
  assert_string_equal(cors_allow(c, "null"), "*");
  cors_free(c);
}

static void a_raw_answer_names_the_origin(void **state) {
  (void)state;
  char text[REPLY_RAW_SIZE], origin[256] = "https://", id[129] = "";
  memset(origin + 8, 'a', 255 - 8);
  memset(id, 'i', 128);
  struct error e = {.status = STATUS_DRAINING};
  memset(e.detail, 1, sizeof e.detail - 1);
  memset(e.pointer, 1, sizeof e.pointer - 1);
  reply_raw(&e, ERROR_PROBLEM, id, origin, text);
  const char *at = strstr(text, "\r\nAccess-Control-Allow-Origin: ");
  assert_non_null(at);
  assert_int_equal(strncmp(strchr(at, ':') + 2, origin, 255), 0);
  assert_non_null(strstr(text, "\r\nVary: Origin\r\n"));
  assert_non_null(strstr(text, "\r\nAccess-Control-Expose-Headers: X-Request-Id, "));
  reply_raw(&e, ERROR_PROBLEM, id, NULL, text);
  assert_null(strstr(text, "Access-Control"));
  assert_null(strstr(text, "Vary"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(origins_as_browsers_write_them),
      cmocka_unit_test(what_no_browser_sends_is_refused),
      cmocka_unit_test(named_origins_and_no_others),
      cmocka_unit_test(a_raw_answer_names_the_origin),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
