/* whole_body: bodies of requests to whole models, read in chunks, and what they become. */
#include "tests/support/whole_body.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/body_read.h"
#include "tests/support/short_memory.h"

enum body_ask whole_body_ask;

const struct body_limits whole_body_wide = {1000, 1 << 20, 1 << 20, 1000, 1000, 0};

struct body_terms whole_body_terms(enum body_form form) {
  return body_read_terms(whole_body_ask, form);
}

void whole_body_read(struct whole_body *r, const struct whole_made *m,
                     const struct body_terms *terms, const struct body_limits *limits,
                     const char *bytes, size_t size, size_t cut, size_t step) {
  memset(&r->request, 0, sizeof r->request);
  r->error = (struct error){0};
  struct stack_body *b = stack_body_new(&m->whole, terms, limits, &r->arena, &r->error);
  assert_int_equal(b == NULL, r->error.status != STATUS_OK);
  if (!b) return;
  body_read_chunks(stack_body_of(b), &r->error, bytes, size, cut, step);
  const enum status status = stack_body_finish(b, &r->request);
  assert_int_equal(status, r->error.status);
}

void whole_body_text(struct whole_body *r, const struct whole_made *m, const char *text) {
  const struct body_terms terms = whole_body_terms(BODY_JSON);
  memset(r, 0, sizeof *r);
  whole_body_read(r, m, &terms, &whole_body_wide, text, strlen(text), 0, SIZE_MAX);
}

void whole_body_accept(struct whole_body *r, const struct whole_made *m, const char *text) {
  whole_body_text(r, m, text);
  if (r->error.status) fail_msg("%s\nrefused: %s (%s)", text, r->error.detail, r->error.pointer);
}

void whole_body_safetensors(struct whole_body *r, const struct whole_made *m, const char *header,
                            const void *data, size_t size) {
  const uint64_t length = strlen(header);
  const struct body_terms terms = whole_body_terms(BODY_SAFETENSORS);
  const size_t all = sizeof length + length + size;
  char *body = malloc(all);
  assert_non_null(body);
  memcpy(body, &length, sizeof length);
  memcpy(body + sizeof length, header, length);
  memcpy(body + sizeof length + length, data, size);
  memset(r, 0, sizeof *r);
  whole_body_read(r, m, &terms, &whole_body_wide, body, all, 0, 7);
  free(body);
}

void whole_body_however_cut(const struct whole_made *m, enum body_form form, const char *bytes,
                            size_t size, void (*check)(const struct stack_request *)) {
  const struct body_terms terms = whole_body_terms(form);
  for (size_t cut = 0; cut <= size; cut++) {
    struct whole_body r = {0};
    whole_body_read(&r, m, &terms, &whole_body_wide, bytes, size, cut, cut ? SIZE_MAX : 1);
    if (r.error.status) fail_msg("%zu: %s (%s)", cut, r.error.detail, r.error.pointer);
    check(&r.request);
    arena_free(&r.arena);
  }
}

void whole_body_in_any_budget(const struct whole_made *m, enum body_form form, const char *bytes,
                              size_t size) {
  static const size_t steps[] = {9, SIZE_MAX};
  const struct body_terms terms = whole_body_terms(form);
  for (size_t i = 0; i < 2; i++) {
    struct whole_body r = {0};
    struct short_memory budget = {.arena = &r.arena, .limit = 500};
    while (short_memory_next(&budget, 200)) {
      assert_true(budget.limit < 1 << 20);
      whole_body_read(&r, m, &terms, &whole_body_wide, bytes, size, 9, steps[i]);
      short_memory_is_enough(&budget, r.error.status, &r.error);
    }
  }
}

void whole_body_is_refused(const struct whole_body *r, const struct whole_body_refused *as) {
  if (r->error.status != STATUS_INVALID_REQUEST || strcmp(r->error.pointer, as->pointer) != 0 ||
      !strstr(r->error.detail, as->words))
    fail_msg("%s\nstatus %d, at %s: %s", as->text, (int)r->error.status, r->error.pointer,
             r->error.detail);
}

void whole_body_refuse(const struct whole_made *m, const struct whole_body_refused *list,
                       size_t count) {
  for (size_t i = 0; i < count; i++) {
    struct whole_body r;
    whole_body_text(&r, m, list[i].text);
    whole_body_is_refused(&r, &list[i]);
    arena_free(&r.arena);
  }
}
