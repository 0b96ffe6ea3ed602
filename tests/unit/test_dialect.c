/* test_dialect: bodies in another service's words, however they are cut: what they ask a model for,
 * every mistake's place, memory that ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "core/base/size.h"
#include "server/dialect/dialect_body.h"
#include "server/service/exchange.h"
#include "tests/support/body_read.h"
#include "tests/support/made_model.h"

static const struct body_limits limits = {.max_items = 3,
                                          .max_pairs = 1 << 20,
                                          .max_answer_bytes = 1 << 20,
                                          .max_tokens = 100,
                                          .max_body_bytes = 40};
static const struct dialect *dialect; /* of what is asked */
static enum body_ask asks = ASK_ENCODE;

struct asking {
  struct arena arena;
  struct error error;
  struct body_terms terms;
  struct dialect_body *body;
  const char *model;
  struct stack_request request;
};

/* Reads a body in chunks, and asks the model. The caller frees the arena. */
static void ask(struct asking *k, const char *json, size_t cut, size_t step,
                struct budget *budget) {
  memset(k, 0, sizeof *k);
  arena_init(&k->arena, budget);
  k->terms = body_read_terms(asks, BODY_JSON);
  k->terms.dialect = dialect;
  k->body = dialect_body_new(&k->terms, &limits, &k->arena, &k->error);
  assert_int_equal(k->body == NULL, k->error.status != STATUS_OK);
  if (!k->body) return;
  body_read_chunks(dialect_body_of(k->body), &k->error, json, strlen(json), cut, step);
  if (dialect_body_finish(k->body, &k->model) == STATUS_OK && asks < ASK_TOKENIZE)
    dialect_body_ask(k->body, &model.whole, &k->request);
}

/* Reads it in every two parts, and byte by byte; `check` looks at what has become of it. */
static void each_cut(const char *json, void check(struct asking *k, const void *of),
                     const void *of) {
  for (size_t cut = 0; cut <= strlen(json); cut++) {
    struct asking k;
    ask(&k, json, cut, cut ? SIZE_MAX : 1, NULL);
    check(&k, of);
    arena_free(&k.arena);
  }
}

/* --- what is asked --- */

struct expected {
  const char *json, *model;
  size_t items, rows, dimensions;
  bool unbatched, base64;
  int32_t token[4];
};

static void check_asked(struct asking *k, const void *of) {
  const struct expected *x = of;
  const struct stack_run *run = k->request.main.run;
  if (k->error.status) fail_msg("%s: %s", x->json, k->error.detail);
  if (x->model)
    assert_string_equal(k->model, x->model);
  else
    assert_null(k->model);
  assert_int_equal(run->geometry.items, x->items);
  assert_int_equal(run->geometry.q_rows, x->rows);
  assert_memory_equal(run->tokens, x->token, x->rows * sizeof *x->token);
  assert_int_equal(run->dimensions, x->dimensions);
  assert_int_equal(run->vectors, STACK_VECTORS_MEAN); /* the model has none of its own */
  assert_int_equal(k->request.unbatched, x->unbatched);
  assert_int_equal(k->request.base64, x->base64);
}

static void ids_however_they_are_cut(void **state) {
  (void)state;
  static const struct expected list[] = {
      {"{\"input\":[1,2,3]}", NULL, 1, 3, 0, true, false, {1, 2, 3}},
      {"{\"input\": [ [1,2] , [ 3 ] ],\"model\":\"m\"}", "m", 2, 3, 0, false, false, {1, 2, 3}},
      {"{\"model\":\"m\\u006f\",\"input\":[[0]],\"encoding_format\":\"base64\"}",
       "mo",
       1,
       1,
       0,
       false,
       true,
       {0}},
      {" {\"dimensions\":4,\"input\"\n:\n[\n[\n7]],\"user\":\"u\"}",
       NULL,
       1,
       1,
       4,
       false,
       false,
       {7}},
      {"{\"model\":\"m\\u0000\",\"input\":[5]}", "", 1, 1, 0, true, false, {5}},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    each_cut(list[i].json, check_asked, &list[i]);
}

/* --- what is refused --- */

struct refusal {
  const char *json;
  enum status status;
  const char *pointer, *words;
};

static void check_refused(struct asking *k, const void *of) {
  const struct refusal *x = of;
  if (k->error.status != x->status || strcmp(k->error.pointer, x->pointer) != 0 ||
      !strstr(k->error.detail, x->words))
    fail_msg("%s: %d at %s, %zu: %s", x->json, (int)k->error.status, k->error.pointer,
             k->error.offset, k->error.detail);
}

static void mistakes_are_found_in_their_place(void **state) {
  (void)state;
  static const struct refusal list[] = {
      {"{}", STATUS_INVALID_REQUEST, "/input", "is missing"},
      {"{\"input\":7}", STATUS_INVALID_REQUEST, "/input", "expected a string"},
      {"{\"input\":[]}", STATUS_INVALID_REQUEST, "/input", "the list is empty"},
      {"{\"input\":[ [ ] ]}", STATUS_INVALID_REQUEST, "/input/0", "no vector"},
      {"{\"input\":[ \"a\" , 7]}", STATUS_INVALID_REQUEST, "/input/1", "expected a string"},
      {"{\"input\":[ [ \"a\"]]}", STATUS_INVALID_REQUEST, "/input/0", "got a list"},
      {"{\"input\":[\"\"]}", STATUS_INVALID_REQUEST, "/input/0", "the text is empty"},
      {"{\"input\":\"\"}", STATUS_INVALID_REQUEST, "/input", "the text is empty"},
      {"{\"input\":\"a\"}", STATUS_INVALID_REQUEST, "/input", "no tokenizer"},
      {"{\"input\":[[[1]]]}", STATUS_INVALID_REQUEST, "/input/0/0", ""},
      {"{\"input\":[true]}", STATUS_INVALID_REQUEST, "/input/0", "expected a string"},
      {"{\"input\":[[1],[2,50]]}", STATUS_INVALID_REQUEST, "/input/1/1",
       "out of range: the vocabulary"},
      {"{\"input\":[1,50]}", STATUS_INVALID_REQUEST, "/input/1", "out of range: the vocabulary"},
      {"{\"input\":[[1],[2],[3],[4]]}", STATUS_TOO_LARGE, "", ""},
      {"{\"input\":[\"a\",\"b\",\"c\",\"d\"]}", STATUS_TOO_LARGE, "", "more than 3 texts"},
      {"{\"input\":[1],\"dimensions\":9}", STATUS_INVALID_REQUEST, "/dimensions", "exceed the 8"},
      {"{\"input\":[1],\"truncate\":true}", STATUS_INVALID_REQUEST, "/truncate", "token ids"},
      {"{\"input\":[1],\"model\":1}", STATUS_INVALID_REQUEST, "/model", "must be a string"},
      {"{\"input\":[1],\"pool\":1}", STATUS_INVALID_REQUEST, "/pool", "accepts another"},
      {"{\"input\":[,1]}", STATUS_INVALID_JSON, "", "','"},
      {"{\"input\":[[1,]]}", STATUS_INVALID_JSON, "", "']'"},
      {"{\"input\":[\"a\"", STATUS_INVALID_JSON, "", "unexpected end of the body"},
      {"{\"input\":[", STATUS_INVALID_JSON, "", "unexpected end of the body"},
      {"{\"input\":[[1],[2]}", STATUS_INVALID_JSON, "", "'}'"},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    each_cut(list[i].json, check_refused, &list[i]);
}

/* --- memory --- */

static void plan(struct asking *k) {
  struct answer answer;
  struct tokenize_request tokens;
  if (asks >= ASK_TOKENIZE) {
    if (!k->error.status) dialect_body_tokenize(k->body, &model.whole, &tokens, &answer);
    return;
  }
  if (k->error.status || stack_request_prepare(&k->request, &k->arena, &k->error)) return;
  dialect_body_answer(k->body, "made", &k->request, &answer);
}

static void check_budgets(const char *json) {
  struct budget budget;
  struct asking k;
  for (size_t limit = 0;; limit += 64) {
    budget_init(&budget, limit);
    ask(&k, json, 5, 7, &budget);
    plan(&k);
    arena_free(&k.arena);
    assert_int_equal(budget.used, 0);
    if (!k.error.status) break;
    assert_string_equal(k.error.limit, "memory_budget_bytes");
    assert_true(limit < 1000000);
  }
}

static void a_full_budget_at_every_step(void **state) {
  (void)state;
  check_budgets("{\"input\":[[1,2],[3]],\"model\":\"made\",\"user\":\"u\"}");
}

/* --- documents in an order --- */

static int enter_ranking(void **state) {
  static const char words[] = "{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"?\",\"vocab\":"
                              "{\"?\":0,\"a\":1,\"b\":2,\"c\":3}},\"pre_tokenizer\":"
                              "{\"type\":\"Whitespace\"}}";
  struct error e = {0};
  (void)state;
  json_t *json = json_loads(words, 0, NULL);
  model.whole.tokenizer = tokenizer_new(json, &e);
  json_decref(json);
  dialect = &rerank;
  return e.status;
}

static int leave_ranking(void **state) {
  (void)state;
  tokenizer_free(model.whole.tokenizer);
  model.whole.tokenizer = NULL;
  dialect = &embeddings;
  return 0;
}

static void check_texts(struct asking *k, const void *of) {
  static const int32_t token[] = {1, 2, 2, 1, 3};
  const struct stack_run *run = k->request.main.run;
  if (k->error.status) fail_msg("%s: %s", (const char *)of, k->error.detail);
  assert_int_equal(run->geometry.items, 3); /* the query is behind the documents */
  assert_int_equal(run->geometry.q_rows, 5);
  assert_memory_equal(run->tokens, token, sizeof token);
  assert_int_equal(run->vectors, STACK_VECTORS_MEAN);
  assert_true(run->normalize);
}

static void documents_however_they_are_cut(void **state) {
  (void)state;
  static const char *const list[] = {
      "{\"query\":\"a c\",\"documents\":[\"a b\",\"b\"]}",
      "{\"documents\":[{\"text\":\"a b\"}, { \"text\" : \"b\" }],\"top_n\":1,\"query\":\"a c\"}"};
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) each_cut(list[i], check_texts, list[i]);
}

static void mistakes_of_documents(void **state) {
  (void)state;
  static const struct refusal list[] = {
      {"{\"query\":\"a\"}", STATUS_INVALID_REQUEST, "/documents", "is missing"},
      {"{\"documents\":[\"a\"]}", STATUS_INVALID_REQUEST, "/query", "is missing"},
      {"{\"query\":\"a\",\"documents\":[]}", STATUS_INVALID_REQUEST, "/documents",
       "the list is empty"},
      {"{\"query\":\"a\",\"documents\":[\"a\",\"\"]}", STATUS_INVALID_REQUEST, "/documents/1", ""},
      {"{\"query\":\"\",\"documents\":[\"a\"]}", STATUS_INVALID_REQUEST, "/query", ""},
      {"{\"query\":\"a\",\"documents\":[{\"title\":\"b\"}]}", STATUS_INVALID_REQUEST,
       "/documents/0", "one member"},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    each_cut(list[i].json, check_refused, &list[i]);
}

static void a_full_budget_at_every_step_of_a_ranking(void **state) {
  (void)state;
  check_budgets("{\"query\":\"a\",\"documents\":[\"b c\",{\"text\":\"a\"}],\"top_n\":1}");
}

static void a_full_budget_at_every_step_of_others(void **state) {
  (void)state;
  static const struct {
    const struct dialect *dialect;
    enum body_ask ask;
    const char *json;
  } list[] = {
      {&cohere_embed, ASK_ENCODE, "{\"texts\":[\"a b\",\"c\"],\"truncate\":\"END\"}"},
      {&cohere_embed_v2, ASK_ENCODE, "{\"texts\":[\"a b\"],\"input_type\":\"clustering\"}"},
      {&tei_embed_all, ASK_ENCODE, "{\"inputs\":[\"a b\",\"c\"]}"},
      {&tei_similarity, ASK_ENCODE,
       "{\"inputs\":{\"source_sentence\":\"a\",\"sentences\":[\"b c\",\"c\"]},"
       "\"parameters\":{\"truncate\":true}}"},
      {&tei_tokenize, ASK_TOKENIZE, "{\"inputs\":[\"a b\",\"c\"]}"},
      {&tei_tokenize, ASK_TOKENIZE, "{\"inputs\":[\"a b\",\"c\"],\"prompt_name\":\"say\"}"},
      {&tei_decode, ASK_DETOKENIZE, "{\"ids\":[[1,2],[3]]}"},
  };
  model.whole.prompts = json_pack("{s:s}", "say", "b ");
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    dialect = list[i].dialect, asks = list[i].ask;
    check_budgets(list[i].json);
  }
  json_decref(model.whole.prompts);
  model.whole.prompts = NULL;
  asks = ASK_ENCODE;
}

int main(void) {
  dialect = &embeddings;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ids_however_they_are_cut),
      cmocka_unit_test(mistakes_are_found_in_their_place),
      cmocka_unit_test(a_full_budget_at_every_step),
      cmocka_unit_test_setup_teardown(documents_however_they_are_cut, enter_ranking, leave_ranking),
      cmocka_unit_test_setup_teardown(mistakes_of_documents, enter_ranking, leave_ranking),
      cmocka_unit_test_setup_teardown(a_full_budget_at_every_step_of_a_ranking, enter_ranking,
                                      leave_ranking),
      cmocka_unit_test_setup_teardown(a_full_budget_at_every_step_of_others, enter_ranking,
                                      leave_ranking),
  };
  return cmocka_run_group_tests(tests, made_model_enter, made_model_leave);
}
