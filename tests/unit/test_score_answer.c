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

#include "server/stack/stack_answer.h"
#include "server/stack/stack_body.h"
#include "tests/support/whole_made.h"

static const struct body_limits wide = {1000, 1 << 24, 1 << 26, 1000, 1000};
static struct whole_made model;

static int make_model(void **state) {
  (void)state;
  whole_made_init(&model, &(struct whole_made_how){.decoder = true});
  return 0;
}

static int free_model(void **state) {
  (void)state;
  whole_made_free(&model);
  return 0;
}

/* A request, numbers in its run that tell of their rows, and its answer in one form. */
struct answered {
  struct arena arena;
  struct stack_request request;
  struct answer answer;
  struct error error;
  float *log_probability, *top;
  int32_t *token;
  char *bytes;
  size_t size;
};

/* Of row r: log probability -r - 0.5; the token 10 r + i with -r - i / 4 is the one at place i. */
static void fill(struct answered *a) {
  struct stack_run *run = a->request.main.run;
  const size_t rows = run->geometry.q_rows, top = a->request.top;
  a->log_probability = calloc(rows + 1, sizeof(float));
  a->top = calloc(rows * top + 1, sizeof(float));
  a->token = calloc(rows * top + 1, sizeof(int32_t));
  assert_true(a->log_probability && a->top && a->token);
  for (size_t row = 0; row < rows; row++) {
    a->log_probability[row] = -(float)row - 0.5f;
    for (size_t i = 0; i < top; i++) {
      a->top[row * top + i] = -(float)row - (float)i / 4;
      a->token[row * top + i] = (int32_t)(row * 10 + i);
    }
  }
  run->log_probabilities = a->log_probability;
  run->top_log_probabilities = a->top;
  run->top_tokens = a->token;
}

static enum status prepare(struct answered *a, const char *body, enum answer_form form) {
  struct body_terms terms = {.ask = ASK_SCORE,
                             .body_bytes = BODY_UNKNOWN,
                             .json_bytes = BODY_UNKNOWN,
                             .wants_binary = form == ANSWER_SAFETENSORS};
  struct stack_body *b = stack_body_new(&model.whole, &terms, &wide, &a->arena, &a->error);
  if (!b || body_feed(stack_body_of(b), body, strlen(body)) || stack_body_finish(b, &a->request) ||
      stack_request_prepare(&a->request, &a->arena, &a->error))
    return a->error.status;
  fill(a);
  a->request.main.run->left = (struct spare){0}; /* the hidden states are looked at here, too */
  return stack_answer_plan(&a->answer, form, model.model.name, &a->request, &wide, &a->arena,
                           &a->error);
}

static void write_all(struct answered *a) {
  for (size_t i = a->answer.pieces; i-- > 0;) answer_write_piece(&a->answer, i);
  a->size = answer_bytes(&a->answer);
  a->bytes = malloc(a->size + 1);
  assert_non_null(a->bytes);
  size_t at = 0;
  for (size_t i = 0; i < a->answer.pieces; i++) {
    memcpy(a->bytes + at, a->answer.piece[i].iov_base, a->answer.piece[i].iov_len);
    at += a->answer.piece[i].iov_len;
  }
  a->bytes[a->size] = '\0';
}

static void ask(struct answered *a, const char *body, enum answer_form form) {
  memset(a, 0, sizeof *a);
  if (prepare(a, body, form)) fail_msg("%s: %s", body, a->error.detail);
  write_all(a);
}

static void done(struct answered *a) {
  free(a->bytes);
  free(a->log_probability);
  free(a->top);
  free(a->token);
  arena_free(&a->arena);
}

#define USAGE(n)         ",\"usage\":{\"tokens\":" n ",\"cached\":0,\"generated\":0}}"
#define MADE             "{\"model\":\"made\","
#define UNEVEN           "{\"tokens\":[[1,2],[3]],\"targets\":[[4],[5,6]]"
#define LIKELY(token, p) "{\"token\":" token ",\"log_probability\":" p "}"

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
    struct answered a;
    ask(&a, list[i].body, ANSWER_JSON);
    assert_string_equal(a.bytes, list[i].answer);
    done(&a);
  }
}

/* The bytes of a tensor, whose type and shape are these. */
static const char *find_tensor(const struct answered *a, const char *name, const char *type,
                               const char *shape, size_t *size) {
  uint64_t length;
  memcpy(&length, a->bytes, sizeof length);
  json_t *header = json_loadb(a->bytes + 8, (size_t)length, 0, NULL);
  const json_t *tensor = json_object_get(header, name);
  if (!tensor) fail_msg("there is no %s", name);
  const json_t *offsets = json_object_get(tensor, "data_offsets");
  const size_t begin = (size_t)json_integer_value(json_array_get(offsets, 0));
  *size = (size_t)json_integer_value(json_array_get(offsets, 1)) - begin;
  char *text = json_dumps(json_object_get(tensor, "shape"), JSON_COMPACT);
  assert_string_equal(text, shape);
  assert_string_equal(json_string_value(json_object_get(tensor, "dtype")), type);
  free(text);
  json_decref(header);
  return a->bytes + 8 + length + begin;
}

static void check_tensor(const struct answered *a, const char *name, const char *type,
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
  struct answered a;
  ask(&a, UNEVEN ",\"return_top\":2,\"return_hidden\":true}", ANSWER_SAFETENSORS);
  check_tensor(&a, "log_probabilities", "F32", "[2,2]", likely, sizeof likely);
  check_tensor(&a, "top.token", "I32", "[2,2,2]", tokens, sizeof tokens);
  check_tensor(&a, "top.log_probability", "F32", "[2,2,2]", tops, sizeof tops);
  check_tensor(&a, "valid_lens", "I32", "[2]", lens, sizeof lens);
  check_tensor(&a, "target_lens", "I32", "[2]", target_lens, sizeof target_lens);
  size_t size;
  find_tensor(&a, "hidden.decoder.3", "F32", "[2,2,8]", &size);
  done(&a);
  ask(&a, "{\"tokens\":[1,2],\"targets\":[3,4],\"return_top\":1}", ANSWER_SAFETENSORS);
  check_tensor(&a, "log_probabilities", "F32", "[2]", (float[]){-1.5f, -2.5f}, 8);
  check_tensor(&a, "top.token", "I32", "[2,1]", (int32_t[]){10, 20}, 8);
  check_tensor(&a, "target_lens", "I32", "[]", (int32_t[]){2}, 4);
  done(&a);
  ask(&a, "{\"tokens\":[],\"targets\":[],\"return_top\":1}", ANSWER_SAFETENSORS);
  check_tensor(&a, "log_probabilities", "F32", "[0,0]", "", 0);
  check_tensor(&a, "top.token", "I32", "[0,0,1]", "", 0);
  done(&a);
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
  struct answered a;
  ask(&a, body, ANSWER_JSON);
  assert_true(a.answer.pieces > 2);
  json_t *answer = json_loads(a.bytes, JSON_REJECT_DUPLICATES, NULL);
  assert_non_null(answer);
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
  done(&a);
  ask(&a, body, ANSWER_SAFETENSORS);
  size_t size;
  const char *found = find_tensor(&a, "top.token", "I32", "[400,12,3]", &size);
  assert_memory_equal(found, a.token, size);
  done(&a);
}

/* --- limits and memory --- */

static void the_limit_is_exact_for_bytes(void **state) {
  (void)state;
  struct answered a;
  ask(&a, UNEVEN ",\"return_top\":2,\"return_hidden\":true}", ANSWER_SAFETENSORS);
  for (size_t less = 0; less < 2; less++) {
    const struct body_limits limits = {.max_answer_bytes = a.size - less};
    struct error e = {0};
    assert_int_equal(stack_answer_plan(&a.answer, ANSWER_SAFETENSORS, "made", &a.request, &limits,
                                       &a.arena, &e),
                     less ? STATUS_TOO_LARGE : STATUS_OK);
  }
  done(&a);
}

static void memory_that_ends_anywhere(void **state) {
  (void)state;
  static const char body[] =
      "{\"tokens\":[1],\"targets\":[2],\"return_top\":2,\"encoding_format\":\"base64\"}";
  for (size_t form = 0; form < 2; form++) {
    struct budget budget;
    bool fits = false;
    for (size_t limit = 2000; !fits; limit += 300) {
      struct answered a = {0};
      budget_init(&budget, limit);
      arena_init(&a.arena, &budget);
      fits = prepare(&a, body, form ? ANSWER_SAFETENSORS : ANSWER_JSON) == STATUS_OK;
      if (!fits) assert_string_equal(a.error.limit, "memory_budget_bytes");
      done(&a);
      assert_int_equal(atomic_load(&budget.used), 0);
      assert_true(limit < 1 << 24);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(text_to_the_letter),
      cmocka_unit_test(tensors_are_rectangles),
      cmocka_unit_test(long_answers_are_cut_into_pieces),
      cmocka_unit_test(the_limit_is_exact_for_bytes),
      cmocka_unit_test(memory_that_ends_anywhere),
  };
  return cmocka_run_group_tests(tests, make_model, free_model);
}
