/* body_read: a body of an attention request, read in chunks. */
#include "tests/support/body_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

const struct body_limits body_read_wide = {.max_items = 1000,
                                           .max_pairs = 1 << 20,
                                           .max_answer_bytes = 1 << 20};

struct body_terms body_read_terms(enum body_ask ask, enum body_form form) {
  return (struct body_terms){
      .ask = ask, .form = form, .body_bytes = BODY_UNKNOWN, .json_bytes = BODY_UNKNOWN};
}

void body_read_chunks(struct body *b, const struct error *e, const char *bytes, size_t size,
                      size_t cut, size_t step) {
  for (size_t at = 0, n; at < size; at += n) {
    n = at == 0 && cut ? cut : step;
    if (n > size - at) n = size - at;
    char *chunk = malloc(n ? n : 1);
    assert_non_null(chunk);
    memcpy(chunk, bytes + at, n);
    const enum status status = body_feed(b, chunk, n);
    free(chunk);
    assert_int_equal(status, e->status);
  }
}

void body_read(struct body_result *r, const struct model *m, const struct body_terms *terms,
               const struct body_limits *limits, const char *bytes, size_t size, size_t cut,
               size_t step) {
  memset(&r->request, 0, sizeof r->request);
  r->error = (struct error){0};
  struct attention_body *b = attention_body_new(m, terms, limits, &r->arena, &r->error);
  assert_int_equal(b == NULL, r->error.status != STATUS_OK);
  if (!b) return;
  body_read_chunks(attention_body_of(b), &r->error, bytes, size, cut, step);
  const enum status status = attention_body_finish(b, &r->request);
  assert_int_equal(status, r->error.status);
}
