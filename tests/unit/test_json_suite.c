/* test_json_suite: what is JSON and what is not, case by case: y must be taken, n must be refused.
 *
 * The names and what they stand for are those of the JSON parsing test suite; `i` are the cases
 * that RFC 8259 leaves to the reader, with what this one does (yes, no). Each text is read as a
 * value in pieces cut at every byte, as a key that means nothing of a v2 request, and as a body. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/json/json_skim.h"
#include "server/number/number.h"
#include "tests/support/body_read.h"

struct json_case {
  const char *name, *text;
  size_t size;
};

#define CASE(name, text) \
  { name, text, sizeof text - 1 }

static const struct json_case cases[] = {
#include "tests/unit/json_cases.def"
};

/* y, or i with yes. */
static bool is_json(const struct json_case *c) {
  return c->name[0] == 'y' || strncmp(c->name, "i_yes", 5) == 0;
}

/* --- as a value --- */

/* In a block of its own, so that a sanitizer sees a byte read behind it. */
static size_t feed(struct json_skim *s, const char *text, size_t size, size_t at, bool *complete,
                   struct error *e) {
  char *copy = malloc(size ? size : 1);
  assert_non_null(copy);
  memcpy(copy, text, size);
  const size_t used = json_skim_feed(s, copy, size, at, complete, e);
  free(copy);
  return used;
}

/* Reads the text in two pieces: is it one value with blanks behind it? */
static bool read_cut(const struct json_case *c, size_t cut, struct error *e) {
  struct json_skim s;
  bool complete = false;
  json_skim_begin(&s);
  size_t used = feed(&s, c->text, cut, 0, &complete, e);
  if (!complete && !e->status) used += feed(&s, c->text + used, c->size - used, used, &complete, e);
  if (!complete && !e->status) feed(&s, " ", 1, used, &complete, e);
  while (used < c->size && is_blank(c->text[used])) used++;
  return complete && !e->status && used == c->size;
}

static void each_case_is_judged_however_it_is_cut(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct error whole = {0};
    const bool taken = read_cut(&cases[i], cases[i].size, &whole);
    if (taken != is_json(&cases[i]))
      fail_msg("%s is %s %s", cases[i].name, taken ? "taken" : "refused", whole.detail);
    for (size_t cut = 0; cut < cases[i].size; cut++) {
      struct error e = {0};
      assert_int_equal(read_cut(&cases[i], cut, &e), taken);
      assert_int_equal(e.status, whole.status);
      assert_int_equal(e.offset, whole.offset);
    }
  }
}

/* --- as a part of a request, and as a request --- */

static const struct model model = {
    .name = "m",
    .shape = {.heads = 1, .query_size = 2, .key_size = 2, .value_size = 2, .output_size = 2}};

static enum status read_body(enum body_form form, const char *text, size_t size) {
  const struct body_terms terms = body_read_terms(ASK_ATTENTION, form);
  struct body_result r = {0};
  body_read(&r, &model, &terms, &body_read_wide, text, size, 0, SIZE_MAX);
  arena_free(&r.arena);
  return r.error.status;
}

static void within_a_request_they_are_judged_alike(void **state) {
  (void)state;
  static const char before[] = "{\"x\":";
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const size_t front = sizeof before - 1;
    char *text = malloc(front + cases[i].size + 1);
    assert_non_null(text);
    memcpy(text, before, front);
    memcpy(text + front, cases[i].text, cases[i].size);
    text[front + cases[i].size] = '}';
    const enum status status = read_body(BODY_V2, text, front + cases[i].size + 1);
    free(text);
    /* What is JSON lacks the inputs. */
    if (status != (is_json(&cases[i]) ? STATUS_INVALID_REQUEST : STATUS_INVALID_JSON))
      fail_msg("%s has status %d", cases[i].name, status);
  }
}

/* None of them is a request. What is no JSON is told so, but for objects, of which the first name
 * is unknown. */
static void no_case_is_a_request(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct json_case *c = &cases[i];
    const enum status status = read_body(BODY_JSON, c->text, c->size);
    const bool request = status == STATUS_INVALID_REQUEST;
    if (is_json(c) ? !request : status != STATUS_INVALID_JSON && !(c->text[0] == '{' && request))
      fail_msg("%s has status %d", c->name, status);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_case_is_judged_however_it_is_cut),
      cmocka_unit_test(within_a_request_they_are_judged_alike),
      cmocka_unit_test(no_case_is_a_request),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
