/* decoder_body: a small decoder, alone or with an encoder beside it, and bodies of requests to it
 * read in chunks, for tests of what they become. */
#ifndef TESTS_DECODER_BODY_H
#define TESTS_DECODER_BODY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "server/stack/stack_body.h"
#include "tests/support/whole_made.h"

static enum body_ask decoder_ask; /* what the bodies ask: set by main */
static struct whole_made_how decoder_how = {.decoder = true,
                                            .pool = STACK_POOL_MEAN,
                                            .normalize = true};

static const struct body_limits wide = {1000, 1 << 20, 1 << 20, 1000, 1000};
static struct whole_made model;

static int make_model(void **state) {
  (void)state;
  whole_made_init(&model, &decoder_how);
  return 0;
}

static int free_model(void **state) {
  (void)state;
  whole_made_free(&model);
  return 0;
}

struct result {
  struct arena arena;
  struct stack_request request;
  struct error error;
};

static struct body_terms terms_of(enum body_form form) {
  return (struct body_terms){
      .ask = decoder_ask, .form = form, .body_bytes = BODY_UNKNOWN, .json_bytes = BODY_UNKNOWN};
}

/* Reads a body in chunks: first one of `cut` bytes, then the rest; 0: byte by byte. */
static void read_body(struct result *r, const struct body_terms *terms,
                      const struct body_limits *limits, const char *body, size_t size, size_t cut) {
  struct stack_body *b = stack_body_new(&model.whole, terms, limits, &r->arena, &r->error);
  assert_int_equal(b == NULL, r->error.status != STATUS_OK);
  for (size_t at = 0, n; b && at < size; at += n) {
    n = cut == 0 ? 1 : at == 0 ? cut : size - at;
    if (n > size - at) n = size - at;
    body_feed(stack_body_of(b), body + at, n);
  }
  if (!b) return;
  const enum status status = stack_body_finish(b, &r->request);
  assert_int_equal(status, r->error.status);
}

static void read_text(struct result *r, const char *body) {
  const struct body_terms terms = terms_of(BODY_JSON);
  memset(r, 0, sizeof *r);
  read_body(r, &terms, &wide, body, strlen(body), SIZE_MAX);
}

static void accept(struct result *r, const char *body) {
  read_text(r, body);
  if (r->error.status) fail_msg("%s\nrefused: %s (%s)", body, r->error.detail, r->error.pointer);
}

#endif
