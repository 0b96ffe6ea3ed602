/* test_reply: every status has a row in the table, and every problem is JSON, whatever it quotes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <jansson.h>

#include "server/http/reply.h"

static json_t *problem(const struct error *e) {
  char text[REPLY_ERROR_SIZE];
  json_error_t why;
  size_t size = reply_error_text(e, ERROR_PROBLEM, text);
  assert_in_range(size, 1, sizeof text);
  json_t *value = json_loadb(text, size, JSON_REJECT_DUPLICATES, &why);
  if (!value) fail_msg("%s: %.*s", why.text, (int)size, text);
  return value;
}

static const char *string_at(const json_t *p, const char *key) {
  return json_string_value(json_object_get(p, key));
}

/* The error in OpenAI's form. */
static json_t *openai(const struct error *e) {
  char text[REPLY_ERROR_SIZE];
  size_t size = reply_error_text(e, ERROR_OPENAI, text);
  json_t *value = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
  json_t *error = json_incref(json_object_get(value, "error"));
  assert_int_equal(json_object_size(value), 1);
  assert_int_equal(json_object_size(error), 4);
  json_decref(value);
  return error;
}

static void every_status_has_its_row(void **state) {
  (void)state;
  for (unsigned s = STATUS_OK + 1; s < STATUS_COUNT; s++) {
    struct error e = {.status = (enum status)s, .detail = "why"};
    json_t *p = problem(&e);
    assert_in_range(reply_code(e.status), 400, 599);
    assert_int_equal(json_integer_value(json_object_get(p, "status")), reply_code(e.status));
    assert_int_equal(strncmp(string_at(p, "type"), "/problems/", 10), 0);
    assert_true(strlen(string_at(p, "type")) > 10);
    assert_true(strlen(string_at(p, "title")) > 0);
    assert_string_equal(string_at(p, "detail"), "why");
    assert_null(json_object_get(p, "pointer"));
    assert_null(json_object_get(p, "offset"));
    assert_null(json_object_get(p, "limit"));
    json_decref(p);
  }
}

static void pointer_offset_and_limit_are_members(void **state) {
  (void)state;
  struct error e = {0};
  error_at(&e, "/keys/1/3/17", "no number");
  json_t *p = problem(&e);
  assert_string_equal(string_at(p, "pointer"), "/keys/1/3/17");
  json_decref(p);
  e = (struct error){0};
  error_json(&e, 0, "empty");
  p = problem(&e);
  assert_int_equal(json_integer_value(json_object_get(p, "offset")), 0);
  assert_true(json_is_integer(json_object_get(p, "offset")));
  json_decref(p);
  e = (struct error){0};
  error_limit(&e, "max_items", "too many");
  p = problem(&e);
  assert_string_equal(string_at(p, "limit"), "max_items");
  json_decref(p);
}

/* Each byte fills detail and pointer: the longest texts, the worst escapes, broken UTF-8. */
static void hostile_bytes_stay_json(void **state) {
  (void)state;
  for (unsigned c = 1; c < 256; c++) {
    struct error e = {.status = STATUS_INVALID_REQUEST, .has_offset = true, .offset = INT64_MAX};
    e.limit = "memory_budget_bytes";
    memset(e.detail, (int)c, sizeof e.detail - 1);
    memset(e.pointer, (int)c, sizeof e.pointer - 1);
    json_t *p = problem(&e);
    if (c < 0x80) assert_string_equal(string_at(p, "detail"), e.detail);
    json_decref(p);
    json_decref(openai(&e));
  }
}

static void good_utf8_is_kept_and_a_cut_sequence_replaced(void **state) {
  (void)state;
  struct error e = {.status = STATUS_INVALID_REQUEST};
  strcpy(e.detail, "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80");
  json_t *p = problem(&e);
  assert_string_equal(string_at(p, "detail"), e.detail);
  json_decref(p);
  static const char *const broken[] = {"\xc3",     "\xe2\x82",     "\xf0\x9f\x98",
                                       "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80",
                                       "\x80"};
  for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
    strcpy(e.detail, broken[i]);
    json_decref(problem(&e));
  }
}

static void a_raw_answer_is_a_whole_message(void **state) {
  (void)state;
  char text[REPLY_RAW_SIZE + 1];
  char id[129];
  memset(id, 'i', 128);
  id[128] = 0;
  struct error e = {.status = STATUS_DRAINING};
  memset(e.detail, 1, sizeof e.detail - 1);
  size_t size = reply_raw(&e, ERROR_PROBLEM, id, NULL, text), length = 0;
  text[size] = 0;
  assert_int_equal(strncmp(text, "HTTP/1.1 503 ", 13), 0);
  assert_non_null(strstr(text, "\r\nConnection: close\r\n"));
  assert_non_null(strstr(text, "\r\nRetry-After: 1\r\n"));
  assert_non_null(strstr(text, id));
  struct tm date = {0};
  assert_non_null(
      strptime(strstr(text, "\r\nDate: "), "\r\nDate: %a, %d %b %Y %H:%M:%S GMT\r\n", &date));
  assert_in_range(timegm(&date), time(NULL) - 60, time(NULL));
  const char *body = strstr(text, "\r\n\r\n") + 4;
  assert_int_equal(sscanf(strstr(text, "Content-Length: "), "Content-Length: %zu", &length), 1);
  assert_int_equal(strlen(body), length);
}

/* Checks the sentence of an error. */
static void sentence_is(const struct error *e, const char *expected) {
  char text[REPLY_ERROR_SIZE];
  size_t size = reply_error_text(e, ERROR_V2, text);
  json_t *value = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
  assert_int_equal(json_object_size(value), 1);
  assert_string_equal(string_at(value, "error"), expected);
  json_decref(value);
}

static void a_sentence_tells_all(void **state) {
  (void)state;
  struct error e = {.status = STATUS_UNKNOWN_MODEL};
  sentence_is(&e, "Model not found");
  e = (struct error){0};
  error_at(&e, "/keys/1/3", "no \"number\"");
  sentence_is(&e, "no \"number\" (at /keys/1/3)");
  e = (struct error){0};
  error_json(&e, 17, "no JSON");
  sentence_is(&e, "no JSON (at byte 17)");
  e = (struct error){0};
  error_limit(&e, "max_items", "too many");
  sentence_is(&e, "too many (setting max_items)");
  e = (struct error){0};
  error_at(&e, "/keys/base64", "no base64");
  e.has_offset = true;
  e.offset = 7;
  sentence_is(&e, "no base64 (at /keys/base64, at byte 7)");
  e.limit = "max_items";
  sentence_is(&e, "no base64 (at /keys/base64, at byte 7, setting max_items)");
  e = (struct error){0};
  error_limit(&e, "max_items", "too many");
  char text[REPLY_RAW_SIZE + 1];
  text[reply_raw(&e, ERROR_V2, NULL, NULL, text)] = 0;
  assert_int_equal(strncmp(text, "HTTP/1.1 413 ", 13), 0);
  assert_non_null(strstr(text, "\r\nContent-Type: application/json\r\n"));
  assert_non_null(strstr(text, "\r\n\r\n{\"error\":\"too many (setting max_items)\"}\n"));
  for (unsigned c = 1; c < 256; c++) {
    memset(e.detail, (int)c, sizeof e.detail - 1);
    memset(e.pointer, (int)c, sizeof e.pointer - 1);
    e.has_offset = true;
    e.offset = SIZE_MAX;
    e.limit = "memory_budget_bytes";
    size_t size = reply_error_text(&e, ERROR_V2, text);
    json_t *value = json_loadb(text, size, 0, NULL);
    assert_non_null(value);
    json_decref(value);
  }
}

/* --- as OpenAI has them --- */

static void every_status_has_openais_words(void **state) {
  (void)state;
  for (unsigned s = STATUS_OK + 1; s < STATUS_COUNT; s++) {
    struct error e = {.status = (enum status)s, .detail = "why"};
    const unsigned code = reply_code(e.status);
    json_t *p = openai(&e);
    assert_string_equal(string_at(p, "message"), "why");
    assert_string_equal(string_at(p, "type"), code == 429   ? "rate_limit_error"
                                              : code >= 500 ? "server_error"
                                                            : "invalid_request_error");
    assert_true(json_is_null(json_object_get(p, "param")));
    assert_null(strchr(string_at(p, "code"), '-'));
    assert_true(strlen(string_at(p, "code")) > 0);
    json_decref(p);
  }
}

static void pointers_are_params(void **state) {
  (void)state;
  static const char *const list[][2] = {
      {"/input", "input"},
      {"/input/3/17", "input[3][17]"},
      {"/a/b~1c/0/d~0", "a.b/c[0].d~"},
      {"/0", "[0]"},
      {"/a/1x", "a.1x"},
      {"/a~2", "a~2"},
      {"/input/", "input."},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    struct error e = {0};
    error_at(&e, list[i][0], "no");
    json_t *p = openai(&e);
    assert_string_equal(string_at(p, "param"), list[i][1]);
    assert_string_equal(string_at(p, "message"), "no"); /* the place stands once */
    json_decref(p);
  }
  struct error e = {0};
  error_limit(&e, "max_items", "too many");
  json_t *p = openai(&e);
  assert_string_equal(string_at(p, "message"), "too many (setting max_items)");
  json_decref(p);
}

/* --- in two forms at once --- */

static void forms_stand_beside_each_other(void **state) {
  (void)state;
  struct error e = {0};
  char text[REPLY_ERROR_SIZE];
  error_at(&e, "/tokens/3", "no");
  json_t *p = json_loadb(text, reply_error_text(&e, ERROR_V1, text), 0, NULL);
  assert_string_equal(string_at(p, "detail"), "no");
  assert_string_equal(string_at(p, "pointer"), "/tokens/3");
  assert_string_equal(string_at(json_object_get(p, "error"), "param"), "tokens[3]");
  json_decref(p);
  p = json_loadb(text, reply_error_text(&e, ERROR_COHERE, text), 0, NULL);
  assert_string_equal(string_at(p, "message"), "no (at /tokens/3)");
  assert_string_equal(string_at(json_object_get(p, "error"), "message"), "no");
  json_decref(p);
  memset(e.detail, 1, sizeof e.detail - 1);
  memset(e.pointer, 1, sizeof e.pointer - 1);
  for (enum error_form form = ERROR_PROBLEM; form <= ERROR_TEI; form++) {
    p = json_loadb(text, reply_error_text(&e, form, text), 0, NULL);
    assert_non_null(p);
    json_decref(p);
  }
}

/* --- as text-embeddings-inference has them --- */

static void every_status_is_a_sentence_and_its_kind(void **state) {
  (void)state;
  for (unsigned s = STATUS_OK + 1; s < STATUS_COUNT; s++) {
    struct error e = {.status = (enum status)s, .detail = "why", .pointer = "/inputs/3"};
    const unsigned code = reply_code(e.status);
    char text[REPLY_ERROR_SIZE];
    json_t *p = json_loadb(text, reply_error_text(&e, ERROR_TEI, text), 0, NULL);
    assert_int_equal(json_object_size(p), 2);
    assert_string_equal(string_at(p, "error"), "why (at /inputs/3)");
    assert_string_equal(string_at(p, "error_type"), code == 429   ? "Overloaded"
                                                    : code == 503 ? "Unhealthy"
                                                    : code >= 500 ? "Backend"
                                                                  : "Validation");
    json_decref(p);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_status_has_its_row),
      cmocka_unit_test(pointer_offset_and_limit_are_members),
      cmocka_unit_test(hostile_bytes_stay_json),
      cmocka_unit_test(good_utf8_is_kept_and_a_cut_sequence_replaced),
      cmocka_unit_test(a_raw_answer_is_a_whole_message),
      cmocka_unit_test(a_sentence_tells_all),
      cmocka_unit_test(every_status_has_openais_words),
      cmocka_unit_test(pointers_are_params),
      cmocka_unit_test(forms_stand_beside_each_other),
      cmocka_unit_test(every_status_is_a_sentence_and_its_kind),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
