/* test_score_answer: answers to requests to score: what the rows that have a target were given, in
 * every form, and nothing of the other rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "tests/support/made_model.h"
#include "tests/support/short_memory.h"
#include "tests/support/whole_answer.h"

/* Of the lens of state l, target t: token 1000 l + 10 t + i with -l - t - i / 4. */
static enum status fill_lens(struct whole_answer *a) {
  const struct stack_request *r = &a->request;
  const size_t states = r->main.form->layers + 1, count = r->logit_lens;
  struct stack_lens *lens = arena_alloc(&a->arena, states, sizeof *lens, &a->error);
  for (size_t l = 0; lens && l < states; l++) {
    float *log = lens[l].log_probability =
        arena_alloc(&a->arena, r->targets * count, sizeof *log, &a->error);
    int32_t *token = lens[l].token =
        arena_alloc(&a->arena, r->targets * count, sizeof *token, &a->error);
    for (size_t i = 0; log && token && i < r->targets * count; i++) {
      log[i] = -(float)l - (float)(i / count) - (float)(i % count) / 4;
      token[i] = (int32_t)(1000 * l + 10 * (i / count) + i % count);
    }
  }
  r->main.run->lens = lens;
  return a->error.status;
}

/* Numbers in its run that tell of their rows. Of row r: log probability -r - 0.5; the token 10 r +
 * i with -r - i / 4 is the one at place i. */
static enum status fill(struct whole_answer *a) {
  struct stack_run *run = a->request.main.run;
  const size_t rows = run->geometry.q_rows, top = a->request.top;
  float *log = arena_alloc(&a->arena, rows, sizeof *log, &a->error);
  float *tops = arena_alloc(&a->arena, rows * top, sizeof *tops, &a->error);
  int32_t *token = arena_alloc(&a->arena, rows * top, sizeof *token, &a->error);
  if (a->error.status) return a->error.status;
  for (size_t row = 0; row < rows; row++) {
    log[row] = -(float)row - 0.5f;
    for (size_t i = 0; i < top; i++) {
      tops[row * top + i] = -(float)row - (float)i / 4;
      token[row * top + i] = (int32_t)(row * 10 + i);
    }
  }
  run->log_probabilities = log;
  run->top_log_probabilities = tops;
  run->top_tokens = token;
  if (run->lens && fill_lens(a)) return a->error.status;
  run->left = (struct spare){0}; /* the hidden states are looked at here, too */
  return STATUS_OK;
}

static enum status prepare(struct whole_answer *a, const char *body, enum answer_form form) {
  if (whole_answer_read(a, &model, ASK_SCORE, body, form) || fill(a)) return a->error.status;
  return whole_answer_plan(a, &model, form, &whole_answer_wide);
}

static void ask(struct whole_answer *a, const char *body, enum answer_form form) {
  memset(a, 0, sizeof *a);
  if (prepare(a, body, form)) fail_msg("%s: %s", body, a->error.detail);
  whole_answer_write(a);
}

#define USAGE(n)         ",\"usage\":{\"tokens\":" n ",\"cached\":0,\"generated\":0}}"
#define MADE             "{\"model\":\"made\","
#define UNEVEN           "{\"tokens\":[[1,2],[3]],\"targets\":[[4],[5,6]]"
#define LIKELY(token, p) "{\"token\":" token ",\"log_probability\":" p "}"

#define SEEN(a, p, b, q, c, r) "[[[" LIKELY(a, p) "]],[[" LIKELY(b, q) "],[" LIKELY(c, r) "]]]"

/* Rows 0 and 1 are the first item's, rows 2 and 3 the second's; row 0 has no target. */
static void text_to_the_letter(void **state) {
  (void)state;
  static const struct {
    const char *body, *answer;
  } list[] = {
      {UNEVEN "}", MADE "\"log_probabilities\":[[-1.5],[-2.5,-3.5]]" USAGE("4")},
      {"{\"tokens\":[1,2],\"targets\":[3,4]}", MADE "\"log_probabilities\":[-1.5,-2.5]" USAGE("3")},
      {"{\"tokens\":[],\"targets\":[],\"return_top\":2}",
       MADE "\"log_probabilities\":[],\"top\":[]" USAGE("0")},
      {UNEVEN ",\"return_top\":2}",
       MADE "\"log_probabilities\":[[-1.5],[-2.5,-3.5]],\"top\":["
            "[[" LIKELY("10", "-1") "," LIKELY(
                "11", "-1.25") "]],"
                               "[[" LIKELY("20", "-2") "," LIKELY(
                                   "21", "-2.25") "],"
                                                  "[" LIKELY("30", "-3") "," LIKELY(
                                                      "31", "-3.25") "]]]" USAGE("4")},
      {UNEVEN ",\"return_lens\":1}", MADE
       "\"log_probabilities\":[[-1.5],[-2.5,-3.5]],\"lens\":{"
       "\"decoder.0\":" SEEN("0", "-0", "10", "-1", "20",
                             "-2") ","
                                   "\"decoder.1\":" SEEN(
                                       "1000", "-1", "1010", "-2", "1020",
                                       "-3") ","
                                             "\"decoder.2\":" SEEN(
                                                 "2000", "-2", "2010", "-3", "2020",
                                                 "-4") ","
                                                       "\"decoder.3\":" SEEN("3000", "-3", "3010",
                                                                             "-4", "3020",
                                                                             "-5") "}" USAGE("4")},
      {"{\"tokens\":[],\"targets\":[],\"return_lens\":2}",
       MADE "\"log_probabilities\":[],\"lens\":{\"decoder.0\":[],\"decoder.1\":[],\"decoder.2\":[],"
            "\"decoder.3\":[]}" USAGE("0")},
      {"{\"tokens\":[1,2],\"targets\":[3],\"return_top\":1}",
       MADE "\"log_probabilities\":[-1.5],\"top\":[[" LIKELY("10", "-1") "]]" USAGE("2")},
      {"{\"tokens\":[[1,9],[2,3]],\"valid_lens\":[1,2],\"targets\":[[4,9],[5,6]],"
       "\"target_lens\":[1,2]}",
       MADE "\"log_probabilities\":[[-0.5],[-2.5,-3.5]]" USAGE("4")},
      /* -1.5, 0 and -2.5, -3.5; the likeliest tokens stay as they are */
      {UNEVEN ",\"return_top\":1,\"encoding_format\":\"base64\"}", MADE
       "\"log_probabilities\":{\"dtype\":\"F32\",\"shape\":[2,2],"
       "\"base64\":\"AADAvwAAAAAAACDAAABgwA==\"},\"top\":[[[" LIKELY(
           "10", "-1") "]],"
                       "[[" LIKELY("20", "-2") "],[" LIKELY(
                           "30", "-3") "]]],"
                                       "\"valid_lens\":[2,2],\"target_lens\":[1,2]" USAGE("4")},
      {"{\"tokens\":[1],\"targets\":[2],\"encoding_format\":\"base64\"}",
       MADE "\"log_probabilities\":{\"dtype\":\"F32\",\"shape\":[1],\"base64\":\"AAAAvw==\"},"
            "\"valid_lens\":1,\"target_lens\":1" USAGE("1")},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    struct whole_answer a;
    ask(&a, list[i].body, ANSWER_JSON);
    assert_string_equal(a.bytes, list[i].answer);
    whole_answer_done(&a);
  }
}

/* The bytes of a tensor, whose type and shape are these. */
static const char *find_tensor(const struct whole_answer *a, const char *name, const char *type,
                               const char *shape, size_t *size) {
  const char *data;
  json_t *header = whole_answer_header(a, &data);
  const json_t *tensor = json_object_get(header, name);
  if (!tensor) fail_msg("there is no %s", name);
  const char *bytes = whole_answer_tensor(tensor, data, size);
  char *text = json_dumps(json_object_get(tensor, "shape"), JSON_COMPACT);
  assert_string_equal(text, shape);
  assert_string_equal(json_string_value(json_object_get(tensor, "dtype")), type);
  free(text);
  json_decref(header);
  return bytes;
}

static void check_tensor(const struct whole_answer *a, const char *name, const char *type,
                         const char *shape, const void *expected, size_t bytes) {
  size_t size;
  const char *found = find_tensor(a, name, type, shape, &size);
  assert_int_equal(size, bytes);
  assert_memory_equal(found, expected, bytes);
}

static void tensors_are_rectangles(void **state) {
  (void)state;
  static const float likely[] = {-1.5f, 0, -2.5f, -3.5f},
                     tops[] = {-1, -1.25f, 0, 0, -2, -2.25f, -3, -3.25f};
  static const int32_t tokens[] = {10, 11, 0, 0, 20, 21, 30, 31}, lens[] = {2, 2},
                       target_lens[] = {1, 2};
  struct whole_answer a;
  ask(&a, UNEVEN ",\"return_top\":2,\"return_hidden\":true}", ANSWER_SAFETENSORS);
  check_tensor(&a, "log_probabilities", "F32", "[2,2]", likely, sizeof likely);
  check_tensor(&a, "top.token", "I32", "[2,2,2]", tokens, sizeof tokens);
  check_tensor(&a, "top.log_probability", "F32", "[2,2,2]", tops, sizeof tops);
  check_tensor(&a, "valid_lens", "I32", "[2]", lens, sizeof lens);
  check_tensor(&a, "target_lens", "I32", "[2]", target_lens, sizeof target_lens);
  size_t size;
  find_tensor(&a, "hidden.decoder.3", "F32", "[2,2,8]", &size);
  whole_answer_done(&a);
  ask(&a, "{\"tokens\":[1,2],\"targets\":[3,4],\"return_top\":1}", ANSWER_SAFETENSORS);
  check_tensor(&a, "log_probabilities", "F32", "[2]", (float[]){-1.5f, -2.5f}, 8);
  check_tensor(&a, "top.token", "I32", "[2,1]", (int32_t[]){10, 20}, 8);
  check_tensor(&a, "target_lens", "I32", "[]", (int32_t[]){2}, 4);
  whole_answer_done(&a);
  ask(&a, "{\"tokens\":[],\"targets\":[],\"return_top\":1}", ANSWER_SAFETENSORS);
  check_tensor(&a, "log_probabilities", "F32", "[0,0]", "", 0);
  check_tensor(&a, "top.token", "I32", "[0,0,1]", "", 0);
  whole_answer_done(&a);
}

/* Number after number, also where pieces meet. */
static void long_answers_are_cut_into_pieces(void **state) {
  (void)state;
  enum { ITEMS = 400, TARGETS = 12, TOP = 3 };
  static char body[1 << 16];
  char *at = stpcpy(body, "{\"return_top\":3,\"tokens\":[[7]");
  for (size_t i = 1; i < ITEMS; i++) at = stpcpy(at, ",[7]");
  at = stpcpy(at, "],\"targets\":[");
  for (size_t i = 0; i < ITEMS; i++) {
    at = stpcpy(at, i ? ",[1" : "[1");
    for (size_t t = 1; t < TARGETS; t++) at = stpcpy(at, ",2");
    at = stpcpy(at, "]");
  }
  stpcpy(at, "]}");
  struct whole_answer a;
  ask(&a, body, ANSWER_JSON);
  assert_true(a.answer.pieces > 2);
  json_t *answer = whole_answer_json(&a);
  const json_t *tops = json_object_get(answer, "top"),
               *likely = json_object_get(answer, "log_probabilities");
  for (size_t i = 0; i < ITEMS; i++)
    for (size_t t = 0; t < TARGETS; t++) {
      const json_t *number = json_array_get(json_array_get(likely, i), t),
                   *top = json_array_get(json_array_get(tops, i), t);
      assert_true(json_number_value(number) == -(double)(i * TARGETS + t) - 0.5);
      assert_int_equal(json_array_size(top), TOP);
      const json_t *last = json_array_get(top, TOP - 1);
      assert_int_equal(json_integer_value(json_object_get(last, "token")),
                       (i * TARGETS + t) * 10 + TOP - 1);
    }
  json_decref(answer);
  whole_answer_done(&a);
  ask(&a, body, ANSWER_SAFETENSORS);
  size_t size;
  const char *found = find_tensor(&a, "top.token", "I32", "[400,12,3]", &size);
  assert_memory_equal(found, a.request.main.run->top_tokens, size);
  whole_answer_done(&a);
}

/* --- limits and memory --- */

static void the_limit_is_exact_for_bytes(void **state) {
  (void)state;
  struct whole_answer a;
  ask(&a, UNEVEN ",\"return_top\":2,\"return_hidden\":true}", ANSWER_SAFETENSORS);
  whole_answer_just_fits(&a, &model, ANSWER_SAFETENSORS);
  whole_answer_done(&a);
}

static void memory_that_ends_anywhere(void **state) {
  (void)state;
  static const char body[] = "{\"tokens\":[1],\"targets\":[2],\"return_top\":2,\"return_lens\":2,"
                             "\"encoding_format\":\"base64\"}";
  for (size_t form = 0; form < 2; form++) {
    struct whole_answer a;
    struct short_memory m = {.arena = &a.arena, .limit = 2000};
    while (short_memory_next(&m, 300)) {
      assert_true(m.limit < 1 << 24);
      a = (struct whole_answer){.arena = a.arena};
      const enum status status = prepare(&a, body, form ? ANSWER_SAFETENSORS : ANSWER_JSON);
      short_memory_is_enough(&m, status, &a.error);
    }
  }
}

int main(void) {
  made_model_how = (struct whole_made_how){.decoder = true};
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(text_to_the_letter),
      cmocka_unit_test(tensors_are_rectangles),
      cmocka_unit_test(long_answers_are_cut_into_pieces),
      cmocka_unit_test(the_limit_is_exact_for_bytes),
      cmocka_unit_test(memory_that_ends_anywhere),
  };
  return cmocka_run_group_tests(tests, made_model_enter, made_model_leave);
}
