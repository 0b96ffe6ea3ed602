/* test_header: what the fields of a request's head are taken for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/header.h"

/* The head made of name and value pairs, ended by NULL. */
static struct header read_fields(const char *name, ...) {
  struct header h;
  va_list args;
  header_init(&h);
  va_start(args, name);
  for (; name; name = va_arg(args, const char *))
    header_add(&h, name, strlen(name), va_arg(args, const char *));
  va_end(args);
  header_finish(&h);
  return h;
}

static enum status status_of(const char *first, const char *first_value, const char *second,
                             const char *second_value) {
  return read_fields(first, first_value, second, second_value, NULL).error.status;
}

static void framing_that_contradicts_itself_is_refused(void **state) {
  (void)state;
  const enum status bad = STATUS_BAD_FRAMING;
  assert_int_equal(status_of("Content-Length", "5", "Transfer-Encoding", "chunked"), bad);
  assert_int_equal(status_of("Transfer-Encoding", "gzip", "content-length", "5"), bad);
  assert_int_equal(status_of("Content-Length", "5", "Content-Length", "6"), bad);
  assert_int_equal(status_of("Content-Length", "5", "Content-Length", "5"), STATUS_OK);
  assert_int_equal(status_of("Host", "a", "HOST", "a"), bad);
  assert_int_equal(status_of("Content-Length ", "5", NULL, NULL), bad);
  assert_int_equal(status_of("", "5", NULL, NULL), bad);
  assert_int_equal(status_of("X\tY", "5", NULL, NULL), bad);
  assert_int_equal(status_of("X-Timeout-Ms", "zero", "X Y", "5"), bad);
}

static void lengths_are_digits_within_64_bits(void **state) {
  (void)state;
  static const char *const wrong[] = {"",     "-1",  "+1",
                                      " 1",   "1 ",  "1,1",
                                      "0x10", "1e3", "18446744073709551616"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_int_equal(status_of("Content-Length", wrong[i], NULL, NULL), STATUS_BAD_FRAMING);
  struct header h = read_fields("Content-Length", "18446744073709551615", NULL);
  assert_int_equal(h.error.status, STATUS_OK);
  assert_true(h.body_bytes == UINT64_MAX);
  assert_false(header_has_body(&(struct header){0}));
}

static void chunked_alone_is_the_only_transfer_coding(void **state) {
  (void)state;
  const enum status no = STATUS_UNSUPPORTED_TRANSFER_ENCODING;
  struct header h = read_fields("transfer-encoding", "Chunked", NULL);
  assert_int_equal(h.error.status, STATUS_OK);
  assert_true(header_has_body(&h));
  assert_int_equal(status_of("Transfer-Encoding", "gzip, chunked", NULL, NULL), no);
  assert_int_equal(status_of("Transfer-Encoding", "identity", NULL, NULL), no);
  assert_int_equal(status_of("Transfer-Encoding", "", NULL, NULL), no);
  assert_int_equal(status_of("Transfer-Encoding", "chunked ", NULL, NULL), no);
  assert_int_equal(status_of("Transfer-Encoding", "chunked", "Transfer-Encoding", "chunked"), no);
}

static bool accepts(const char *first, const char *second) {
  struct header h = read_fields("Accept", first, second ? "Accept" : NULL, second, NULL);
  return header_accepts_json(&h);
}

static void accept_follows_the_most_specific_range(void **state) {
  (void)state;
  struct header none = read_fields(NULL);
  assert_true(header_accepts_json(&none));
  static const char *const yes[] = {"*/*",
                                    "application/json",
                                    "Application/*",
                                    "text/html, */*;q=0.1",
                                    "application/json;q=0.001",
                                    "application/json ; q=1",
                                    "application/*;q=0, application/json",
                                    "text/plain;x=\",\", application/json;charset=utf-8"};
  static const char *const no[] = {"text/html",
                                   "application/json;q=0",
                                   "application/json;q=0.000, */*",
                                   "application/*;q=0, */*",
                                   "*/*;q=0",
                                   "application/jsonx",
                                   "application/x-safetensors",
                                   "text/plain;x=\", application/json\""};
  for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
    if (!accepts(yes[i], NULL)) fail_msg("refused: %s", yes[i]);
  for (size_t i = 0; i < sizeof no / sizeof *no; i++)
    if (accepts(no[i], NULL)) fail_msg("accepted: %s", no[i]);
  assert_true(accepts("text/html", "application/json"));
}

static void types_and_codings_of_the_body(void **state) {
  (void)state;
  assert_true(read_fields(NULL).json);
  assert_true(read_fields("Content-Type", "application/json", NULL).json);
  assert_true(read_fields("content-type", "Application/JSON; charset=utf-8", NULL).json);
  assert_false(read_fields("Content-Type", "application/x-www-form-urlencoded", NULL).json);
  assert_false(read_fields("Content-Type", "", NULL).json);
  assert_false(read_fields("Content-Type", "application/json", "Content-Type", "a/b", NULL).json);
  assert_false(read_fields("Content-Encoding", "identity", NULL).coded);
  assert_true(read_fields("Content-Encoding", "gzip", NULL).coded);
  assert_true(read_fields("Content-Encoding", "gzip", "Content-Encoding", "identity", NULL).coded);
}

static void request_ids_are_kept_if_sane(void **state) {
  (void)state;
  char name[130];
  memset(name, 'a', 129);
  name[129] = 0;
  assert_null(read_fields("X-Request-Id", name, NULL).request_id);
  name[128] = 0;
  assert_string_equal(read_fields("X-Request-Id", name, NULL).request_id, name);
  assert_string_equal(read_fields("x-request-id", "A-z_0.9", NULL).request_id, "A-z_0.9");
  static const char *const wrong[] = {"", "a b", "a\"b", "\xc3\xa4", "a\n"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_null(read_fields("X-Request-Id", wrong[i], NULL).request_id);
}

static void timeouts_are_whole_positive_milliseconds(void **state) {
  (void)state;
  assert_true(read_fields("X-Timeout-Ms", "250", NULL).timeout_ms == 250);
  static const char *const wrong[] = {
      "", "0", "-5", "1.5", "1s", "86400001", "99999999999999999999"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_int_equal(status_of("X-Timeout-Ms", wrong[i], NULL, NULL), STATUS_INVALID_REQUEST);
}

static void a_field_without_a_value_is_empty(void **state) {
  (void)state;
  assert_int_equal(status_of("Accept", NULL, "X-Other", NULL), STATUS_OK);
  assert_int_equal(status_of("Content-Length", NULL, NULL, NULL), STATUS_BAD_FRAMING);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(framing_that_contradicts_itself_is_refused),
      cmocka_unit_test(lengths_are_digits_within_64_bits),
      cmocka_unit_test(chunked_alone_is_the_only_transfer_coding),
      cmocka_unit_test(accept_follows_the_most_specific_range),
      cmocka_unit_test(types_and_codings_of_the_body),
      cmocka_unit_test(request_ids_are_kept_if_sane),
      cmocka_unit_test(timeouts_are_whole_positive_milliseconds),
      cmocka_unit_test(a_field_without_a_value_is_empty),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
