/* test_pair_body: bodies of requests to a model of an encoder and a decoder into the core's two
 * runs, searches among them, and every way to get them wrong. */
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

enum {
  L = WHOLE_MADE_LAYERS,
  TARGET_L = WHOLE_MADE_TARGET_LAYERS,
  BEGIN = WHOLE_MADE_BEGIN,
  D = WHOLE_MADE_WIDTH
};

/* --- to be scored --- */

static const char scored[] =
    "{\"tokens\":[[1,2],[3,49,-1],[]],\"valid_lens\":[2,2,0],\"targets\":[[7,8,9],[10,39],[11]],"
    "\"target_lens\":[3,1,1],\"return_top\":60,\"token_types\":[[0,1],[1,0,9],[]],"
    "\"return_hidden\":[\"encoder.0\",\"decoder.-1\",\"decoder.*.cross.input\",\"encoder.1.self."
    "input\"],"
    "\"return_attention\":{\"of\":[\"encoder.-1.self\",\"decoder.0.cross\"],\"as\":\"average\"},"
    "\"head_mask\":{\"decoder.1.cross\":[1,0,1,0.5],\"encoder.*.self\":[1,0]},"
    "\"trace\":{\"attention\":\"decoder.1.cross\",\"item\":0,\"head\":3,\"query\":2}}";

static void check_scored(const struct stack_request *q) {
  static const int32_t read[] = {1, 2, 3, 49}, fed[] = {BEGIN, 7, 8, BEGIN, BEGIN},
                       foretold[] = {7, 8, 9, 10, 11}, types[] = {0, 1, 1, 0},
                       source_lens[] = {2, 2, 0}, lens[] = {3, 1, 1};
  static const size_t rows[] = {0, 3, 4};
  const struct stack_run *r = q->main.run, *source = q->source.run;
  assert_ptr_equal(r->source, source);
  assert_int_equal(source->geometry.items, 3);
  assert_int_equal(source->geometry.q_rows, 4);
  assert_int_equal(r->geometry.items, 3);
  assert_int_equal(r->geometry.q_rows, 5);
  assert_true(r->geometry.causal && !source->geometry.causal);
  assert_memory_equal(source->tokens, read, sizeof read);
  assert_memory_equal(source->types, types, sizeof types);
  assert_memory_equal(r->tokens, fed, sizeof fed);
  assert_memory_equal(r->targets, foretold, sizeof foretold);
  assert_memory_equal(q->source.lens, source_lens, sizeof source_lens);
  assert_memory_equal(q->main.lens, lens, sizeof lens);
  assert_memory_equal(q->target_lens, lens, sizeof lens);
  for (size_t i = 0; i < 3; i++) assert_int_equal(q->scored[i].row, rows[i]);
  assert_true(!stack_makes_vectors(source) && !stack_makes_vectors(r));
  assert_int_equal(q->top, WHOLE_MADE_TARGET_TOKENS);
  assert_int_equal(q->source.widest, 3);
  assert_int_equal(q->main.widest, 3);
  assert_int_equal(q->most_targets, 3);
}

static void check_wishes(const struct stack_request *q) {
  const struct stack_wish *source = q->source.run->wish, *main = q->main.run->wish;
  assert_true(q->source.run->embedded && !q->main.run->embedded);
  for (size_t l = 0; l < L; l++) {
    assert_true(source[l].hidden == false && source[l].input == (l == 1));
    assert_int_equal(source[l].weights, l == L - 1 ? STACK_WEIGHTS_AVERAGE : STACK_WEIGHTS_NONE);
    assert_true(source[l].head_mask[0] == 1 && source[l].head_mask[1] == 0);
  }
  for (size_t l = 0; l < TARGET_L; l++) {
    const struct stack_wish *own = &main[l], *cross = &main[TARGET_L + l];
    assert_true(own->hidden == (l == TARGET_L - 1) && !own->input && !own->head_mask);
    assert_true(cross->input && !cross->hidden);
    assert_int_equal(own->weights, STACK_WEIGHTS_NONE);
    assert_int_equal(cross->weights, l == 0 ? STACK_WEIGHTS_AVERAGE : STACK_WEIGHTS_NONE);
    assert_true(l == 1 ? cross->head_mask[3] == 0.5f : !cross->head_mask);
  }
  assert_ptr_equal(q->trace, main[TARGET_L + 1].trace);
  assert_true(q->trace->item == 0 && q->trace->head == 3 && q->trace->row == 2);
}

static void check_scored_request(const struct stack_request *q) {
  check_scored(q);
  check_wishes(q);
}

static void a_full_request_however_it_is_cut(void **state) {
  (void)state;
  whole_body_ask = ASK_SCORE;
  whole_body_however_cut(&model, BODY_JSON, scored, sizeof scored - 1, check_scored_request);
}

static void a_source_may_be_rows(void **state) {
  (void)state;
  struct whole_body r;
  whole_body_ask = ASK_SCORE;
  whole_body_accept(&r, &model,
                    "{\"embeddings\":[[1,2,3,4,5,6,7,8],[8,7,6,5,4,3,2,1]],\"targets\":[4,5]}");
  assert_true(r.request.unbatched);
  assert_int_equal(r.request.source.run->geometry.q_rows, 2);
  assert_null(r.request.source.run->tokens);
  assert_true(r.request.source.run->embeddings[D] == 8);
  assert_int_equal(r.request.main.run->geometry.q_rows, 2);
  arena_free(&r.arena);
}

static void all_parts_have_short_names(void **state) {
  (void)state;
  struct whole_body r;
  whole_body_ask = ASK_SCORE;
  whole_body_accept(
      &r, &model,
      "{\"tokens\":[1],\"targets\":[4],\"return_hidden\":true,\"return_attention\":true}");
  const struct stack_wish *source = r.request.source.run->wish, *main = r.request.main.run->wish;
  for (size_t l = 0; l < L; l++) {
    assert_int_equal(source[l].hidden, l == L - 1);
    assert_int_equal(source[l].weights, STACK_WEIGHTS_PER_HEAD);
  }
  for (size_t i = 0; i < 2 * TARGET_L; i++) {
    assert_int_equal(main[i].hidden, i == TARGET_L - 1);
    assert_int_equal(main[i].weights, STACK_WEIGHTS_PER_HEAD);
  }
  arena_free(&r.arena);
  whole_body_accept(&r, &model, "{\"tokens\":[1],\"targets\":[4],\"return_hidden\":\"all\"}");
  assert_true(r.request.source.run->embedded && r.request.main.run->embedded);
  assert_true(r.request.source.run->wish[0].hidden && r.request.main.run->wish[0].hidden);
  assert_false(r.request.main.run->wish[TARGET_L].hidden);
  arena_free(&r.arena);
}

static void an_empty_batch_is_one(void **state) {
  (void)state;
  struct whole_body r;
  whole_body_ask = ASK_SCORE;
  whole_body_accept(&r, &model, "{\"tokens\":[],\"targets\":[]}");
  assert_int_equal(r.request.main.run->geometry.items, 0);
  assert_int_equal(r.request.source.run->geometry.items, 0);
  assert_non_null(r.request.source.run->tokens);
  arena_free(&r.arena);
  whole_body_ask = ASK_GENERATE;
  whole_body_accept(&r, &model, "{\"tokens\":[],\"beams\":4}");
  assert_int_equal(r.request.main.run->geometry.items, 0);
  arena_free(&r.arena);
}

static void encode_goes_through_the_encoder_alone(void **state) {
  (void)state;
  struct whole_body r;
  whole_body_ask = ASK_ENCODE;
  whole_body_accept(&r, &model, "{\"tokens\":[[1,49]],\"return_hidden\":\"all\"}");
  assert_null(r.request.source.run);
  assert_ptr_equal(r.request.main.stack, model.whole.encoder);
  arena_free(&r.arena);
}

/* --- to be gone on from --- */

static const char generated[] =
    "{\"tokens\":[[1,2,-1],[3,49,7]],\"valid_lens\":[2,3],\"targets\":[[5,39],[]],"
    "\"target_lens\":[1,0],\"max_tokens\":5,\"beams\":3,\"returns\":2,\"length_penalty\":-0.5,"
    "\"early_stopping\":\"never\",\"return_search\":true,\"stop_tokens\":[39],"
    "\"return_hidden\":[\"encoder.*\"],\"head_mask\":{\"encoder.0.self\":[1,0]}}";

static void check_generated(const struct stack_request *q) {
  static const int32_t fed[] = {BEGIN, 5, BEGIN, 5, BEGIN, 5, BEGIN, BEGIN, BEGIN};
  const struct stack_choice *c = &q->generation.choice;
  assert_true(q->generates && q->search && !q->stream);
  assert_true(q->texts == 2 && q->each == 3 && q->returns == 2 && q->generation.each == 3);
  assert_int_equal(q->text_tokens, 5 + 3);
  assert_int_equal(q->source.run->geometry.items, 2);
  assert_int_equal(q->main.run->geometry.items, 6);
  assert_memory_equal(q->main.run->tokens, fed, sizeof fed);
  for (size_t i = 0; i < 6; i++) {
    const struct stack_sequence *s = &q->generation.sequence[i];
    assert_true(s->item == i / 3 && s->sample == i % 3 && s->most == 5);
    assert_int_equal(q->main.run->geometry.item[i].q, i < 3 ? 2 : 1);
    assert_int_equal(stack_request_source_rows(q, i), i < 3 ? 2 : 3);
  }
  assert_true(c->beams == 3 && c->length_penalty == -0.5 && c->early_stopping == STACK_EARLY_NEVER);
  assert_true(c->temperature == 0 && c->stops == 1 && c->stop[0] == 39);
}

static void a_search_however_it_is_cut(void **state) {
  (void)state;
  whole_body_ask = ASK_GENERATE;
  whole_body_however_cut(&model, BODY_JSON, generated, sizeof generated - 1, check_generated);
}

static void positions_are_the_decoders(void **state) {
  (void)state;
  struct whole_body r;
  whole_body_ask = ASK_GENERATE;
  whole_body_accept(&r, &model, "{\"tokens\":[1,1,1,1,1,1,1,1,1,1,1,1]}"); /* 12 of the encoder */
  assert_int_equal(r.request.generation.sequence[0].most, WHOLE_MADE_TARGET_POSITIONS);
  assert_int_equal(r.request.main.run->geometry.q_rows, 1);
  arena_free(&r.arena);
  whole_body_accept(&r, &model, "{\"tokens\":[1],\"targets\":[1,1,1,1,1,1,1,1]}");
  assert_int_equal(r.request.generation.sequence[0].most, 1);
  arena_free(&r.arena);
}

/* Naming one of the two switches the model's default of the other off. */
static void a_search_or_chance(void **state) {
  (void)state;
  struct stack_choice *own = &model.whole.choice;
  const struct stack_choice before = *own;
  static const struct {
    double temperature;
    size_t beams;
    const char *more;
    double then_temperature;
    size_t then_beams, each;
  } list[] = {
      {0, 0, "", 0, 1, 1},
      {0, 4, "", 0, 4, 4},
      {0.5, 1, "", 0.5, 1, 1},
      {0, 4, ",\"temperature\":0.25,\"returns\":3", 0.25, 1, 3},
      {0, 4, ",\"temperature\":0", 0, 1, 1},
      {0.5, 1, ",\"beams\":2", 0, 2, 2},
      {0.5, 1, ",\"beams\":1", 0, 1, 1},
      {0.5, 4, "", 0, 4, 4},
      {0.5, 1, ",\"beams\":1,\"temperature\":2", 2, 1, 1},
      {0.5, 1, ",\"beams\":3,\"temperature\":0,\"returns\":3", 0, 3, 3},
  };
  whole_body_ask = ASK_GENERATE;
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    char body[160];
    struct whole_body r;
    own->temperature = list[i].temperature;
    own->beams = list[i].beams;
    snprintf(body, sizeof body, "{\"tokens\":[1]%s}", list[i].more);
    whole_body_accept(&r, &model, body);
    const struct stack_choice *c = &r.request.generation.choice;
    if (c->temperature != list[i].then_temperature || c->beams != list[i].then_beams ||
        r.request.each != list[i].each)
      fail_msg("%zu: %g, %zu beams, %zu each", i, c->temperature, c->beams, r.request.each);
    arena_free(&r.arena);
  }
  *own = before;
}

/* --- what is refused --- */

#define ONE "{\"tokens\":[1],\"targets\":[1]"

static void wrong_requests_to_score(void **state) {
  (void)state;
  static const struct whole_body_refused list[] = {
      {"{\"targets\":[[1]]}", "/tokens", "the field \"tokens\" is missing"},
      {"{\"tokens\":[[1]]}", "/targets", "the field \"targets\" is missing"},
      {"{\"tokens\":[[1],[2]],\"targets\":[[1]]}", "/targets",
       "targets has 1 items, but tokens has 2"},
      {"{\"tokens\":[[1],[2]],\"targets\":[[1],[]]}", "/targets/1", "no targets"},
      {"{\"tokens\":[1],\"targets\":[1,40]}", "/targets/1",
       "token 40 is out of range: the vocabulary is 0 to 39"},
      {"{\"tokens\":[50],\"targets\":[1]}", "/tokens/0",
       "token 50 is out of range: the vocabulary is 0 to 49"},
      {"{\"tokens\":[1],\"targets\":[1,1,1,1,1,1,1,1,1,1]}", "/targets",
       "the decoder start token and 10 targets need 10 positions, which exceeds the decoder's "
       "context length of 9"},
      {"{\"tokens\":[1,1,1,1,1,1,1,1,1,1,1,1,1],\"targets\":[1]}", "/tokens",
       "13 tokens exceed the model's context length of 12"},
      {ONE ",\"return_hidden\":[\"decoder.3\"]}", "/return_hidden/0",
       "Available: encoder.0 to encoder.3, decoder.0 to decoder.2, and encoder.0.self.input to "
       "encoder.2.self.input, decoder.0.self.input to decoder.1.self.input, decoder.0.cross.input "
       "to decoder.1.cross.input"},
      {ONE ",\"return_attention\":[\"encoder.0.self\",\"encoder.0.cross\"]}", "/return_attention/1",
       "Available: encoder.0.self to encoder.2.self, decoder.0.self to decoder.1.self, "
       "decoder.0.cross to decoder.1.cross"},
      {ONE ",\"head_mask\":{\"decoder.0.cross\":[1,1]}}", "/head_mask/decoder.0.cross",
       "4 numbers, one for each head"},
      {ONE ",\"head_mask\":{\"decoder.0.cross\":[1,1,1,1],\"decoder.*.cross\":[1,1,1,1]}}",
       "/head_mask/decoder.*.cross", "duplicate mask for the attention decoder.0.cross"},
      {ONE ",\"trace\":{\"attention\":\"decoder.0.cross\",\"item\":0,\"head\":4,\"query\":0}}",
       "/trace/head", "there are 4 heads"},
      {ONE ",\"trace\":{\"attention\":\"encoder.0.self\",\"item\":0,\"head\":2,\"query\":0}}",
       "/trace/head", "there are 2 heads"},
      {ONE ",\"trace\":{\"attention\":\"decoder.*.cross\",\"item\":0,\"head\":0,\"query\":0}}",
       "/trace/attention", "names 2 attentions"},
      {ONE ",\"pool\":\"mean\"}", "/pool", "POST /v1/models/NAME/encode"},
      {ONE ",\"beams\":2}", "/beams", "POST /v1/models/NAME/generate"},
      {ONE ",\"decoder_input_ids\":[]}", "/decoder_input_ids", "without the decoder start token"},
      {"{\"tokens\":[1],\"embeddings\":[]}", "/embeddings", "send one"},
  };
  whole_body_ask = ASK_SCORE;
  WHOLE_BODY_REFUSE(&model, list);
}

static void wrong_requests_to_generate(void **state) {
  (void)state;
#define SEARCH "{\"tokens\":[1],\"beams\":3"
  static const struct whole_body_refused list[] = {
      {"{\"tokens\":[1],\"targets\":[1,40]}", "/targets/1", "0 to 39"},
      {"{\"tokens\":[[1],[2]],\"targets\":[[1]]}", "/targets", "1 items, but tokens has 2"},
      {"{\"tokens\":[1],\"target_lens\":1}", "/target_lens", "requires \"targets\""},
      {"{\"tokens\":[1],\"targets\":[1,1,1,1,1,1,1,1,1]}", "/targets",
       "the decoder start token and 9 targets need 10 positions, which exceeds the decoder's "
       "context length of 9"},
      {"{\"tokens\":[1],\"targets\":[1],\"max_tokens\":9}", "/max_tokens", "context length of 9"},
      {"{\"tokens\":[1],\"stop_tokens\":[40]}", "/stop_tokens/0", "0 to 39"},
      {"{\"tokens\":[1],\"trace\":{}}", "/trace", "POST /v1/models/NAME/score"},
      {"{\"tokens\":[1],\"beams\":0}", "/beams", "an integer from 1 to 64"},
      {"{\"tokens\":[1],\"beams\":65}", "/beams", "an integer from 1 to 64"},
      {"{\"tokens\":[1],\"beams\":true}", "/beams", "an integer from 1 to 64"},
      {SEARCH ",\"returns\":4}", "/returns", "exceed the 3 beams"},
      {"{\"tokens\":[1],\"returns\":4}", "/returns", "\"beams\""},
      {SEARCH ",\"temperature\":0.5}", "/temperature", "does not sample"},
      {SEARCH ",\"length_penalty\":\"1\"}", "/length_penalty", "must be a number"},
      {SEARCH ",\"early_stopping\":\"yes\"}", "/early_stopping", "true, false or \"never\""},
      {SEARCH ",\"early_stopping\":1}", "/early_stopping", "true, false or \"never\""},
      {SEARCH ",\"return_search\":1}", "/return_search", "true or false"},
      {"{\"tokens\":[1],\"return_search\":true}", "/return_search", "\"beams\" above 1"},
      {SEARCH ",\"stream\":true}", "/stream", "streaming is not supported with beam search"},
      {"{\"tokens\":[1],\"stream\":true,\"return_hidden\":[\"encoder.0\"]}", "/stream",
       "\"return_hidden\""},
      {"{\"tokens\":[1],\"stream\":true,\"return_attention\":[\"decoder.0.cross\"]}", "/stream",
       "\"return_attention\""},
      {"{\"tokens\":[1],\"num_beams\":3}", "/num_beams", "calls it \"beams\""},
      {"{\"tokens\":[1],\"num_beam_groups\":3}", "/num_beam_groups",
       "beam groups are not supported"},
      {"{\"tokens\":[1],\"decoder_start_token_id\":3}", "/decoder_start_token_id",
       "own start token applies"},
      {"{\"tokens\":[1],\"length_penalti\":3}", "/length_penalti", "\"length_penalty\""},
  };
  whole_body_ask = ASK_GENERATE;
  WHOLE_BODY_REFUSE(&model, list);
}

static void a_model_that_cannot_begin(void **state) {
  (void)state;
  static const int64_t begins[] = {-1, WHOLE_MADE_TARGET_TOKENS};
  for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
    for (unsigned ask = ASK_SCORE; ask <= ASK_GENERATE; ask++) {
      struct whole_body r;
      model.whole.token.begin = begins[i];
      whole_body_ask = (enum body_ask)ask;
      whole_body_text(&r, &model, ONE "}");
      assert_int_equal(r.error.status, STATUS_INVALID_REQUEST);
      assert_non_null(strstr(r.error.detail, "no decoder start token"));
      arena_free(&r.arena);
    }
  model.whole.token.begin = BEGIN;
}

/* --- limits --- */

/* Each limit at what a request takes, and at one less. */
static void hold_limits(const char *body, size_t pairs, size_t bytes, size_t items,
                        size_t sequences, size_t tokens) {
  const struct body_terms terms = whole_body_terms(BODY_JSON);
  static const char *const named[] = {"",           "max_items",    "max_pairs", "max_answer_bytes",
                                      "max_tokens", "max_sequences"};
  for (size_t less = 0; less < 6; less++) {
    const struct body_limits limits = {items - (less == 1),     pairs - (less == 2),
                                       bytes - (less == 3),     tokens - (less == 4),
                                       sequences - (less == 5), 0};
    const bool looked_at = less < 4 || whole_body_ask == ASK_GENERATE;
    struct whole_body r = {0};
    whole_body_read(&r, &model, &terms, &limits, body, strlen(body), 0, SIZE_MAX);
    if (r.error.status != (less && looked_at ? STATUS_TOO_LARGE : STATUS_OK))
      fail_msg("%s, %zu: %d, %s", body, less, (int)r.error.status, r.error.detail);
    if (less && looked_at) assert_string_equal(r.error.limit, named[less]);
    arena_free(&r.arena);
  }
}

static void limits_are_exact(void **state) {
  (void)state;
  enum { TEXT = 16, HEADS = WHOLE_MADE_HEADS, CROSS = WHOLE_MADE_CROSS_HEADS };
  whole_body_ask = ASK_SCORE;
  /* two items: 3 and 1 rows of source; 2 and 4 of targets */
  const size_t read = L * HEADS * (9 + 1),
               fed = TARGET_L * (HEADS * (4 + 16) + CROSS * (3 * 2 + 1 * 4));
  static const char two[] = "{\"tokens\":[[1,2,3],[4]],\"targets\":[[1,2],[3,4,5,6]]";
  char body[400];
  snprintf(body, sizeof body, "%s}", two);
  hold_limits(body, read + fed, 6 * TEXT, 2, 9, 9);
  snprintf(body, sizeof body, "%s,\"return_hidden\":true}", two);
  hold_limits(body, read + fed, (6 + (4 + 6) * D) * TEXT, 2, 9, 9);
  snprintf(body, sizeof body, "%s,\"return_attention\":[\"decoder.*.cross\",\"encoder.0.self\"]}",
           two);
  hold_limits(body, read + fed, (6 + TARGET_L * CROSS * 10 + HEADS * 10) * TEXT, 2, 9, 9);
  snprintf(body, sizeof body,
           "%s,\"encoding_format\":\"base64\",\"return_attention\":[\"decoder.0.cross\"]}", two);
  hold_limits(body, read + fed, (2 * 4 + CROSS * 2 * 3 * 4) * 6, 2, 9, 9);
  snprintf(body, sizeof body,
           "%s,\"return_attention\":{\"of\":[\"decoder.0.cross\"],\"as\":{\"thumbnails\":2}}}",
           two);
  hold_limits(body, read + fed, 6 * TEXT + (CROSS * 2 * 2 + 2) / 3 * 4 + (CROSS * 2 + 2) / 3 * 4, 2,
              9, 9);
}

static void limits_of_a_search_are_exact(void **state) {
  (void)state;
  enum { HEADS = WHOLE_MADE_HEADS, CROSS = WHOLE_MADE_CROSS_HEADS, AROUND = 96, PLACE = 31 };
  whole_body_ask = ASK_GENERATE;
  /* 3 rows of source; 3 beams of 1 + 4 tokens, of which the last is not fed */
  const size_t pairs = L * HEADS * 9 + TARGET_L * 3 * (HEADS * 16 + CROSS * 4 * 3);
  struct whole_body r = {0};
  const struct body_terms terms = whole_body_terms(BODY_JSON);
  static const char body[] =
      "{\"tokens\":[1,2,3],\"beams\":3,\"returns\":2,\"max_tokens\":4,\"return_search\":true}";
  for (size_t bytes = 1;; bytes++) { /* the least that is enough is what the answer may take */
    const struct body_limits limits = {3, pairs, bytes, 4, 3, 0};
    memset(&r, 0, sizeof r);
    whole_body_read(&r, &model, &terms, &limits, body, sizeof body - 1, 0, SIZE_MAX);
    arena_free(&r.arena);
    if (!r.error.status) {
      assert_in_range(bytes, 2 * AROUND + 4 * 3 * 60, 8000);
      hold_limits(body, pairs, bytes, 3, 3, 4);
      break;
    }
  }
}

/* --- the Open Inference Protocol --- */

#define IDS(name, shape, data) \
  "{\"name\":\"" name "\",\"datatype\":\"INT64\",\"shape\":" shape ",\"data\":" data "}"

#define FED      IDS("decoder_input_ids", "[2,3]", "[1,7,39,5,0,-1]")
#define FED_MASK IDS("decoder_attention_mask", "[2,3]", "[1,1,1,1,0,0]")
#define READ     IDS("input_ids", "[2,2]", "[1,2,49,-1]")
#define MASK     IDS("attention_mask", "[2,2]", "[1,1,1,0]")
#define OUTPUTS  "[{\"name\":\"logits\"},{\"name\":\"encoder_last_hidden_state\"}]"

static const char spoken[] =
    "{\"inputs\":[" FED "," READ "," FED_MASK "," MASK "],\"outputs\":" OUTPUTS "}";

static void check_spoken(const struct stack_request *q) {
  static const int32_t read[] = {1, 2, 49}, fed[] = {1, 7, 39, 5}, lens[] = {2, 1},
                       begun[] = {3, 1};
  assert_ptr_equal(q->main.stack, model.whole.decoder);
  assert_ptr_equal(q->main.run->source, q->source.run);
  assert_true(q->main.run->want_logits && !q->main.run->targets && !q->scored);
  assert_int_equal(q->source.run->geometry.q_rows, 3);
  assert_int_equal(q->main.run->geometry.q_rows, 4);
  assert_memory_equal(q->source.run->tokens, read, sizeof read);
  assert_memory_equal(q->main.run->tokens, fed, sizeof fed);
  assert_memory_equal(q->source.lens, lens, sizeof lens);
  assert_memory_equal(q->main.lens, begun, sizeof begun);
  assert_true(q->source.widest == 2 && q->main.widest == 3);
}

static void the_inference_protocol_feeds_both(void **state) {
  (void)state;
  whole_body_ask = ASK_ENCODE;
  whole_body_however_cut(&model, BODY_V2, spoken, sizeof spoken - 1, check_spoken);
}

/* --- memory --- */

static void a_full_budget_at_every_step(void **state) {
  (void)state;
  static const struct {
    const char *body;
    enum body_ask ask;
    enum body_form form;
  } list[] = {{scored, ASK_SCORE, BODY_JSON},
              {generated, ASK_GENERATE, BODY_JSON},
              {spoken, ASK_ENCODE, BODY_V2}};
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    whole_body_ask = list[i].ask;
    whole_body_in_any_budget(&model, list[i].form, list[i].body, strlen(list[i].body));
  }
}

int main(void) {
  made_model_how =
      (struct whole_made_how){.pair = true, .pool = STACK_POOL_MEAN, .normalize = true};
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_full_request_however_it_is_cut),
      cmocka_unit_test(a_source_may_be_rows),
      cmocka_unit_test(all_parts_have_short_names),
      cmocka_unit_test(an_empty_batch_is_one),
      cmocka_unit_test(encode_goes_through_the_encoder_alone),
      cmocka_unit_test(a_search_however_it_is_cut),
      cmocka_unit_test(positions_are_the_decoders),
      cmocka_unit_test(a_search_or_chance),
      cmocka_unit_test(wrong_requests_to_score),
      cmocka_unit_test(wrong_requests_to_generate),
      cmocka_unit_test(a_model_that_cannot_begin),
      cmocka_unit_test(limits_are_exact),
      cmocka_unit_test(limits_of_a_search_are_exact),
      cmocka_unit_test(the_inference_protocol_feeds_both),
      cmocka_unit_test(a_full_budget_at_every_step),
  };
  return cmocka_run_group_tests(tests, made_model_enter, made_model_leave);
}
