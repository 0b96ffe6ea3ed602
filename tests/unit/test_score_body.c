/* test_score_body: the body of a request to score into the core's run, and every way to get it
 * wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/made_model.h"
#include "tests/support/whole_body.h"

/* --- what is accepted --- */

static const char full[] =
    "{\"targets\":[[7,8,9],[10,49],[11]],\"tokens\":[[1,2],[3,49,-1],[4,5,6]],"
    "\"valid_lens\":[2,1,3],\"target_lens\":[3,1,1],\"return_top\":60,\"return_hidden\":"
    "[\"decoder.0\",\"decoder.-1\"],\"return_attention\":\"average\","
    "\"head_mask\":{\"decoder.1.self\":[1,0]},\"encoding_format\":\"base64\","
    "\"trace\":{\"attention\":\"decoder.0.self\",\"item\":0,\"head\":1,\"query\":3}}";

static void check_full(const struct stack_request *q) {
  static const int32_t fed[] = {1, 2, 7, 8, 3, 4, 5, 6}, foretold[] = {-1, 7, 8, 9, 10, -1, -1, 11},
                       lens[] = {4, 1, 3}, target_lens[] = {3, 1, 1};
  static const size_t rows[] = {1, 4, 7};
  const struct stack_run *r = q->main.run;
  assert_int_equal(r->geometry.items, 3);
  assert_int_equal(r->geometry.q_rows, 8);
  assert_true(r->geometry.causal);
  assert_memory_equal(r->tokens, fed, sizeof fed);
  assert_memory_equal(r->targets, foretold, sizeof foretold);
  assert_memory_equal(q->main.lens, lens, sizeof lens);
  assert_memory_equal(q->target_lens, target_lens, sizeof target_lens);
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal(r->geometry.item[i].q, lens[i]);
    assert_int_equal(q->scored[i].count, target_lens[i]);
    assert_int_equal(q->scored[i].row, rows[i]);
  }
  assert_false(stack_makes_vectors(r)); /* whatever the model's default is */
  assert_false(r->normalize || q->targets_alike || q->main.rectangular || q->unbatched);
  assert_int_equal(q->top, WHOLE_MADE_TOKENS); /* of 60 that are asked for there are so many */
  assert_int_equal(r->top, WHOLE_MADE_TOKENS);
  assert_int_equal(q->targets, 5);
  assert_int_equal(q->most_targets, 3);
  assert_int_equal(q->main.widest, 4); /* of 2 tokens and 3 targets, and of 3 and 2 */
  assert_true(r->embedded && r->wish[2].hidden && q->base64 && q->trace);
}

static void a_full_request_however_it_is_cut(void **state) {
  (void)state;
  whole_body_however_cut(&model, BODY_JSON, full, sizeof full - 1, check_full);
}

static void one_item_is_no_batch(void **state) {
  (void)state;
  struct whole_body r;
  whole_body_accept(
      &r, &model, "{\"tokens\":[1,2,99],\"targets\":[3,4,-5],\"valid_lens\":2,\"target_lens\":2}");
  assert_true(r.request.unbatched);
  assert_int_equal(r.request.main.run->geometry.q_rows, 3);
  assert_int_equal(r.request.main.run->tokens[2], 3);
  assert_int_equal(r.request.main.run->targets[2], 4);
  assert_int_equal(r.request.main.widest, 5);
  arena_free(&r.arena);
  whole_body_accept(&r, &model,
                    "{\"tokens\":[1],\"targets\":[2],\"valid_lens\":null,\"target_lens\":null}");
  assert_int_equal(r.request.main.run->geometry.q_rows, 1);
  assert_true(r.request.targets_alike && r.request.main.rectangular && r.request.top == 0);
  arena_free(&r.arena);
}

static void the_positions_are_used_up(void **state) {
  (void)state;
  struct whole_body r;
  whole_body_accept(&r, &model, "{\"tokens\":[1,1,1,1,1,1],\"targets\":[1,1,1,1,1,1,1]}");
  assert_int_equal(r.request.main.run->geometry.q_rows, WHOLE_MADE_POSITIONS);
  arena_free(&r.arena);
}

static void an_empty_batch_is_one(void **state) {
  (void)state;
  struct whole_body r;
  whole_body_accept(&r, &model,
                    "{\"tokens\":[],\"targets\":[],\"target_lens\":[],\"valid_lens\":[]}");
  assert_int_equal(r.request.main.run->geometry.items, 0);
  assert_non_null(r.request.main.run->tokens);
  assert_non_null(r.request.scored);
  arena_free(&r.arena);
}

static void safetensors_say_the_same(void **state) {
  (void)state;
  struct whole_body r;
  static const struct {
    int64_t tokens[4];
    int32_t targets[4], lens[2];
  } data = {{1, 2, 3, 99}, {4, 5, 6, 99}, {2, 1}};
  whole_body_safetensors(
      &r, &model,
      "{\"__metadata__\":{\"return_top\":\"3\"},"
      "\"tokens\":{\"dtype\":\"I64\",\"shape\":[2,2],\"data_offsets\":[0,32]},"
      "\"targets\":{\"dtype\":\"I32\",\"shape\":[2,2],\"data_offsets\":[32,48]},"
      "\"valid_lens\":{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":[48,56]},"
      "\"target_lens\":{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":[48,56]}}",
      &data, 48);
  if (r.error.status == STATUS_OK) fail_msg("data of two tensors overlap");
  arena_free(&r.arena);
  whole_body_safetensors(
      &r, &model,
      "{\"__metadata__\":{\"return_top\":\"3\"},"
      "\"tokens\":{\"dtype\":\"I64\",\"shape\":[2,2],\"data_offsets\":[0,32]},"
      "\"targets\":{\"dtype\":\"I32\",\"shape\":[2,2],\"data_offsets\":[32,48]},"
      "\"valid_lens\":{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":[48,56]}}",
      &data, sizeof data);
  assert_string_equal(r.error.pointer, "/targets/1/1"); /* its 99 counts */
  arena_free(&r.arena);
  whole_body_safetensors(&r, &model,
                         "{\"tokens\":{\"dtype\":\"I32\",\"shape\":[0,5],\"data_offsets\":[0,0]},"
                         "\"targets\":{\"dtype\":\"I32\",\"shape\":[0,3],\"data_offsets\":[0,0]}}",
                         "", 0);
  assert_int_equal(r.error.status, STATUS_OK);
  assert_int_equal(r.request.main.widest, 7);
  assert_int_equal(r.request.most_targets, 3);
  arena_free(&r.arena);
}

/* --- what is refused --- */

static void wrong_requests(void **state) {
  (void)state;
#define TWO "{\"tokens\":[[1],[2,3]],"
  static const struct whole_body_refused list[] = {
      {"{\"targets\":[[1]]}", "/tokens", "the field \"tokens\" is missing"},
      {"{\"tokens\":[[1]]}", "/targets", "the field \"targets\" is missing"},
      {TWO "\"targets\":[[1]]}", "/targets", "targets has 1 items, but tokens has 2"},
      {TWO "\"targets\":[1,2]}", "/targets", "1 dimensions, expected 2"},
      {"{\"tokens\":[1],\"targets\":[[1]]}", "/targets", "2 dimensions, expected 1"},
      {"{\"tokens\":[],\"targets\":[[1]]}", "/targets", "1 items, but tokens has 0"},
      {TWO "\"targets\":[[1],[]]}", "/targets/1", "no targets"},
      {"{\"tokens\":[1],\"targets\":[]}", "/targets", "no targets"},
      {"{\"tokens\":[[1],[]],\"targets\":[[1],[1]]}", "/tokens/1", "no tokens"},
      {TWO "\"targets\":[[1],[1]],\"valid_lens\":[1,0]}", "/tokens/1", "no tokens"},
      {TWO "\"targets\":[[1],[1]],\"target_lens\":[0,1]}", "/targets/0", "no targets"},
      {TWO "\"targets\":[[1],[1]],\"target_lens\":[1,2]}", "/target_lens/1",
       "the valid length is 2, but the item has 1 targets"},
      {TWO "\"targets\":[[1],[1]],\"target_lens\":[1]}", "/target_lens", "1 valid lengths for 2"},
      {TWO "\"targets\":[[1],[1]],\"target_lens\":1}", "/target_lens", "a batch requires a list"},
      {"{\"tokens\":[1],\"targets\":[1],\"target_lens\":[1]}", "/target_lens", "a single item"},
      {TWO "\"targets\":[[1],[1,2,50]]}", "/targets/1/2",
       "token 50 is out of range: the vocabulary is 0 to 49"},
      {TWO "\"targets\":[[-1],[1]]}", "/targets/0/0", "token -1 is"},
      {"{\"tokens\":[[1],[2,50]],\"targets\":[[1],[1]]}", "/tokens/1/1", "token 50"},
      {"{\"tokens\":[1],\"targets\":[1.5]}", "/targets/0", "integer"},
      {"{\"tokens\":[1,1,1,1,1,1],\"targets\":[1,1,1,1,1,1,1,1]}", "/targets",
       "6 tokens and 8 targets need 13 positions (the last target needs none), which exceeds the "
       "model's context "
       "length of 12"},
      {"{\"tokens\":[[1],[1,1,1,1,1,1,1,1,1,1,1,1,1]],\"targets\":[[1],[1]]}", "/tokens/1",
       "13 tokens exceed the model's context length of 12"},
      {TWO "\"targets\":[[1],[1]],\"return_top\":65}", "/return_top", "from 0 to 64"},
      {TWO "\"targets\":[[1],[1]],\"return_top\":-1}", "/return_top", "from 0 to 64"},
      {TWO "\"targets\":[[1],[1]],\"return_top\":true}", "/return_top", "from 0 to 64"},
      {TWO "\"targets\":[[1],[1]],\"return_lens\":65}", "/return_lens", "return_lens must be"},
      {TWO "\"targets\":[[1],[1]],\"return_lens\":-1}", "/return_lens", "from 0 to 64"},
      {TWO "\"targets\":[[1],[1]],\"return_lens\":\"all\"}", "/return_lens", "from 0 to 64"},
      {TWO "\"targets\":[[1],[1]],\"return_lens\":2.0}", "/return_lens", "from 0 to 64"},
      {TWO "\"targets\":[[1],[1]],\"return_hidden\":[\"encoder.0\"]}", "/return_hidden/0",
       "Available: decoder.0 to decoder.3"},
      {"{\"tokens\":[1],\"targets\":[1],\"trace\":{\"attention\":\"decoder.0.self\",\"item\":0,"
       "\"head\":0,\"query\":1}}",
       "/trace/query", "there are 1 queries"},
      {"{\"pool\":\"mean\"}", "/pool", "POST /v1/models/NAME/encode"},
      {"{\"dimensions\":3}", "/dimensions", "POST /v1/models/NAME/encode"},
      {"{\"normalize\":true}", "/normalize", "POST /v1/models/NAME/encode"},
      {"{\"embeddings\":[]}", "/embeddings", "use \"tokens\" for token ids"},
      {"{\"token_types\":[]}", "/token_types", "POST /v1/models/NAME/encode"},
      {"{\"attention_mask\":[]}", "/attention_mask", "valid_lens"},
      {"{\"labels\":[]}", "/labels", "use \"targets\""},
      {"{\"top_logprobs\":5}", "/top_logprobs", "use \"return_top\""},
      {"{\"max_new_tokens\":5}", "/max_new_tokens", "/generate calls it \"max_tokens\""},
      {"{\"num_beams\":5}", "/num_beams", "/generate calls it \"beams\""},
      {"{\"do_sample\":true}", "/do_sample", "\"temperature\""},
      {"{\"target\":[]}", "/target", "did you mean \"targets\"?"},
  };
  WHOLE_BODY_REFUSE(&model, list);
}

/* What each request takes is accepted at its bytes, and refused at one less. */
static void limits_are_exact(void **state) {
  (void)state;
  enum { TEXT = 16, TOP = 64, FLOATS = 4, STATES = 4 };
#define UNEVEN "{\"tokens\":[[1],[2]],\"targets\":[[1,2,3],[4]]"
  static const struct {
    const char *body;
    size_t bytes;
    bool binary;
  } list[] = {
      {UNEVEN "}", 4 * TEXT, false},
      {UNEVEN ",\"return_top\":2}", 4 * TEXT + 8 * TOP, false},
      {UNEVEN ",\"return_top\":2,\"encoding_format\":\"base64\"}", 6 * 6 + 8 * TOP, false},
      {UNEVEN "}", 6 * FLOATS, true},
      {UNEVEN ",\"return_top\":2}", 6 * FLOATS + 12 * 2 * FLOATS, true},
      {UNEVEN ",\"return_lens\":3}", 4 * TEXT + 4 * STATES * 3 * TOP, false},
      {UNEVEN ",\"return_lens\":3}", 6 * FLOATS + 6 * STATES * 3 * 2 * FLOATS, true},
      {UNEVEN ",\"return_hidden\":true}", 4 * TEXT + 4 * 8 * TEXT, false},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    for (size_t less = 0; less < 2; less++) {
      const struct body_limits limits = {9, 2 * 3 * (9 + 1), list[i].bytes - less, 9, 9, 0};
      struct body_terms terms = whole_body_terms(BODY_JSON);
      struct whole_body r = {0};
      terms.wants_binary = list[i].binary;
      whole_body_read(&r, &model, &terms, &limits, list[i].body, strlen(list[i].body), 0, SIZE_MAX);
      if (r.error.status != (less ? STATUS_TOO_LARGE : STATUS_OK))
        fail_msg("%zu - %zu: %d, %s", i, less, (int)r.error.status, r.error.detail);
      if (less) assert_string_equal(r.error.limit, "max_answer_bytes");
      arena_free(&r.arena);
    }
  const struct body_limits few = {9, 2 * 3 * (9 + 1) - 1, 1000, 9, 9, 0};
  const struct body_terms terms = whole_body_terms(BODY_JSON);
  struct whole_body r = {0};
  whole_body_read(&r, &model, &terms, &few, UNEVEN "}", sizeof UNEVEN, 0, SIZE_MAX);
  assert_string_equal(r.error.limit, "max_pairs");
  arena_free(&r.arena);
}

/* --- memory --- */

static void a_full_budget_at_every_step(void **state) {
  (void)state;
  whole_body_in_any_budget(&model, BODY_JSON, full, sizeof full - 1);
}

int main(void) {
  whole_body_ask = ASK_SCORE;
  made_model_how =
      (struct whole_made_how){.decoder = true, .pool = STACK_POOL_MEAN, .normalize = true};
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_full_request_however_it_is_cut),
      cmocka_unit_test(one_item_is_no_batch),
      cmocka_unit_test(the_positions_are_used_up),
      cmocka_unit_test(an_empty_batch_is_one),
      cmocka_unit_test(safetensors_say_the_same),
      cmocka_unit_test(wrong_requests),
      cmocka_unit_test(limits_are_exact),
      cmocka_unit_test(a_full_budget_at_every_step),
  };
  return cmocka_run_group_tests(tests, made_model_enter, made_model_leave);
}
