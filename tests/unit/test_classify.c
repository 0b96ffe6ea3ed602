/* test_classify: requests to classify: what they become, what is refused, and their answers in
 * every form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/short_memory.h"
#include "tests/support/whole_answer.h"
#include "tests/support/whole_body.h"

enum { CLASSES = 3 };

static struct whole_made sorts, pooled;

static int make_models(void **state) {
  (void)state;
  whole_made_init(&sorts, &(struct whole_made_how){.classes = CLASSES});
  whole_made_init(&pooled, &(struct whole_made_how){.classes = 2,
                                                    .pooler = true,
                                                    .dense_size = 4,
                                                    .pool = STACK_POOL_MEAN,
                                                    .normalize = true});
  return 0;
}

static int free_models(void **state) {
  (void)state;
  whole_made_free(&sorts);
  whole_made_free(&pooled);
  return 0;
}

/* --- what a request becomes --- */

static void the_outputs_are_the_classes(void **state) {
  (void)state;
  struct whole_body r;
  whole_body_ask = ASK_CLASSIFY;
  whole_body_accept(&r, &pooled, "{\"tokens\":[[1,2],[3]]}");
  const struct stack_run *run = r.request.main.run;
  assert_true(run->after == STACK_AFTER_CLASSES && !run->normalize && run->dimensions == 0);
  assert_int_equal(run->function, STACK_FUNCTION_SOFTMAX);
  assert_ptr_equal(r.request.classes_of, &pooled.whole);
  arena_free(&r.arena);
  whole_body_accept(&r, &pooled, "{\"tokens\":[3],\"function\":\"none\"}");
  assert_int_equal(r.request.main.run->function, STACK_FUNCTION_NONE);
  assert_true(r.request.unbatched);
  arena_free(&r.arena);
  whole_body_accept(&r, &pooled, "{\"function\":\"sigmoid\",\"tokens\":[]}");
  assert_int_equal(r.request.main.run->function, STACK_FUNCTION_SIGMOID);
  arena_free(&r.arena);
}

/* What a model does by itself stays with requests to encode. */
static void encoding_knows_of_no_classes(void **state) {
  (void)state;
  struct whole_body r;
  whole_body_ask = ASK_ENCODE;
  whole_body_accept(&r, &pooled, "{\"tokens\":[[1,2],[3]]}");
  assert_true(r.request.main.run->vectors == STACK_VECTORS_MEAN && r.request.main.run->normalize);
  assert_null(r.request.classes_of);
  arena_free(&r.arena);
  static const struct whole_body_refused list[] = {
      {"{\"tokens\":[[1]],\"function\":\"none\"}", "/function",
       "it is supported by POST /v1/models/NAME/classify"},
      {"{\"tokens\":[[1]],\"raw_scores\":true}", "/raw_scores", "classify calls it \"function\""}};
  WHOLE_BODY_REFUSE(&pooled, list);
}

static void wrong_requests(void **state) {
  (void)state;
  static const char encode[] = "it is supported by POST /v1/models/NAME/encode",
                    generate[] = "it is supported by POST /v1/models/NAME/generate";
  static const char function[] = "function must be \"none\", \"softmax\" or \"sigmoid\"";
  static const struct whole_body_refused list[] = {
      {"{}", "/tokens", "the field \"tokens\" is missing"},
      {"{\"tokens\":[[1]],\"function\":\"tanh\"}", "/function", function},
      {"{\"tokens\":[[1]],\"function\":null}", "/function", function},
      {"{\"tokens\":[[1]],\"pool\":\"cls\"}", "/pool", encode},
      {"{\"tokens\":[[1]],\"dimensions\":1}", "/dimensions", encode},
      {"{\"tokens\":[[1]],\"normalize\":true}", "/normalize", encode},
      {"{\"tokens\":[[1]],\"max_tokens\":1}", "/max_tokens", generate},
      {"{\"tokens\":[[1]],\"targets\":[[1]]}", "/targets", "/score"},
      {"{\"tokens\":[[1]],\"return_top\":1}", "/return_top", "/score"},
      {"{\"tokens\":[[1]],\"return_lens\":1}", "/return_lens", "/score"},
      {"{\"tokens\":[[1],[]]}", "/tokens/1", "an empty item has no class"},
      {"{\"tokens\":[[1],[2]],\"valid_lens\":[1,0]}", "/tokens/1", "has no class"},
      {"{\"text\":\"a\"}", "/text", "this model has no tokenizer"},
      {"{\"tokens\":[[50]]}", "/tokens/0/0", "50"},
  };
  whole_body_ask = ASK_CLASSIFY;
  WHOLE_BODY_REFUSE(&sorts, list);
}

/* --- answers --- */

static void is_answered(const char *body, enum answer_form form, const char *right) {
  struct whole_answer a;
  whole_answer_ask(&a, &sorts, ASK_CLASSIFY, body, form);
  const char *text = a.bytes + (form == ANSWER_SAFETENSORS ? 8 : 0);
  if (!strstr(text, right)) fail_msg("%s\n%s", text, right);
  if (form == ANSWER_SAFETENSORS) whole_answer_just_fits(&a, &sorts, form); /* text has room */
  whole_answer_done(&a);
}

#define LABELS "\"labels\":[\"c0\",\"c\\\"1\",\"ç2\"]"

static void labels_stand_once_behind_the_outputs(void **state) {
  (void)state;
  is_answered("{\"tokens\":[]}", ANSWER_JSON,
              "{\"model\":\"made\",\"outputs\":[]," LABELS ",\"usage\":{\"tokens\":0,");
  is_answered("{\"tokens\":[[1],[2]]}", ANSWER_JSON, "]]," LABELS ",\"usage\":{\"tokens\":2,");
  is_answered("{\"tokens\":[1],\"return_hidden\":true}", ANSWER_JSON, "]," LABELS ",\"hidden\":{");
  is_answered("{\"tokens\":[[1],[2]],\"encoding_format\":\"base64\"}", ANSWER_JSON,
              "\"}," LABELS ",\"valid_lens\":[1,1]");
  is_answered("{\"tokens\":[[1],[2]],\"encoding_format\":\"base64\"}", ANSWER_JSON,
              "\"outputs\":{\"dtype\":\"F32\",\"shape\":[2,3],");
  is_answered("{\"tokens\":[1]}", ANSWER_SAFETENSORS,
              "\"labels\":\"[\\\"c0\\\",\\\"c\\\\\\\"1\\\",\\\"ç2\\\"]\"},\"outputs\":{\"dtype\":"
              "\"F32\",\"shape\":[3],");
  is_answered("{\"tokens\":[[1],[2]]}", ANSWER_SAFETENSORS, "\"shape\":[2,3],");
}

static void functions_are_of_the_same_scores(void **state) {
  (void)state;
  static const char *const functions[] = {"none", "softmax", "sigmoid"};
  double x[3][CLASSES] = {{0}};
  for (unsigned f = 0; f < 3; f++) {
    struct whole_answer a;
    char body[80];
    snprintf(body, sizeof body, "{\"tokens\":[4,5,6],\"function\":\"%s\"}", functions[f]);
    whole_answer_ask(&a, &sorts, ASK_CLASSIFY, body, ANSWER_JSON);
    json_t *answer = whole_answer_json(&a);
    const json_t *outputs = json_object_get(answer, "outputs");
    assert_int_equal(json_array_size(outputs), CLASSES);
    for (size_t i = 0; i < CLASSES; i++) x[f][i] = json_number_value(json_array_get(outputs, i));
    json_decref(answer);
    whole_answer_done(&a);
  }
  const double sum = x[1][0] + x[1][1] + x[1][2];
  assert_true(sum > 1 - 1e-6 && sum < 1 + 1e-6);
  for (size_t i = 0; i < CLASSES; i++)
    for (size_t j = 0; j < CLASSES; j++) {
      assert_true((x[0][i] < x[0][j]) == (x[1][i] < x[1][j]));
      assert_true((x[0][i] < x[0][j]) == (x[2][i] < x[2][j]));
    }
  for (size_t i = 0; i < CLASSES; i++) assert_true((x[0][i] > 0) == (x[2][i] > 0.5));
}

/* Reading, planning and the labels among it. */
static void any_budget_is_too_small_or_enough(void **state) {
  (void)state;
  static const enum answer_form forms[] = {ANSWER_JSON, ANSWER_SAFETENSORS};
  for (size_t i = 0; i < 2; i++) {
    struct whole_answer a = {0};
    struct short_memory budget = {.arena = &a.arena, .limit = 500};
    while (short_memory_next(&budget, 100)) {
      assert_true(budget.limit < 1 << 20);
      memset(&a.request, 0, sizeof a.request);
      a.error = (struct error){0};
      if (whole_answer_read(&a, &sorts, ASK_CLASSIFY, "{\"tokens\":[[1],[2]]}", forms[i]) ==
          STATUS_OK)
        whole_answer_plan(&a, &sorts, forms[i], &whole_answer_wide);
      short_memory_is_enough(&budget, a.error.status, &a.error);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_outputs_are_the_classes),
      cmocka_unit_test(encoding_knows_of_no_classes),
      cmocka_unit_test(wrong_requests),
      cmocka_unit_test(labels_stand_once_behind_the_outputs),
      cmocka_unit_test(functions_are_of_the_same_scores),
      cmocka_unit_test(any_budget_is_too_small_or_enough),
  };
  return cmocka_run_group_tests(tests, make_models, free_models);
}
