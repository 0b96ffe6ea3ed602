/* test_generate_body: the body of a request to generate into the core's run, and the events of its
 * stream. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/size.h"
#include "server/model/answer/stack_answer.h"
#include "server/model/answer/stack_stream.h"
#include "tests/support/made_model.h"
#include "tests/support/whole_body.h"

/* --- what is accepted --- */

static const char full[] =
    "{\"tokens\":[[1,2,-1],[3,49,7]],\"valid_lens\":[2,3],\"max_tokens\":5,\"min_tokens\":2,"
    "\"stop_tokens\":[7,9],\"returns\":2,\"temperature\":0.5,\"top_k\":4,\"top_p\":0.75,"
    "\"seed\":9007199254740991,\"repetition_penalty\":1.5,\"no_repeat_ngram\":3,"
    "\"banned_tokens\":[11],\"return_top\":60,\"stream\":true,\"min_p\":0.125,"
    "\"presence_penalty\":-2,\"frequency_penalty\":2,\"logit_bias\":{\"49\":-100,\"0\":1.5},"
    "\"ignore_eos\":true}";

static void is_full(const struct stack_request *r) {
  static const size_t rows[] = {2, 2, 3, 3};
  static const int32_t tokens[] = {1, 2, 1, 2, 3, 49, 7, 3, 49, 7};
  const struct geometry *g = &r->main.run->geometry;
  const struct stack_choice *c = &r->generation.choice;
  assert_true(r->generates && r->stream && r->main.run->generation == &r->generation);
  assert_int_equal(r->texts, 2);
  assert_int_equal(r->returns, 2);
  assert_int_equal(r->text_tokens, 5);
  assert_int_equal(g->items, 4);
  for (size_t i = 0; i < 4; i++) {
    assert_int_equal(g->item[i].q, rows[i]);
    assert_int_equal(r->generation.sequence[i].item, i / 2);
    assert_int_equal(r->generation.sequence[i].sample, i % 2);
    assert_int_equal(r->generation.sequence[i].most, 5);
  }
  assert_memory_equal(r->main.run->tokens, tokens, sizeof tokens);
  assert_true(c->temperature == 0.5 && c->top_p == 0.75 && c->repetition_penalty == 1.5);
  assert_true(c->top_k == 4 && c->min_tokens == 2 && c->no_repeat_ngram == 3);
  assert_true(c->seed == 9007199254740991 && c->stops == 2 && c->stop[1] == 9);
  assert_true(c->banned_count == 1 && c->banned[0] == 11 && c->ends == 0);
  assert_true(c->min_p == 0.125 && c->presence_penalty == -2 && c->frequency_penalty == 2);
  assert_true(c->biases == 2 && c->bias[0].token == 49 && c->bias[0].added == -100);
  assert_true(c->bias[1].token == 0 && c->bias[1].added == 1.5);
  assert_int_equal(r->generation.top, 50); /* as many as there are */
}

static void a_full_request_however_it_is_cut(void **state) {
  (void)state;
  whole_body_however_cut(&model, BODY_JSON, full, sizeof full - 1, is_full);
}

static void the_model_says_what_a_request_does_not(void **state) {
  (void)state;
  struct whole_body r;
  whole_body_accept(&r, &model, "{\"tokens\":[1,2,3]}");
  assert_int_equal(r.request.generation.sequence[0].most, 10); /* of 12 positions two are taken */
  assert_true(r.request.generation.choice.temperature == 0);
  assert_false(r.request.stream);
  arena_free(&r.arena);
  whole_body_accept(&r, &model, "{\"tokens\":[1,2,3,4,5,6,7,8,9,10,11,12]}");
  assert_int_equal(r.request.generation.sequence[0].most, 1);
  arena_free(&r.arena);
  whole_body_accept(&r, &model, "{\"tokens\":[]}");
  assert_int_equal(r.request.main.run->geometry.items, 0);
  arena_free(&r.arena);
}

/* Many sequences are begun by a worker, not by who reads bodies. */
static void sequences_have_their_cost(void **state) {
  (void)state;
  enum { MICROSECOND = 1000 };
  static const struct {
    const char *body;
    uint64_t least;
  } list[] = {{"{\"tokens\":[1]}", 1},
              {"{\"tokens\":[1],\"returns\":100}", 1000 * MICROSECOND},
              {"{\"tokens\":[1],\"beams\":50}", 500 * MICROSECOND},
              {"{\"tokens\":[[1],[2]],\"returns\":9007199254740991}", 1000000 * MICROSECOND}};
  const struct body_terms terms = whole_body_terms(BODY_JSON);
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    struct whole_body r = {0};
    struct stack_body *b =
        stack_body_new(&model.whole, &terms, &whole_body_wide, &r.arena, &r.error);
    assert_non_null(b);
    body_feed(stack_body_of(b), list[i].body, strlen(list[i].body));
    assert_in_range(body_cost(stack_body_of(b)), list[i].least, 200 * list[i].least * MICROSECOND);
    arena_free(&r.arena);
  }
}

/* --- limits --- */

static void limits_are_exact(void **state) {
  (void)state;
  static const char text[] = "{\"tokens\":[[1],[2,3]],\"max_tokens\":4,\"temperature\":1,"
                             "\"returns\":2}";
  const size_t pairs = 3 * 2 * 2 * (4 * 4 + 5 * 5); /* layers, heads, sequences */
  const struct body_terms terms = whole_body_terms(BODY_JSON);
  static const char *const named[] = {"max_items", "max_pairs", "max_tokens", "max_sequences"};
  for (size_t less = 0; less < 5; less++) {
    const struct body_limits limits = {4 - (less == 1), pairs - (less == 2), 1 << 20,
                                       4 - (less == 3), 4 - (less == 4),     0};
    struct whole_body r = {0};
    whole_body_read(&r, &model, &terms, &limits, text, sizeof text - 1, 0, SIZE_MAX);
    assert_int_equal(r.error.status, less ? STATUS_TOO_LARGE : STATUS_OK);
    if (less) assert_string_equal(r.error.limit, named[less - 1]);
    arena_free(&r.arena);
  }
  const struct body_limits short_answer = {4, pairs, 600, 4, 4, 0};
  struct whole_body r = {0};
  whole_body_read(&r, &model, &terms, &short_answer, text, sizeof text - 1, 0, SIZE_MAX);
  assert_string_equal(r.error.limit, "max_answer_bytes");
  arena_free(&r.arena);
}

static void a_full_budget_at_every_step(void **state) {
  (void)state;
  whole_body_in_any_budget(&model, BODY_JSON, full, sizeof full - 1);
}

/* --- the events of a stream --- */

enum { STREAM_ROOM = 1 << 17 };

/* All of a stream, in parts of so much room. */
static size_t write_stream(struct whole_body *r, size_t room, const char *problem, char *text) {
  struct stack_stream s;
  size_t length = 0;
  assert_int_equal(stack_stream_init(&s, &stack_events, NULL, &r->request, &r->arena, &r->error),
                   STATUS_OK);
  for (size_t n; (n = stack_stream_write(&s, true, problem, text + length, room)) > 0; length += n)
    assert_in_range(n, 1, room);
  text[length] = 0;
  return length;
}

static void a_stream_is_the_same_in_parts(void **state) {
  (void)state;
  static char whole[STREAM_ROOM], part[STREAM_ROOM];
  struct whole_body r;
  whole_body_accept(&r, &model, full);
  struct run *run = &r.request.main.run->run;
  assert_int_equal(stack_request_prepare(&r.request, &r.arena, &r.error), STATUS_OK);
  const size_t bytes = size_round_up(stack_scratch_bytes(model.whole.decoder), 64);
  void *scratch = aligned_alloc(64, bytes);
  do run_compute(run, 1e6, scratch);
  while (run_next_round(run));
  free(scratch);
  const size_t length = write_stream(&r, STREAM_ROOM / 2, NULL, whole);
  size_t events = 0;
  for (const char *at = whole; (at = strstr(at, "data: ")); at++) events++;
  assert_int_equal(events, stack_answer_generated(&r.request) + 4 + 1);
  assert_non_null(strstr(whole, "data: {\"usage\":{\"tokens\":5,\"cached\":0,\"generated\":"));
  for (size_t room = 1; room < 9000; room += room < 4 ? 1 : 700) {
    assert_int_equal(write_stream(&r, room, NULL, part), length);
    assert_memory_equal(part, whole, length);
  }
  write_stream(&r, 1, "{\"status\":503}", part);
  assert_string_equal(strstr(part, "event: "), "event: error\ndata: {\"status\":503}\n\n");
  assert_null(strstr(part, "usage"));
  arena_free(&r.arena);
}

int main(void) {
  whole_body_ask = ASK_GENERATE;
  made_model_how =
      (struct whole_made_how){.decoder = true, .pool = STACK_POOL_MEAN, .normalize = true};
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_full_request_however_it_is_cut),
      cmocka_unit_test(the_model_says_what_a_request_does_not),
      cmocka_unit_test(sequences_have_their_cost),
      cmocka_unit_test(limits_are_exact),
      cmocka_unit_test(a_full_budget_at_every_step),
      cmocka_unit_test(a_stream_is_the_same_in_parts),
  };
  return cmocka_run_group_tests(tests, made_model_enter, made_model_leave);
}
