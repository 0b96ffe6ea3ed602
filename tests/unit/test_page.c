/* test_page: the fields that are sent with the page: its tags, and the hashes in its policy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <nettle/base64.h>
#include <nettle/sha2.h>

#include "server/describe/page.h"

enum { HASH = BASE64_ENCODE_RAW_LENGTH(SHA256_DIGEST_SIZE) };

static const struct page *page(void) {
  static struct page p;
  struct error e;
  if (!p.policy) assert_int_equal(page_init(&p, "", &e), STATUS_OK);
  return &p;
}

static const char *hash_of(const char *bytes, size_t size) {
  static char out[HASH + 1];
  struct sha256_ctx context;
  uint8_t digest[SHA256_DIGEST_SIZE];
  sha256_init(&context);
  sha256_update(&context, size, (const uint8_t *)bytes);
  sha256_digest(&context, sizeof digest, digest);
  base64_encode_raw(out, sizeof digest, digest);
  return out;
}

static const char *field_of(const struct page_form *f, const char *name) {
  for (const struct reply_field *at = f->fields; at->name; at++)
    if (strcmp(at->name, name) == 0) return at->value;
  fail_msg("no field %s", name);
  return NULL;
}

static void each_form_has_its_tag(void **state) {
  (void)state;
  for (int i = 0; i < PAGE_FORMS; i++) {
    const struct page_form *f = &page()->form[i];
    char tag[HASH + 3];
    snprintf(tag, sizeof tag, "\"%s\"", hash_of(f->bytes, f->size));
    assert_string_equal(field_of(f, "ETag"), tag);
    assert_string_equal(page()->tags[i], tag);
    assert_string_equal(field_of(f, "Content-Security-Policy"), page()->policy);
  }
  assert_null(page()->tags[PAGE_FORMS]);
  assert_string_not_equal(page()->tags[PAGE_PLAIN], page()->tags[PAGE_GZIP]);
}

static void one_form_is_gzip(void **state) {
  (void)state;
  const struct page_form *plain = &page()->form[PAGE_PLAIN], *gzip = &page()->form[PAGE_GZIP];
  assert_null(plain->coding);
  assert_string_equal(gzip->coding, "gzip");
  assert_memory_equal(plain->bytes, "<!doctype html>", 15);
  assert_memory_equal(gzip->bytes, "\x1f\x8b\x08", 3);
  assert_true(gzip->size < plain->size);
}

/* The policy allows the text of this element, whose end tag occurs once. */
static void is_allowed(const char *begin, const char *end, const char *directive) {
  const struct page_form *f = &page()->form[PAGE_PLAIN];
  char source[HASH + 64];
  const char *from = memmem(f->bytes, f->size, begin, strlen(begin));
  assert_non_null(from);
  from += strlen(begin);
  const size_t left = (size_t)(f->bytes + f->size - from);
  const char *to = memmem(from, left, end, strlen(end));
  assert_non_null(to);
  assert_null(memmem(to + 1, left - (size_t)(to + 1 - from), end, strlen(end)));
  snprintf(source, sizeof source, "%s 'sha256-%s';", directive, hash_of(from, (size_t)(to - from)));
  assert_non_null(strstr(page()->policy, source));
}

static void nothing_else_runs(void **state) {
  (void)state;
  is_allowed("<script>", "</script>", "; script-src");
  is_allowed("<style>", "</style>", "; style-src");
  assert_int_equal(strncmp(page()->policy, "default-src 'none'; ", 20), 0);
}

static void frames_are_those_of_the_listed_origins(void **state) {
  (void)state;
  const char *const cases[][2] = {{"", " 'none'"},
                                  {"*", " *"},
                                  {"https://a.example , http://b.example:8080",
                                   " https://a.example http://b.example:8080"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct page p;
    struct error e;
    assert_int_equal(page_init(&p, cases[i][0], &e), STATUS_OK);
    const char *found = strstr(p.policy, "; frame-ancestors");
    assert_non_null(found);
    assert_string_equal(found + strlen("; frame-ancestors"), cases[i][1]);
    page_done(&p);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_form_has_its_tag),
      cmocka_unit_test(one_form_is_gzip),
      cmocka_unit_test(nothing_else_runs),
      cmocka_unit_test(frames_are_those_of_the_listed_origins),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
