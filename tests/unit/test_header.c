/* test_header: what is read from the header fields of a request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/http/header.h"

/* The header made of pairs of name and value, ended by NULL. */
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

static void a_host_is_one_host(void **state) {
  (void)state;
  static const char *const right[] = {
      "", "a", "a:", "a:80", "a_b.c.", "127.0.0.1:1", "[::1]", "[v1.x]", "%41!$&'()*+;=~ ", ":80"};
  static const char *const wrong[] = {"a@b",      "a/b",      "a,b",  "a b",    "a:b",
                                      "a:1:2",    "[]",       "[::1", "[::1]a", "::1",
                                      "http://a", "\xc3\xa9", "a#",   "a?",     "a\\"};
  for (size_t i = 0; i < sizeof right / sizeof *right; i++)
    assert_int_equal(status_of("Host", right[i], NULL, NULL), STATUS_OK);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_int_equal(status_of("host", wrong[i], NULL, NULL), STATUS_BAD_FRAMING);
}

static void values_have_no_control_characters(void **state) {
  (void)state;
  for (int c = 1; c < 256; c++) {
    const char value[] = {'a', (char)c, 'b', 0};
    const bool fine = c == '\t' || (c >= ' ' && c != 0x7f);
    assert_int_equal(status_of("X", value, NULL, NULL), fine ? STATUS_OK : STATUS_BAD_FRAMING);
  }
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
  const enum status bad = STATUS_BAD_FRAMING;
  assert_int_equal(status_of("Transfer-Encoding", "chunked, gzip", NULL, NULL), bad);
  assert_int_equal(status_of("Transfer-Encoding", "Chunked , identity;q", NULL, NULL), bad);
  assert_int_equal(status_of("Transfer-Encoding", "chunked", "Transfer-Encoding", "gzip"), bad);
  assert_int_equal(status_of("Transfer-Encoding", "gzip", "Transfer-Encoding", "chunked"), no);
}

static enum header_wish wish(const char *first, const char *second, bool binary) {
  struct header h = read_fields("Accept", first, second ? "Accept" : NULL, second, NULL);
  return header_wish(&h, binary);
}

#define ST     "application/x-safetensors"
#define OCTETS "application/octet-stream"
#define JSON   "application/json"

static void events_are_taken_where_they_are_named(void **state) {
  (void)state;
  static const char *const taken[] = {"text/event-stream", "a/b, Text/Event-Stream;q=0.1"},
                           *const others[] = {"text/event-stream;q=0", "text/*", "*/*", JSON};
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
    struct header h = read_fields("Accept", taken[i], NULL, NULL, NULL);
    assert_true(header_takes_events(&h));
  }
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    struct header h = read_fields("Accept", others[i], NULL, NULL, NULL);
    assert_false(header_takes_events(&h));
  }
}

static void accept_follows_the_most_specific_range(void **state) {
  (void)state;
  static const struct {
    const char *accept;
    enum header_wish json, binary; /* for a body of that form */
  } list[] = {
      /* no preference: the form of the body */
      {"*/*", WISH_JSON, WISH_BINARY},
      {"Application/*", WISH_JSON, WISH_BINARY},
      {"text/html, */*;q=0.1", WISH_JSON, WISH_BINARY},
      /* JSON */
      {JSON, WISH_JSON, WISH_JSON},
      {JSON ";q=0.001", WISH_JSON, WISH_JSON},
      {JSON " ; q=1", WISH_JSON, WISH_JSON},
      {JSON ", text/plain, */*", WISH_JSON, WISH_JSON},
      {"application/*;q=0, " JSON, WISH_JSON, WISH_JSON},
      {"text/plain;x=\",\", " JSON ";charset=utf-8", WISH_JSON, WISH_JSON},
      {JSON ", " ST ";q=0.9", WISH_JSON, WISH_JSON},
      {ST ";q=0, */*", WISH_JSON, WISH_BINARY}, /* the other type is left */
      {ST ";q=0, " OCTETS ";q=0, */*", WISH_JSON, WISH_JSON},
      /* binary */
      {ST ", " JSON, WISH_BINARY, WISH_BINARY},
      {JSON ", " ST, WISH_BINARY, WISH_BINARY},
      {JSON ";q=0.8, " OCTETS ";q=0.9", WISH_BINARY, WISH_BINARY},
      {ST ", */*;q=0.5", WISH_BINARY, WISH_BINARY},
      {ST ";q=0.5, */*", WISH_BINARY, WISH_BINARY},
      {OCTETS ", application/*", WISH_BINARY, WISH_BINARY},
      {ST, WISH_BINARY_ALONE, WISH_BINARY_ALONE},
      {"Application/X-Safetensors;q=0.1", WISH_BINARY_ALONE, WISH_BINARY_ALONE},
      {OCTETS, WISH_BINARY_ALONE, WISH_BINARY_ALONE},
      {JSON ";q=0, */*", WISH_BINARY_ALONE, WISH_BINARY_ALONE},
      {JSON ";q=0.000, */*", WISH_BINARY_ALONE, WISH_BINARY_ALONE},
      /* no form that an answer can have */
      {"text/html", WISH_NEITHER, WISH_NEITHER},
      {JSON ";q=0", WISH_NEITHER, WISH_NEITHER},
      {"application/*;q=0, */*", WISH_NEITHER, WISH_NEITHER},
      {"*/*;q=0", WISH_NEITHER, WISH_NEITHER},
      {JSON "x", WISH_NEITHER, WISH_NEITHER},
      {"text/plain;x=\", " JSON "\"", WISH_NEITHER, WISH_NEITHER},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    if (wish(list[i].accept, NULL, false) != list[i].json ||
        wish(list[i].accept, NULL, true) != list[i].binary)
      fail_msg("%s", list[i].accept);
  struct header none = read_fields(NULL);
  assert_int_equal(header_wish(&none, false), WISH_JSON);
  assert_int_equal(header_wish(&none, true), WISH_BINARY);
  assert_int_equal(wish("text/html", JSON, true), WISH_JSON);
}

static void the_type_of_a_binary_answer(void **state) {
  (void)state;
  static const struct {
    const char *accept;
    enum header_media type;
  } list[] = {
      {"*/*", MEDIA_SAFETENSORS},
      {ST, MEDIA_SAFETENSORS},
      {ST ", " OCTETS, MEDIA_SAFETENSORS},
      {ST ";q=0.1, */*", MEDIA_SAFETENSORS},
      {OCTETS, MEDIA_OCTETS},
      {OCTETS ";q=0.1, */*", MEDIA_OCTETS},
      {ST ";q=0.1, " OCTETS, MEDIA_OCTETS},
      {ST ";q=0, */*", MEDIA_OCTETS},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    struct header h = read_fields("Accept", list[i].accept, NULL);
    if (header_binary_type(&h) != list[i].type) fail_msg("%s", list[i].accept);
  }
  struct header none = read_fields(NULL);
  assert_int_equal(header_binary_type(&none), MEDIA_SAFETENSORS);
  assert_string_equal(header_media_type(MEDIA_OCTETS), OCTETS);
}

static void gzip_where_it_is_asked_for(void **state) {
  (void)state;
  static const char *const yes[][2] = {
      {"gzip", ""},
      {"GZip;q=0.001", ""},
      {"x-gzip", ""},
      {"gzip, deflate, br, zstd", ""},
      {"br;q=1.0, gzip ; q=0.8, *;q=0.1", ""},
      {"deflate", "gzip"},
      {"*", ""},
      {"*;q=0.5, br", ""},
      {"gzip;q=0.5, *;q=0", ""},
      {"identity;q=0.5, *;q=0.7", ""},
      {"identity;q=0, gzip;q=0.1", ""},
      {"gzip;q=0.5, identity;q=0.5", ""},
      {",, gzip", ""},
  };
  static const char *const no[][2] = {
      {"", ""},
      {"identity", ""},
      {"br", "deflate"},
      {"gzip;q=0", ""},
      {"gzip;q=0.000", ""},
      {"gzip;q=0, *", ""},
      {"*;q=0", ""},
      {"identity;q=0, gzip;q=0", ""}, /* no coding is left: sent as it is */
      {"identity;q=0", ""},
      {"gzip;q=0.5, identity", ""},
      {"gzip;q=0.5", "identity;q=0.501"},
      {"*;q=0.5, identity", ""},
      {"gzipped, x-gzip2", ""},
      {"\"gzip\"", ""},
  };
#define TAKES(pair)                     \
  header_takes_gzip(&(struct header[]){ \
      read_fields("Accept-Encoding", (pair)[0], "accept-encoding", (pair)[1], NULL)}[0])
  for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
    if (!TAKES(yes[i])) fail_msg("%s", yes[i][0]);
  for (size_t i = 0; i < sizeof no / sizeof *no; i++)
    if (TAKES(no[i])) fail_msg("%s", no[i][0]);
#undef TAKES
  struct header none = read_fields(NULL);
  assert_false(header_takes_gzip(&none));
}

/* The bits of two tags that two fields name. */
static unsigned find_known(const char *first, const char *second) {
  static const char *const tags[] = {"\"a\"", "\"b,c\"", NULL};
  struct header h;
  header_init(&h);
  h.tags = tags;
  header_add(&h, "If-None-Match", 13, first);
  if (second) header_add(&h, "if-none-match", 13, second);
  header_finish(&h);
  assert_int_equal(h.error.status, STATUS_OK);
  return h.known;
}

static void what_is_known_already(void **state) {
  (void)state;
  static const char *const yes[] = {
      "*",         "* ",          "\"a\"",          "W/\"a\"",
      "\"b,c\"",   "\"x\",\"a\"", "\"x\" ,\t\"a\"", "W/\"x\", W/\"b,c\"",
      ", \"a\",,", "\"a\" \"x",   "\"\", \"a\""};
  static const char *const no[] = {"",          "a",           "\"a",      "a\"",
                                   "\"A\"",     "w/\"a\"",     "W/ \"a\"", "\"x\"; \"a\"",
                                   "\"aa\"",    "\"b\",\"c\"", "x, \"a\"", "*, \"x\"",
                                   "\"\\\"a\"", "\"x,\"a\"",   "W/"};
  for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
    if (!find_known(yes[i], NULL)) fail_msg("%s", yes[i]);
  for (size_t i = 0; i < sizeof no / sizeof *no; i++)
    if (find_known(no[i], NULL)) fail_msg("%s", no[i]);
  assert_int_equal(find_known("\"x\"", "\"a\""), 1);
  assert_int_equal(find_known("\"b,c\"", "\"x\""), 2);
  assert_int_equal(find_known("\"b,c\", W/\"a\"", NULL), 3);
  assert_int_equal(find_known("\"a\"", "\"b,c\""), 3);
  assert_int_equal(find_known("*", NULL) & 3, 3);
  assert_false(find_known("\"x\"", "\"y\""));
  assert_false(read_fields("If-None-Match", "*", NULL).known); /* there are no tags to find */
}

static void the_length_of_the_json_before_binary_data(void **state) {
  (void)state;
  assert_true(read_fields(NULL).json_bytes == UINT64_MAX);
  struct header h = read_fields("inference-header-content-length", "12", NULL);
  assert_true(h.json_bytes == 12 && !h.bad_json_bytes && !h.error.status);
  static const char *const wrong[] = {
      "", "-1", "1.5", "12 ", "0x1", "18446744073709551615", "18446744073709551616"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_true(read_fields("Inference-Header-Content-Length", wrong[i], NULL).bad_json_bytes);
#define N "Inference-Header-Content-Length"
  assert_true(read_fields(N, "1", N, "2", NULL).bad_json_bytes);
  assert_false(read_fields(N, "1", N, "1", NULL).bad_json_bytes);
#undef N
}

static void types_and_codings_of_the_body(void **state) {
  (void)state;
#define TYPE(...) read_fields("Content-Type", __VA_ARGS__, NULL).content
  assert_int_equal(read_fields(NULL).content, MEDIA_NONE);
  assert_int_equal(TYPE(JSON), MEDIA_JSON);
  assert_int_equal(TYPE("Application/JSON; charset=utf-8"), MEDIA_JSON);
  assert_int_equal(TYPE(ST), MEDIA_SAFETENSORS);
  assert_int_equal(TYPE(OCTETS ";x=y"), MEDIA_OCTETS);
  assert_int_equal(TYPE("application/x-www-form-urlencoded"), MEDIA_OTHER);
  assert_int_equal(TYPE(""), MEDIA_OTHER);
  assert_int_equal(TYPE(JSON, "Content-Type", "a/b"), MEDIA_OTHER);
  assert_int_equal(TYPE(JSON, "content-type", ST), MEDIA_OTHER);
  assert_int_equal(TYPE(JSON, "content-type", JSON), MEDIA_JSON);
#undef TYPE
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
      cmocka_unit_test(a_host_is_one_host),
      cmocka_unit_test(values_have_no_control_characters),
      cmocka_unit_test(lengths_are_digits_within_64_bits),
      cmocka_unit_test(chunked_alone_is_the_only_transfer_coding),
      cmocka_unit_test(events_are_taken_where_they_are_named),
      cmocka_unit_test(accept_follows_the_most_specific_range),
      cmocka_unit_test(the_type_of_a_binary_answer),
      cmocka_unit_test(gzip_where_it_is_asked_for),
      cmocka_unit_test(what_is_known_already),
      cmocka_unit_test(the_length_of_the_json_before_binary_data),
      cmocka_unit_test(types_and_codings_of_the_body),
      cmocka_unit_test(request_ids_are_kept_if_sane),
      cmocka_unit_test(timeouts_are_whole_positive_milliseconds),
      cmocka_unit_test(a_field_without_a_value_is_empty),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
