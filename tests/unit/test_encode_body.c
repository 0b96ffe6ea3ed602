/* test_encode_body: the body of a request to encode into the core's run, and every way to get it
 * wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/whole_body.h"

enum { L = WHOLE_MADE_LAYERS, D = WHOLE_MADE_WIDTH };

/* The models that the requests ask: with tokens, types, positions; with a pooler and a dense layer;
 * with nothing but layers. */
static struct whole_made plain, pooled, bare;

static int make_models(void **state) {
  (void)state;
  whole_made_init(&plain, &(struct whole_made_how){0});
  whole_made_init(&pooled, &(struct whole_made_how){.pooler = true,
                                                    .dense_size = 4,
                                                    .last_aside = true,
                                                    .pool = STACK_POOL_MEAN,
                                                    .normalize = true});
  whole_made_init(&bare, &(struct whole_made_how){.bare = true});
  return 0;
}

static int free_models(void **state) {
  (void)state;
  whole_made_free(&plain);
  whole_made_free(&pooled);
  whole_made_free(&bare);
  return 0;
}

/* --- what is accepted --- */

static const char full[] =
    " { \"tokens\" : [[1,2,3,49],[],[ 4 , 5 , 6 ]] ,\"valid_lens\":[3,0,2],"
    "\"token_types\":[[0,1,0,7],[],[1,1,9]],\"pool\":\"none\",\"normalize\":false,"
    "\"return_hidden\":[\"encoder.0\",\"encoder.-1\",\"encoder.1.self.input\"],"
    "\"return_attention\":{\"of\":[\"encoder.-1.self\"],\"as\":{\"thumbnails\":64}},"
    "\"head_mask\":{\"encoder.*.self\":[0.5,1]},\"encod\\u0069ng_format\":\"base64\"} ";

static void check_full(const struct stack_request *q) {
  static const int32_t tokens[] = {1, 2, 3, 4, 5}, types[] = {0, 1, 0, 1, 1}, lens[] = {3, 0, 2};
  static const float mask[] = {0.5f, 1};
  const struct stack_run *r = q->main.run;
  assert_int_equal(r->geometry.items, 3);
  assert_int_equal(r->geometry.q_rows, 5);
  assert_int_equal(r->geometry.k_rows, 5);
  assert_int_equal(r->geometry.item[2].q, 2);
  assert_int_equal(r->geometry.item[2].k, 2);
  assert_int_equal(r->geometry.item[2].q_row, 3);
  assert_int_equal(r->geometry.item[2].k_row, 3);
  assert_memory_equal(r->tokens, tokens, sizeof tokens);
  assert_memory_equal(r->types, types, sizeof types);
  assert_memory_equal(q->main.lens, lens, sizeof lens);
  assert_null(r->embeddings);
  assert_true(r->embedded);
  assert_false(stack_makes_vectors(r));
  for (size_t l = 0; l < L; l++) {
    assert_int_equal(r->wish[l].hidden, l == L - 1);
    assert_int_equal(r->wish[l].input, l == 1);
    assert_int_equal(r->wish[l].weights,
                     l == L - 1 ? STACK_WEIGHTS_THUMBNAILS : STACK_WEIGHTS_NONE);
    assert_memory_equal(r->wish[l].head_mask, mask, sizeof mask);
  }
  assert_int_equal(r->wish[L - 1].thumbnail, 64);
  assert_true(q->base64);
  assert_false(q->unbatched || q->main.rectangular);
  assert_int_equal(q->main.widest, 4);
}

static void a_full_request_however_it_is_cut(void **state) {
  (void)state;
  whole_body_however_cut(&plain, BODY_JSON, full, sizeof full - 1, check_full);
}

static void defaults_are_the_models(void **state) {
  (void)state;
  struct whole_body r;
  whole_body_accept(&r, &plain, "{\"tokens\":[[1],[2]]}");
  assert_false(stack_makes_vectors(r.request.main.run));
  assert_null(r.request.main.run->wish);
  assert_null(r.request.main.run->types);
  assert_true(r.request.main.rectangular);
  arena_free(&r.arena);
  whole_body_accept(&r, &pooled, "{\"tokens\":[[1],[2]]}");
  assert_int_equal(r.request.main.run->vectors, STACK_VECTORS_MEAN);
  assert_true(r.request.main.run->normalize);
  arena_free(&r.arena);
  /* A default that has no meaning without a pool is none. */
  whole_body_accept(&r, &pooled, "{\"tokens\":[[1],[]],\"pool\":\"none\"}");
  assert_false(stack_makes_vectors(r.request.main.run));
  assert_false(r.request.main.run->normalize);
  arena_free(&r.arena);
  whole_body_accept(&r, &pooled,
                    "{\"tokens\":[[1]],\"pool\":\"pooler\",\"dimensions\":3,\"normalize\":false}");
  assert_true(r.request.main.run->after & STACK_AFTER_POOLER);
  assert_int_equal(r.request.main.run->dimensions, 3);
  assert_false(r.request.main.run->normalize);
  arena_free(&r.arena);
}

static void one_item_is_no_batch(void **state) {
  (void)state;
  struct whole_body r;
  whole_body_accept(&r, &plain, "{\"tokens\":[7,8,9],\"valid_lens\":2,\"token_types\":[0,1,1]}");
  assert_true(r.request.unbatched);
  assert_int_equal(r.request.main.run->geometry.items, 1);
  assert_int_equal(r.request.main.run->geometry.q_rows, 2);
  assert_int_equal(r.request.main.widest, 3);
  assert_int_equal(r.request.main.run->types[1], 1);
  arena_free(&r.arena);
  whole_body_accept(&r, &plain, "{\"tokens\":[]}");
  assert_false(r.request.unbatched);
  assert_int_equal(r.request.main.run->geometry.items, 0);
  assert_non_null(r.request.main.run->tokens);
  arena_free(&r.arena);
  whole_body_accept(&r, &plain, "{\"tokens\":[[]],\"valid_lens\":null,\"token_types\":[[]]}");
  assert_int_equal(r.request.main.run->geometry.items, 1);
  arena_free(&r.arena);
}

static void embeddings_stand_for_tokens(void **state) {
  (void)state;
  struct whole_body r;
  whole_body_accept(&r, &bare,
                    "{\"embeddings\":[[[1,2,3,4,5,6,7,8],[0,0,0,0,0,0,0,0]],[[8,7,6,5,4,3,2,1]]],"
                    "\"valid_lens\":[1,1]}");
  assert_null(r.request.main.run->tokens);
  assert_int_equal(r.request.main.run->geometry.q_rows, 2);
  assert_true(r.request.main.run->embeddings[7] == 8 && r.request.main.run->embeddings[8] == 8);
  arena_free(&r.arena);
  whole_body_accept(&r, &plain, "{\"embeddings\":[[1,2,3,4,5,6,7,8]],\"token_types\":[1]}");
  assert_true(r.request.unbatched);
  assert_int_equal(r.request.main.run->types[0], 1);
  arena_free(&r.arena);
}

/* What counts is judged, and no more of a padded item: neither its numbers nor its length. */
static void padding_is_not_looked_at(void **state) {
  (void)state;
  struct whole_body r;
  whole_body_accept(&r, &plain,
                    "{\"tokens\":[[1,-100,99999],[2,3,4]],\"valid_lens\":[1,3],"
                    "\"token_types\":[[0,5,5],[0,1,0]]}");
  assert_int_equal(r.request.main.run->tokens[1], 2);
  arena_free(&r.arena);
  whole_body_accept(&r, &plain, "{\"tokens\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1],\"valid_lens\":12}");
  arena_free(&r.arena);
}

/* --- names --- */

/* What a field asks of each layer, a letter for each sort: of `hidden`, `input` and weights. */
static void assert_wishes(const char *fields, const char *embedded, const char *const want[L]) {
  struct whole_body r;
  char body[400];
  snprintf(body, sizeof body, "{\"tokens\":[[1]],%s}", fields);
  whole_body_accept(&r, &plain, body);
  assert_int_equal(r.request.main.run->embedded, *embedded == 'e');
  for (size_t l = 0; l < L; l++) {
    static const struct stack_wish nothing;
    static const char letters[] = "-hat";
    const struct stack_wish *w = r.request.main.run->wish ? &r.request.main.run->wish[l] : &nothing;
    char got[4] = {w->hidden ? 'h' : '-', w->input ? 'i' : '-', letters[w->weights], 0};
    if (strcmp(got, want[l]) != 0) fail_msg("%s: layer %zu: %s, not %s", fields, l, got, want[l]);
  }
  arena_free(&r.arena);
}

static void names_mean_parts(void **state) {
  (void)state;
  static const struct {
    const char *fields, *embedded, *want[L];
  } list[] = {
      {"\"return_hidden\":false", "", {"---", "---", "---"}},
      {"\"return_hidden\":true", "", {"---", "---", "h--"}},
      {"\"return_hidden\":\"all\"", "e", {"h--", "h--", "h--"}},
      {"\"return_hidden\":[]", "", {"---", "---", "---"}},
      {"\"return_hidden\":[\"encoder.*\"]", "e", {"h--", "h--", "h--"}},
      {"\"return_hidden\":[\"encoder.-1\",\"encoder.1\"]", "", {"h--", "---", "h--"}},
      {"\"return_hidden\":[\"encoder.*.self.input\"]", "", {"-i-", "-i-", "-i-"}},
      {"\"return_hidden\":[\"encoder.-1.self.input\",\"encoder.0\"]", "e", {"---", "---", "-i-"}},
      {"\"return_attention\":false", "", {"---", "---", "---"}},
      {"\"return_attention\":true", "", {"--h", "--h", "--h"}},
      {"\"return_attention\":\"all\"", "", {"--h", "--h", "--h"}},
      {"\"return_attention\":\"average\"", "", {"--a", "--a", "--a"}},
      {"\"return_attention\":[\"encoder.1.self\"]", "", {"---", "--h", "---"}},
      {"\"return_attention\":{\"of\":[\"encoder.-1.self\"],\"as\":\"average\"}",
       "",
       {"---", "---", "--a"}},
      {"\"return_attention\":{\"as\":\"heads\",\"of\":[\"encoder.*.self\"]}",
       "",
       {"--h", "--h", "--h"}},
      {"\"return_attention\":{\"of\":[\"encoder.0.self\"],\"as\":{\"thumbnails\":1}}",
       "",
       {"--t", "---", "---"}},
      {"\"return_attention\":true,\"return_hidden\":true", "", {"--h", "--h", "h-h"}},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    assert_wishes(list[i].fields, list[i].embedded, list[i].want);
}

/* So many names take 12 bytes each. */
static void write_names(char *body, size_t names) {
  char *at = stpcpy(body, "{\"tokens\":[[1]],\"return_hidden\":[\"encoder.1\"");
  for (size_t i = 1; i < names; i++) at = stpcpy(at, ",\"encoder.1\"");
  stpcpy(at, "]}");
}

/* Names and masks of many layers are longer than other small values. */
static void long_values_are_read(void **state) {
  (void)state;
  const struct body_terms terms = whole_body_terms(BODY_JSON);
  enum { NAMES = 2000 };
  static char body[100 + NAMES * 12];
  write_names(body, NAMES);
  for (size_t step = 1; step < sizeof body; step = step * 5 + 1) {
    struct whole_body r = {0};
    whole_body_read(&r, &plain, &terms, &whole_body_wide, body, strlen(body), 0, step);
    assert_int_equal(r.error.status, STATUS_OK);
    assert_true(r.request.main.run->wish[0].hidden);
    arena_free(&r.arena);
  }
}

static void too_long_values_are_refused_at_one_byte(void **state) {
  (void)state;
  const struct body_terms terms = whole_body_terms(BODY_JSON);
  enum { NAMES = 4000 };
  static char body[100 + NAMES * 12];
  write_names(body, NAMES);
  for (size_t step = 1; step < sizeof body; step = step * 5 + 1) {
    struct whole_body r = {0};
    whole_body_read(&r, &plain, &terms, &whole_body_wide, body, strlen(body), 0, step);
    assert_int_equal(r.error.status, STATUS_INVALID_REQUEST);
    assert_string_equal(r.error.pointer, "/return_hidden");
    assert_string_equal(r.error.detail, "return_hidden is longer than 32768 bytes");
    arena_free(&r.arena);
  }
}

/* Arrays that are asked for are planned item by item. */
static void what_is_asked_for_has_its_cost(void **state) {
  (void)state;
  static const char *const bodies[] = {
      "{\"tokens\":[[1],[2],[3],[4]]}", "{\"tokens\":[[1],[2],[3],[4]],\"return_hidden\":true}",
      "{\"tokens\":[[1],[2],[3],[4]],\"return_hidden\":\"all\",\"return_attention\":true}"};
  const struct body_terms terms = whole_body_terms(BODY_JSON);
  uint64_t before = 0;
  for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
    struct whole_body r = {0};
    struct stack_body *b =
        stack_body_new(&plain.whole, &terms, &whole_body_wide, &r.arena, &r.error);
    assert_non_null(b);
    assert_in_range(body_cost(stack_body_of(b)), 1, before ? before : 1000);
    body_feed(stack_body_of(b), bodies[i], strlen(bodies[i]));
    assert_true(body_cost(stack_body_of(b)) > before);
    before = body_cost(stack_body_of(b));
    arena_free(&r.arena);
  }
}

/* --- what is refused --- */

static void wrong_rows(void **state) {
  (void)state;
  static const struct whole_body_refused list[] = {
      {"{}", "/tokens", "the field \"tokens\" is missing"},
      {"{\"tokens\":[1],\"embeddings\":[]}", "/embeddings", "send one"},
      {"{\"tokens\":[[1,2],[3,50]]}", "/tokens/1/1",
       "token 50 is out of range: the vocabulary is 0 to 49"},
      {"{\"tokens\":[[1,2],[-1]]}", "/tokens/1/0", "token -1 is"},
      {"{\"tokens\":[1,2,250000]}", "/tokens/2", "token 250000"},
      {"{\"tokens\":[[1.0]]}", "/tokens/0/0", "integer"},
      {"{\"tokens\":[[3000000000]]}", "/tokens/0/0", "32-bit integer"},
      {"{\"tokens\":[[\"hello\"]]}", "/tokens/0/0", "string"},
      {"{\"tokens\":\"hello\"}", "/tokens", "array"},
      {"{\"tokens\":[[[1]]]}", "/tokens/0/0", "got an array"},
      {"{\"tokens\":3}", "/tokens", "got a number"},
      {"{\"tokens\":null}", "/tokens", "got null"},
      {"{\"tokens\":{\"dtype\":\"F32\"}}", "/tokens", "for floats"},
      {"{\"tokens\":[[1,1,1,1,1,1,1,1,1,1,1,1,1]]}", "/tokens/0",
       "13 tokens exceed the model's context length of 12: shorten the input"},
      {"{\"tokens\":[1,1,1,1,1,1,1,1,1,1,1,1,1]}", "/tokens", "13 tokens exceed"},
      {"{\"embeddings\":[[[1,2,3]]]}", "/embeddings/0/0", "the model's embedding width"},
      {"{\"embeddings\":[[1,2,3,4,5,6,7,1e39]]}", "/embeddings/0/7", ""},
      {"{\"tokens\":[[1],[2]],\"token_types\":[[0]]}", "/token_types", "1 items, but tokens has 2"},
      {"{\"tokens\":[[1],[2]],\"token_types\":[0,0]}", "/token_types",
       "1 dimensions, expected 2: a batch requires a list"},
      {"{\"tokens\":[[1],[2]],\"token_types\":[[0],[0,1]]}", "/token_types/1", "2 numbers"},
      {"{\"tokens\":[[1],[2]],\"token_types\":[[0],[2]]}", "/token_types/1/0",
       "type 2 is out of range"},
      {"{\"tokens\":[[1],[2]],\"valid_lens\":[1]}", "/valid_lens", "1 valid lengths for 2 items"},
      {"{\"tokens\":[[1],[2]],\"valid_lens\":[1,2]}", "/valid_lens/1", "the valid length is 2,"},
      {"{\"tokens\":[[1],[2]],\"valid_lens\":[-1,1]}", "/valid_lens/0", "the valid length is -1,"},
      {"{\"tokens\":[[1],[2]],\"valid_lens\":1}", "/valid_lens", "a batch requires a list"},
      {"{\"tokens\":[1,2],\"valid_lens\":[1]}", "/valid_lens", "a single item"},
      {"{\"tokens\":[1,2],\"valid_lens\":3}", "/valid_lens", "the valid length is 3,"},
  };
  WHOLE_BODY_REFUSE(&plain, list);
  static const struct whole_body_refused of_bare[] = {
      {"{}", "/embeddings", "the field \"embeddings\" is missing"},
      {"{\"tokens\":[[1]]}", "/tokens", "no token embeddings"},
      {"{\"embeddings\":[[1,2,3,4,5,6,7,8]],\"token_types\":[0]}", "/token_types",
       "this model has no token types"},
  };
  WHOLE_BODY_REFUSE(&bare, of_bare);
}

static void wrong_pools(void **state) {
  (void)state;
  static const struct whole_body_refused list[] = {
      {"{\"tokens\":[[1]],\"pool\":\"first\"}", "/pool", "\"cls\""},
      {"{\"tokens\":[[1]],\"pool\":null}", "/pool", "\"cls\""},
      {"{\"tokens\":[[1]],\"pool\":\"pooler\"}", "/pool", "this model has no pooler"},
      {"{\"tokens\":[[1],[]],\"pool\":\"mean\"}", "/tokens/1", "an empty item"},
      {"{\"tokens\":[[1],[2]],\"valid_lens\":[1,0],\"pool\":\"cls\"}", "/tokens/1",
       "an empty item"},
      {"{\"tokens\":[[1]],\"normalize\":true}", "/normalize", "pool"},
      {"{\"tokens\":[[1]],\"normalize\":1}", "/normalize", "true or false"},
      {"{\"tokens\":[[1]],\"dimensions\":3}", "/dimensions", "pool"},
      {"{\"tokens\":[[1]],\"pool\":\"max\",\"dimensions\":9}", "/dimensions",
       "exceed the 8 of the model's embeddings"},
      {"{\"tokens\":[[1]],\"pool\":\"max\",\"dimensions\":0}", "/dimensions", "at least 1"},
      {"{\"tokens\":[[1]],\"pool\":\"max\",\"dimensions\":2.0}", "/dimensions", "at least 1"},
      {"{\"tokens\":[[1]],\"encoding_format\":\"hex\"}", "/encoding_format", "base64"},
  };
  WHOLE_BODY_REFUSE(&plain, list);
  static const struct whole_body_refused of_pooled[] = {
      {"{\"tokens\":[[1]],\"dimensions\":5}", "/dimensions",
       "exceed the 4 of the model's embeddings"},
      {"{\"tokens\":[[]]}", "/tokens/0", "an empty item"},
      {"{\"tokens\":[[1]],\"pool\":\"none\",\"normalize\":true}", "/normalize", "pool"},
  };
  WHOLE_BODY_REFUSE(&pooled, of_pooled);
}

#define TOKEN "{\"tokens\":[[1]],"

static void wrong_traces(void **state) {
  (void)state;
#define TRACE   TOKEN "\"trace\":{"
#define NUMBERS ",\"item\":0,\"head\":0,\"query\":0}}"
  static const struct whole_body_refused list[] = {
      {TOKEN "\"trace\":true}", "/trace", "{\"attention\": \"encoder.0.self\", \"item\": 0"},
      {TRACE "\"item\":0,\"head\":0,\"query\":0}}", "/trace", "requires \"attention\""},
      {TRACE "\"attention\":\"encoder.0.self\"}}", "/trace", "requires \"item\""},
      {TRACE "\"attention\":7" NUMBERS, "/trace/attention", "a string"},
      {TRACE "\"attention\":\"encoder.0\"" NUMBERS, "/trace/attention", "unknown attention"},
      {TRACE "\"attention\":\"encoder.3.self\"" NUMBERS, "/trace/attention", "encoder.2.self"},
      {TRACE "\"attention\":\"encoder.*.self\"" NUMBERS, "/trace/attention", "names 3 attentions"},
      {TRACE "\"attention\":\"encoder.0.self\",\"layer\":0" NUMBERS, "/trace/layer",
       "has the keys \"attention\", \"item\", \"head\" and \"query\""},
      {TRACE "\"attention\":\"encoder.0.self\",\"item\":1,\"head\":0,\"query\":0}}", "/trace/item",
       "there are 1 items"},
      {TRACE "\"attention\":\"encoder.0.self\",\"item\":0,\"head\":9,\"query\":0}}", "/trace/head",
       "there are 2 heads"},
      {TRACE "\"attention\":\"encoder.0.self\",\"item\":0,\"head\":0,\"query\":1}}", "/trace/query",
       "there are 1 queries"},
  };
  WHOLE_BODY_REFUSE(&plain, list);
}

/* 46 bytes of a name, and how many of them a pointer behind "/head_mask" has room for. */
#define SLASHES "////////////////////////////////////////////é"
#define ESCAPES "~1~1~1~1~1~1~1~1~1~1~1~1~1~1~1~1~1~1~1~1~1~1~1~1~1~1~1~1~1~1~1~1~1~1~1~1~1~1"

static void wrong_names(void **state) {
  (void)state;
  static const struct whole_body_refused list[] = {
      {TOKEN "\"return_hidden\":[\"encoder.0\",\"encoder.4\"]}", "/return_hidden/1",
       "unknown hidden state \"encoder.4\". Available: encoder.0 to encoder.3"},
      {TOKEN "\"return_hidden\":[\"encoder.3.self.input\"]}", "/return_hidden/0", "unknown "},
      {TOKEN "\"return_hidden\":[\"encoder.01\"]}", "/return_hidden/0", "unknown "},
      {TOKEN "\"return_hidden\":[\"encoder.\"]}", "/return_hidden/0", "unknown "},
      {TOKEN "\"return_hidden\":[\"encoder.1.\"]}", "/return_hidden/0", "unknown "},
      {TOKEN "\"return_hidden\":[\"encoder.-2\"]}", "/return_hidden/0", "unknown "},
      {TOKEN "\"return_hidden\":[\"encoder.000000000000000000001\"]}", "/return_hidden/0", ""},
      {TOKEN "\"return_hidden\":[\"encoder.1\\u0000\"]}", "/return_hidden/0", "unknown "},
      {TOKEN "\"return_hidden\":[\"decoder.0\"]}", "/return_hidden/0", "unknown "},
      {TOKEN "\"return_hidden\":[\"encoder.0.self\"]}", "/return_hidden/0", "unknown "},
      {TOKEN "\"return_hidden\":[0]}", "/return_hidden/0", "must be a string"},
      {TOKEN "\"return_hidden\":\"encoder.0\"}", "/return_hidden", "a list of names"},
      {TOKEN "\"return_hidden\":1}", "/return_hidden", "a list of names"},
      {TOKEN "\"return_attention\":[\"encoder.3.self\"]}", "/return_attention/0",
       "Available: encoder.0.self to encoder.2.self"},
      {TOKEN "\"return_attention\":[\"encoder.0\"]}", "/return_attention/0", "unknown attention"},
      {TOKEN "\"return_attention\":\"every\"}", "/return_attention", "\"average\""},
      {TOKEN "\"return_attention\":{\"of\":[\"encoder.0.self\"]}}", "/return_attention",
       "\"as\" is missing"},
      {TOKEN "\"return_attention\":{\"as\":\"heads\"}}", "/return_attention", "\"of\" must be"},
      {TOKEN "\"return_attention\":{\"of\":true,\"as\":\"heads\"}}", "/return_attention/of",
       "list"},
      {TOKEN "\"return_attention\":{\"of\":[],\"as\":\"mean\"}}", "/return_attention/as", "heads"},
      {TOKEN "\"return_attention\":{\"of\":[],\"as\":{}}}", "/return_attention/as", "heads"},
      {TOKEN "\"return_attention\":{\"of\":[],\"as\":{\"thumbnails\":65}}}",
       "/return_attention/as/thumbnails", "1 to 64"},
      {TOKEN "\"return_attention\":{\"of\":[],\"as\":{\"thumbnails\":0}}}",
       "/return_attention/as/thumbnails", "1 to 64"},
      {TOKEN "\"return_attention\":{\"of\":[],\"as\":\"heads\",\"size\":3}}",
       "/return_attention/size", "unknown key \"size\""},
      {TOKEN "\"return_attention\":{\"of\":[\"x\"],\"as\":\"heads\"}}", "/return_attention/of/0",
       "unknown attention"},
      {TOKEN "\"head_mask\":[1,0]}", "/head_mask", "must be an object"},
      {TOKEN "\"head_mask\":{\"encoder.3.self\":[1,0]}}", "/head_mask/encoder.3.self", "unknown "},
      {TOKEN "\"head_mask\":{\"a/b~\":[1,0]}}", "/head_mask/a~1b~0", "unknown "},
      {TOKEN "\"head_mask\":{\"" SLASHES "\":[1,0]}}", "/head_mask/" ESCAPES, "unknown "},
      {TOKEN "\"head_mask\":{\"encoder.0.self\":[1]}}", "/head_mask/encoder.0.self", "2 numbers"},
      {TOKEN "\"head_mask\":{\"encoder.0.self\":1}}", "/head_mask/encoder.0.self", "2 numbers"},
      {TOKEN "\"head_mask\":{\"encoder.0.self\":[1,true]}}", "/head_mask/encoder.0.self/1",
       "float32 range"},
      {TOKEN "\"head_mask\":{\"encoder.0.self\":[1,1e39]}}", "/head_mask/encoder.0.self/1",
       "float32 range"},
      {TOKEN "\"head_mask\":{\"encoder.0.self\":[1,1e999]}}", "/head_mask", "out of range"},
      {TOKEN "\"head_mask\":{\"encoder.0.self\":[1,0],\"encoder.*.self\":[1,1]}}",
       "/head_mask/encoder.*.self", "duplicate mask for the attention encoder.0.self"},
  };
  WHOLE_BODY_REFUSE(&plain, list);
}

static void fields_of_others_say_what_is_meant(void **state) {
  (void)state;
  static const struct whole_body_refused list[] = {
      {"{\"input_ids\":[[1]]}", "/input_ids", "use \"tokens\""},
      {"{\"attention_mask\":[[1]]}", "/attention_mask", "valid_lens"},
      {"{\"token_type_ids\":[[1]]}", "/token_type_ids", "token_types"},
      {"{\"inputs_embeds\":[[1]]}", "/inputs_embeds", "embeddings"},
      {"{\"output_attentions\":true}", "/output_attentions", "return_attention"},
      {"{\"output_hidden_states\":true}", "/output_hidden_states", "return_hidden"},
      {"{\"pooling\":\"mean\"}", "/pooling", "pool"},
      {"{\"normalize_embeddings\":true}", "/normalize_embeddings", "normalize"},
      {"{\"input\":\"text\"}", "/input", "tokens"},
      {"{\"model\":\"m\"}", "/model", "in the path"},
      {"{\"num_beams\":4}", "/num_beams", "/generate calls it \"beams\""},
      {"{\"poool\":1}", "/poool", "did you mean \"pool\"?"},
      {"{\"queries\":1}", "/queries", "layers/encoder.0.self/attention"},
      {"{\"keys\":1}", "/keys", "for a single attention"},
      {"{\"values\":1}", "/values", "for a single attention"},
      {"{\"mask\":1}", "/mask", "use \"valid_lens\""},
      {"{\"causal\":true}", "/causal", "bidirectional in an encoder"},
      {"{\"layers\":[0]}", "/layers", "\"return_hidden\""},
      {"{\"quories\":1}", "/quories", "unknown field"},
      {"{\"tokens\":[],\"tokens\":[]}", "/tokens", "duplicate"},
  };
  WHOLE_BODY_REFUSE(&plain, list);
}

/* --- limits --- */

#define RAGGED_PICTURES                                                                 \
  "{\"tokens\":[[1,2,3],[4]],\"return_attention\":{\"of\":[\"encoder.1.self\"],\"as\":" \
  "{\"thumbnails\":5}}}"

static void limits_hold_before_anything_is_made(void **state) {
  (void)state;
  static const struct {
    struct body_limits limits;
    const char *body, *limit;
    bool binary;
  } list[] = {
      {{2, 1000, 100000, 9, 9, 0}, "{\"tokens\":[[1],[2],[3]]}", "max_items", false},
      {{2, 1000, 100000, 9, 9, 0}, "{\"tokens\":[[],[],[]]}", "max_items", false},
      /* 2 heads in each of 3 layers, (4 + 1) pairs */
      {{9, 29, 100000, 9, 9, 0}, "{\"tokens\":[[1,2],[3]]}", "max_pairs", false},
      {{9, 1000, 255, 9, 9, 0}, "{\"tokens\":[[1,2]]}", "max_answer_bytes", false},
      {{9, 1000, 511, 9, 9, 0},
       "{\"tokens\":[[1,2]],\"return_hidden\":[\"encoder.0\"]}",
       "max_answer_bytes",
       false},
      {{9, 1000, 511, 9, 9, 0},
       "{\"tokens\":[[1,2]],\"return_hidden\":true}",
       "max_answer_bytes",
       false},
      {{9, 1000, 511, 9, 9, 0},
       "{\"tokens\":[[1,2]],\"return_hidden\":[\"encoder.0.self.input\"]}",
       "max_answer_bytes",
       false},
      {{9, 1000, 383, 9, 9, 0},
       "{\"tokens\":[[1,2]],\"return_attention\":[\"encoder.0.self\"]}",
       "max_answer_bytes",
       false},
      {{9, 1000, 255 + 64, 9, 9, 0},
       "{\"tokens\":[[1,2]],\"return_attention\":{\"of\":[\"encoder.0.self\"],\"as\":\"average\"}}",
       "max_answer_bytes",
       false},
      {{9, 1000, 1919, 9, 9, 0},
       "{\"tokens\":[[1,1,1,1,1,1,1,1,1,1,1,1]],\"return_attention\":{\"of\":[\"encoder.0.self\"],"
       "\"as\":{\"thumbnails\":64}}}",
       "max_answer_bytes",
       false},
      /* 2 heads: 18 and 2 bytes of pictures are 24 and 4 letters, and in a rectangle 36 bytes */
      {{9, 1000, 4 * 8 * 16 + 27, 9, 9, 0}, RAGGED_PICTURES, "max_answer_bytes", false},
      {{9, 1000, 6 * 8 * 4 + 35, 9, 9, 0}, RAGGED_PICTURES, "max_answer_bytes", true},
      {{9, 1000, 127, 9, 9, 0}, "{\"tokens\":[[1,2]],\"pool\":\"cls\"}", "max_answer_bytes", false},
      /* Rectangles: 3 items of 4 rows */
      {{9, 1000, 383, 9, 9, 0}, "{\"tokens\":[[1,2,3,4],[],[]]}", "max_answer_bytes", true},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    struct body_terms terms = whole_body_terms(BODY_JSON);
    terms.wants_binary = list[i].binary;
    struct whole_body r = {0};
    whole_body_read(&r, &plain, &terms, &list[i].limits, list[i].body, strlen(list[i].body), 0,
                    SIZE_MAX);
    if (r.error.status != STATUS_TOO_LARGE || strcmp(r.error.limit, list[i].limit) != 0)
      fail_msg("%s: status %d, %s", list[i].body, (int)r.error.status, r.error.detail);
    arena_free(&r.arena);
  }
}

static void what_just_fits_is_accepted(void **state) {
  (void)state;
  static const struct {
    struct body_limits limits;
    const char *body;
    bool binary;
  } list[] = {
      {{3, 1000, 100000, 9, 9, 0}, "{\"tokens\":[[1],[2],[3]]}", false},
      {{9, 30, 100000, 9, 9, 0}, "{\"tokens\":[[1,2],[3]]}", false},
      {{9, 1000, 256, 9, 9, 0}, "{\"tokens\":[[1,2]]}", false},
      {{9, 1000, 384, 9, 9, 0}, "{\"tokens\":[[1,2,3,4],[],[]]}", true},
      {{9, 1000, 64, 9, 9, 0}, "{\"tokens\":[[1,2]],\"pool\":\"cls\",\"dimensions\":4}", false},
      {{9, 1000, 1920, 9, 9, 0},
       "{\"tokens\":[[1,1,1,1,1,1,1,1,1,1,1,1]],\"return_attention\":{\"of\":[\"encoder.0.self\"],"
       "\"as\":{\"thumbnails\":64}}}",
       false},
      {{9, 1000, 4 * 8 * 16 + 28, 9, 9, 0}, RAGGED_PICTURES, false},
      {{9, 1000, 6 * 8 * 4 + 36, 9, 9, 0}, RAGGED_PICTURES, true},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    struct body_terms terms = whole_body_terms(BODY_JSON);
    terms.wants_binary = list[i].binary;
    struct whole_body r = {0};
    whole_body_read(&r, &plain, &terms, &list[i].limits, list[i].body, strlen(list[i].body), 0,
                    SIZE_MAX);
    if (r.error.status) fail_msg("%s: %s", list[i].body, r.error.detail);
    arena_free(&r.arena);
  }
}

/* --- other forms --- */

static void safetensors_say_the_same(void **state) {
  (void)state;
  struct whole_body r;
  static const struct {
    int64_t tokens[6];
    int32_t types[6], lens[2];
  } data = {{1, 2, 3, 4, 99, 99}, {0, 1, 0, 1, 9, 9}, {3, 1}};
  whole_body_safetensors(
      &r, &plain,
      "{\"__metadata__\":{\"pool\":\"max\",\"dimensions\":\"3\",\"normalize\":\"true\","
      "\"return_hidden\":\"[\\\"encoder.0\\\"]\",\"return_attention\":\"average\","
      "\"head_mask\":\"{\\\"encoder.1.self\\\":[0,1]}\"},"
      "\"tokens\":{\"dtype\":\"I64\",\"shape\":[2,3],\"data_offsets\":[0,48]},"
      "\"token_types\":{\"dtype\":\"I32\",\"shape\":[2,3],\"data_offsets\":[48,72]},"
      "\"valid_lens\":{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":[72,80]}}",
      &data, sizeof data);
  if (r.error.status) fail_msg("%s (%s)", r.error.detail, r.error.pointer);
  const struct stack_run *run = r.request.main.run;
  assert_int_equal(run->geometry.q_rows, 4);
  assert_int_equal(run->tokens[3], 4);
  assert_int_equal(run->types[1], 1);
  assert_int_equal(run->vectors, STACK_VECTORS_MAX);
  assert_int_equal(run->dimensions, 3);
  assert_true(run->normalize && run->embedded && run->wish[1].head_mask[0] == 0);
  assert_int_equal(run->wish[2].weights, STACK_WEIGHTS_AVERAGE);
  arena_free(&r.arena);
  /* An empty batch keeps its shape. */
  whole_body_safetensors(&r, &plain,
                         "{\"tokens\":{\"dtype\":\"I32\",\"shape\":[0,5],\"data_offsets\":[0,0]}}",
                         "", 0);
  assert_int_equal(r.error.status, STATUS_OK);
  assert_int_equal(r.request.main.widest, 5);
  arena_free(&r.arena);
  whole_body_safetensors(&r, &plain,
                         "{\"tokens\":{\"dtype\":\"I32\",\"shape\":[0],\"data_offsets\":[0,0]}}",
                         "", 0);
  assert_int_equal(r.error.status, STATUS_OK);
  assert_true(r.request.unbatched);
  arena_free(&r.arena);
}

static void safetensors_are_refused_alike(void **state) {
  (void)state;
  static const struct {
    const char *header, *pointer, *words;
    enum status status;
  } list[] = {
      {"{\"tokens\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", "/tokens", "I64",
       STATUS_INVALID_REQUEST},
      {"{\"tokens\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]}}", "/tokens/0",
       "token 77", STATUS_INVALID_REQUEST},
      {"{\"attention_mask\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]}}",
       "/attention_mask", "valid_lens", STATUS_INVALID_REQUEST},
      {"{\"embeddings\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]}}", "/embeddings",
       "width", STATUS_INVALID_REQUEST},
      {"{\"tokens\":{\"dtype\":\"I32\",\"shape\":[600,0],\"data_offsets\":[0,0]}}", "", "512",
       STATUS_TOO_LARGE},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    struct whole_body r;
    const int64_t data = 77;
    whole_body_safetensors(&r, &plain, list[i].header, &data,
                           strstr(list[i].header, ",8]")   ? 8
                           : strstr(list[i].header, ",4]") ? 4
                                                           : 0);
    if (r.error.status != list[i].status || strcmp(r.error.pointer, list[i].pointer) != 0 ||
        !strstr(r.error.detail, list[i].words))
      fail_msg("%s\nstatus %d, at %s: %s", list[i].header, (int)r.error.status, r.error.pointer,
               r.error.detail);
    arena_free(&r.arena);
  }
}

#define IDS   "{\"name\":\"input_ids\",\"datatype\":\"INT64\",\"shape\":[2,3],\"data\":[1,2,3,4,5,6]}"
#define MASK  "{\"name\":\"attention_mask\",\"datatype\":\"INT64\",\"shape\":[2,3],\"data\":"
#define TYPES "{\"name\":\"token_type_ids\",\"datatype\":\"INT64\",\"shape\":[2,3],\"data\":"

static void read_v2(struct whole_body *r, const struct whole_made *m, const char *body) {
  const struct body_terms terms = whole_body_terms(BODY_V2);
  memset(r, 0, sizeof *r);
  whole_body_read(r, m, &terms, &whole_body_wide, body, strlen(body), 0, 11);
}

static void the_inference_protocol_has_names_of_its_own(void **state) {
  (void)state;
  struct whole_body r;
  read_v2(&r, &pooled, "{\"inputs\":[" IDS "," MASK "[1,1,1,1,0,0]}," TYPES "[0,0,1,1,9,9]}]}");
  if (r.error.status) fail_msg("%s (%s)", r.error.detail, r.error.pointer);
  assert_int_equal(r.request.main.run->geometry.q_rows, 4);
  assert_int_equal(r.request.main.run->tokens[3], 4);
  assert_int_equal(r.request.main.run->types[3], 1);
  assert_false(stack_makes_vectors(r.request.main.run)); /* whatever the model's default is */
  arena_free(&r.arena);
  read_v2(&r, &pooled, "{\"inputs\":[" IDS "],\"outputs\":[{\"name\":\"pooler_output\"}]}");
  assert_int_equal(r.error.status, STATUS_OK);
  assert_true(r.request.main.run->after & STACK_AFTER_POOLER);
  assert_false(r.request.main.run->normalize);
  arena_free(&r.arena);
  read_v2(&r, &bare,
          "{\"inputs\":[{\"name\":\"inputs_embeds\",\"datatype\":\"FP32\","
          "\"shape\":[1,1,8],\"data\":[1,2,3,4,5,6,7,8]}]}");
  assert_int_equal(r.error.status, STATUS_OK);
  arena_free(&r.arena);
}

static void the_inference_protocol_says_where(void **state) {
  (void)state;
  static const struct whole_body_refused list[] = {
      {"{\"inputs\":[]}", "/inputs", "the input \"input_ids\" is missing"},
      {"{\"inputs\":[" IDS "," MASK "[1,0,1,1,1,1]}]}", "/inputs/1", "0/2"},
      {"{\"inputs\":[" IDS "," MASK "[[1,1,1],[2,0,0]]}]}", "/inputs/1/data/1/0",
       "the mask must be ones"},
      {"{\"inputs\":[" IDS "," TYPES "[[0,0,0],[0,2,0]]}]}", "/inputs/1/data/1/1",
       "type 2 is out of range"},
      {"{\"inputs\":[" IDS "],\"outputs\":[{\"name\":\"last_hidden_state\"},"
       "{\"name\":\"pooler_output\"}]}",
       "/outputs/1", "this model has no pooler"},
      {"{\"inputs\":[" IDS ",{\"name\":\"attention_mask\",\"datatype\":\"INT64\","
       "\"shape\":[1,3],\"data\":[1,1,1]}]}",
       "/inputs/1", "attention_mask has 1 items, but input_ids has 2"},
      {"{\"inputs\":[" IDS ",{\"name\":\"token_type_ids\",\"datatype\":\"INT64\","
       "\"shape\":[2,2],\"data\":[0,0,0,0]}]}",
       "/inputs/1", "2 numbers, but the item has 3 positions"},
      {"{\"inputs\":[" IDS "],\"outputs\":[{\"name\":\"last_hidden_state\"},"
       "{\"name\":\"logits\"}]}",
       "/outputs/1", "this model has no language modeling head and no classes: it has no logits"},
      {"{\"inputs\":[" IDS "],\"outputs\":[{\"name\":\"attentions\"}]}", "/outputs/0/name",
       "last_hidden_state, pooler_output and logits"},
      {"{\"inputs\":[{\"name\":\"queries\",\"datatype\":\"FP32\",\"shape\":[1]}]}",
       "/inputs/0/name", "input_ids"},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    struct whole_body r;
    read_v2(&r, &plain, list[i].text);
    whole_body_is_refused(&r, &list[i]);
    arena_free(&r.arena);
  }
}

/* Both outputs, whatever the model's last hidden state is, and each counted in its own form. */
static void both_outputs_of_the_inference_protocol(void **state) {
  (void)state;
  static const struct {
    const char *rows, *pooler;
    size_t bytes;
  } list[] = {{"false", "false", (6 + 2) * 8 * 16},
              {"true", "false", 6 * 8 * 4 + 2 * 8 * 16},
              {"false", "true", 6 * 8 * 16 + 2 * 8 * 4},
              {"true", "true", (6 + 2) * 8 * 4}};
  const struct body_terms terms = whole_body_terms(BODY_V2);
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    for (size_t less = 0; less < 2; less++) {
      char body[500];
      const struct body_limits limits = {9, 1000, list[i].bytes - less, 9, 9, 0};
      snprintf(body, sizeof body,
               "{\"inputs\":[" IDS "],\"outputs\":["
               "{\"name\":\"pooler_output\",\"parameters\":{\"binary_data\":%s}},"
               "{\"name\":\"last_hidden_state\",\"parameters\":{\"binary_data\":%s}}]}",
               list[i].pooler, list[i].rows);
      struct whole_body r = {0};
      whole_body_read(&r, &pooled, &terms, &limits, body, strlen(body), 0, SIZE_MAX);
      assert_int_equal(r.error.status, less ? STATUS_TOO_LARGE : STATUS_OK);
      if (less) assert_string_equal(r.error.limit, "max_answer_bytes");
      if (!less) assert_true(r.request.main.run->after & STACK_AFTER_POOLER);
      if (!less)
        assert_true(!(r.request.main.run->after & STACK_AFTER_DENSE) && !r.request.main.run->wish);
      arena_free(&r.arena);
    }
}

/* What its shape says of the items that an empty batch does not have. */
static void an_empty_batch_needs_nothing(void **state) {
  (void)state;
  const struct body_terms terms = whole_body_terms(BODY_V2);
  const struct body_limits limits = {9, 0, 0, 9, 9, 0};
  static const char body[] = "{\"inputs\":[{\"name\":\"input_ids\",\"datatype\":\"INT64\","
                             "\"shape\":[0,1099511627776],\"data\":[]}]}";
  struct whole_body r = {0};
  whole_body_read(&r, &plain, &terms, &limits, body, sizeof body - 1, 0, SIZE_MAX);
  if (r.error.status) fail_msg("%s", r.error.detail);
  assert_int_equal(r.request.main.run->geometry.items, 0);
  arena_free(&r.arena);
}

/* --- memory --- */

static void a_full_budget_at_every_step(void **state) {
  (void)state;
  whole_body_in_any_budget(&plain, BODY_JSON, full, sizeof full - 1);
}

static void long_values_are_charged(void **state) {
  (void)state;
  const struct body_terms terms = whole_body_terms(BODY_JSON);
  static char body[8000];
  write_names(body, 600);
  struct budget budget;
  size_t refused = 0, accepted = 0;
  for (size_t limit = 4000; limit < 2000000; limit *= 2) {
    struct whole_body r = {0};
    budget_init(&budget, limit);
    arena_init(&r.arena, &budget);
    whole_body_read(&r, &plain, &terms, &whole_body_wide, body, strlen(body), 0, 100);
    ++*(r.error.status ? &refused : &accepted);
    arena_free(&r.arena);
    assert_int_equal(atomic_load(&budget.used), 0);
  }
  assert_true(refused > 3 && accepted > 0);
}

int main(void) {
  whole_body_ask = ASK_ENCODE;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_full_request_however_it_is_cut),
      cmocka_unit_test(defaults_are_the_models),
      cmocka_unit_test(one_item_is_no_batch),
      cmocka_unit_test(embeddings_stand_for_tokens),
      cmocka_unit_test(padding_is_not_looked_at),
      cmocka_unit_test(names_mean_parts),
      cmocka_unit_test(long_values_are_read),
      cmocka_unit_test(too_long_values_are_refused_at_one_byte),
      cmocka_unit_test(what_is_asked_for_has_its_cost),
      cmocka_unit_test(wrong_rows),
      cmocka_unit_test(wrong_pools),
      cmocka_unit_test(wrong_names),
      cmocka_unit_test(wrong_traces),
      cmocka_unit_test(fields_of_others_say_what_is_meant),
      cmocka_unit_test(limits_hold_before_anything_is_made),
      cmocka_unit_test(what_just_fits_is_accepted),
      cmocka_unit_test(safetensors_say_the_same),
      cmocka_unit_test(safetensors_are_refused_alike),
      cmocka_unit_test(the_inference_protocol_has_names_of_its_own),
      cmocka_unit_test(the_inference_protocol_says_where),
      cmocka_unit_test(both_outputs_of_the_inference_protocol),
      cmocka_unit_test(an_empty_batch_needs_nothing),
      cmocka_unit_test(a_full_budget_at_every_step),
      cmocka_unit_test(long_values_are_charged),
  };
  return cmocka_run_group_tests(tests, make_models, free_models);
}
