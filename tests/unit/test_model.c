/* test_model: definitions, sizes, random weights and digests; what is refused, and how.
 *
 * The expected digests were computed by other programs from the same files and formulas. The
 * program runs at the top of the source tree, where the golden files serve as checkpoints. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/build/layer/random.h"
#include "config/checkpoint/safetensors.h"
#include "config/document/digest.h"
#include "config/document/file.h"
#include "config/model/registry.h"
#include "config/settings/config.h"
#include "core/kernel/philox.h"
#include "tests/support/blas_start.h"
#include "tests/support/metadata.h"
#include "tests/support/model_load.h"

/* --- golden files --- */

struct golden {
  const char *name, *layout;
  bool bias;
  size_t heads, kv_heads, head_size, value_head_size, sizes[4];
};

/* Loads a golden file with the definition that it carries. */
static struct model *load_golden(const char *name) {
  char path[128];
  struct error e = {0};
  snprintf(path, sizeof path, "tests/golden/%s.safetensors", name);
  json_t *definition = metadata_json(path, "model");
  assert_int_equal(json_object_set_new(definition, "checkpoint", json_string(path)), 0);
  struct model *m = model_load("golden", definition, ".", GEMM_AUTO, COMPUTE_FLOAT32, &e);
  assert_string_equal(e.detail, "");
  assert_non_null(m);
  json_decref(definition);
  return m;
}

#define A100 \
  5, 5, 20, 20, { 100, 100, 100, 100 }
#define B24 \
  4, 4, 6, 6, { 24, 24, 24, 24 }

/* Checks what a golden file's definition and tensors make. */
static struct model *load_as(const struct golden *g) {
  struct model *m = load_golden(g->name);
  assert_shape(&m->shape, g->heads, g->kv_heads, g->head_size, g->value_head_size, g->sizes);
  assert_string_equal(m->layout, g->layout);
  assert_int_equal(m->bias, g->bias);
  assert_false(m->causal);
  assert_memory_equal(m->source, g->name, strlen(g->name));
  assert_null(strchr(m->source, '/'));
  return m;
}

static void golden_files_are_checkpoints(void **state) {
  (void)state;
  static const struct golden cases[] = {
      {"linear-a", "plain", false, A100},
      {"linear-b", "plain", false, B24},
      {"linear-bias-lens1-a", "plain", true, A100},
      {"linear-bias-lens1-b", "plain", true, B24},
      {"lens-zero-uniform-a", "plain", false, A100},
      {"lens-zero-uniform-b", "plain", false, B24},
      {"lens2-with-zero-a", "plain", true, A100},
      {"lens2-with-zero-b", "plain", true, B24},
      {"causal-a", "plain", false, A100},
      {"causal-b", "plain", false, B24},
      {"causal-offset-window-a", "plain", false, A100},
      {"causal-offset-window-b", "plain", false, B24},
      {"mask-bias-headmask-a", "plain", true, A100},
      {"mask-bias-headmask-b", "plain", true, B24},
      {"sizes-a", "plain", true, 5, 5, 20, 20, {103, 107, 99, 105}},
      {"sizes-b", "plain", true, 4, 4, 6, 6, {27, 31, 23, 29}},
      {"gqa-a", "plain", false, 10, 5, 20, 20, {100, 100, 100, 100}},
      {"gqa-b", "plain", false, 8, 4, 6, 6, {24, 24, 24, 24}},
      {"torch-a", "torch", true, A100},
      {"torch-b", "torch", true, B24},
      {"torch-kdim-vdim-a", "torch", true, 5, 5, 20, 20, {100, 103, 98, 100}},
      {"torch-kdim-vdim-b", "torch", true, 4, 4, 6, 6, {24, 27, 22, 24}},
      {"torch-nobias-causal-a", "torch", false, A100},
      {"torch-nobias-causal-b", "torch", false, B24},
      {"cross-swapped-names", "tensors", true, 8, 8, 16, 16, {128, 128, 128, 128}},
      {"split-none-a", "none", false, A100},
      {"split-none-b", "none", false, B24},
      {"book-dot", "none", false, 1, 1, 2, 4, {2, 2, 4, 4}},
      {"hard-a", "plain", false, A100},
      {"hard-b", "plain", false, B24},
      {"segments-a", "plain", false, A100},
      {"segments-b", "plain", false, B24},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct model *m = load_as(&cases[i]);
    assert_string_equal(m->score, "scaled_dot");
    assert_string_equal(m->weighting, "softmax");
    assert_int_equal(m->shape.key_head_size, m->shape.head_size);
    assert_false(m->shape.sigmoid || m->shape.grouped);
    model_free(m);
  }
}

static void golden_files_have_every_score(void **state) {
  (void)state;
  static const struct {
    const char *score;
    size_t key_head_size, score_size;
    struct golden golden;
  } cases[] = {
      {"additive", 20, 6, {"additive-heads-a", "plain", false, A100}},
      {"additive", 6, 6, {"additive-heads-b", "plain", false, B24}},
      {"additive", 100, 8, {"additive-pooling-a", "plain", false, 1, 1, 104, 3, {104, 100, 3, 3}}},
      {"additive", 24, 8, {"additive-pooling-b", "plain", false, 1, 1, 28, 3, {28, 24, 3, 3}}},
      {"additive", 2, 8, {"book-additive", "plain", false, 1, 1, 20, 4, {20, 2, 4, 4}}},
      {"bilinear", 20, 0, {"bilinear-heads-a", "plain", false, A100}},
      {"bilinear", 6, 0, {"bilinear-heads-b", "plain", false, B24}},
      {"bilinear", 101, 0, {"bilinear-pooling-a", "plain", false, 1, 1, 100, 4, {100, 101, 4, 4}}},
      {"bilinear", 25, 0, {"bilinear-pooling-b", "plain", false, 1, 1, 24, 4, {24, 25, 4, 4}}},
      {"dot", 100, 0, {"dot-pooling-a", "none", false, 1, 1, 100, 102, {100, 100, 102, 102}}},
      {"dot", 24, 0, {"dot-pooling-b", "none", false, 1, 1, 24, 26, {24, 24, 26, 26}}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct model *m = load_as(&cases[i].golden);
    assert_string_equal(m->score, cases[i].score);
    assert_string_equal(m->weighting, "softmax");
    assert_true(m->shape.scale == 1);
    assert_int_equal(m->shape.key_head_size, cases[i].key_head_size);
    assert_int_equal(m->shape.score_size, cases[i].score_size);
    model_free(m);
  }
}

static void sigmoid_golden_files_say_so(void **state) {
  (void)state;
  static const struct golden cases[] = {{"sigmoid-a", "plain", false, A100},
                                        {"sigmoid-b", "plain", false, B24}};
  for (size_t i = 0; i < 2; i++) {
    struct model *m = load_as(&cases[i]);
    assert_string_equal(m->score, "scaled_dot");
    assert_string_equal(m->weighting, "sigmoid");
    assert_true(m->shape.sigmoid);
    model_free(m);
  }
}

static void grouped_golden_files_hold_a_slice_per_head(void **state) {
  (void)state;
#define GROUPED "{\"checkpoint\":\"x\",\"projection\":\"grouped\",\"query_size\":"
  struct parameters a =
      parameters_of(GROUPED "100,\"heads\":5}", "tests/golden/grouped-a.safetensors");
  struct parameters b =
      parameters_of(GROUPED "24,\"heads\":4}", "tests/golden/grouped-b.safetensors");
  assert_shape(&a.shape, 5, 5, 20, 20, (size_t[]){100, 100, 100, 100});
  assert_shape(&b.shape, 4, 4, 6, 6, (size_t[]){24, 24, 24, 24});
  assert_true(a.shape.grouped && b.shape.grouped);
  assert_int_equal(a.matrix[ROLE_KEY].in, 20);
  assert_int_equal(b.matrix[ROLE_KEY].in, 6);
  parameters_free(&a);
  parameters_free(&b);
}

static void digests_are_those_of_the_tensors_in_their_order(void **state) {
  (void)state;
  static const struct {
    const char *name, *sha256;
    uint64_t parameters;
  } cases[] = {
      {"linear-b", "9b17866a48edfca8807c081e96925565a10b4dc23c7836dd0498ca54eb8739c3", 4 * 576},
      {"linear-bias-lens1-b", "41ccd689e2b625532e67056ed6816bd6ae993893f1bfd9c239c4e9ef1b68ecb1",
       4 * 600},
      {"torch-b", "bfb8760b91a530c429914c1a0f8d7e076c4376d5e8ecb54c9cb9cc6aa91a3ebe", 4 * 600},
      {"cross-swapped-names", "5f207bd2013d3a41dbff59cea59f4e72c83b7cf72618263c8eb944a98d2e0afe",
       4 * (16384 + 128)},
      {"split-none-b", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", 0},
      {"dot-pooling-b", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", 0},
      {"additive-heads-b", "7280df92ebd5e88434f14cc4fb07eacaae09259785e482f1f8a383b36e8bd682",
       4 * 576 + 2 * 36 + 6},
      {"additive-pooling-b", "7d046cea53051660a6baf82ff965aaff71cb92cc58d5b630c90663103ed3f70a",
       8 * (28 + 24 + 1)},
      {"bilinear-heads-b", "a128605b4a01babdf69c04dec98c3c074e6c577f32af5e4823ab537852223e45",
       4 * 576 + 36},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct model *m = load_golden(cases[i].name);
    assert_string_equal(m->digest, cases[i].sha256);
    assert_int_equal(m->parameters, cases[i].parameters);
    model_free(m);
  }
}

/* --- random --- */

static void philox_gives_the_known_answers(void **state) {
  (void)state;
  static const struct {
    uint32_t key[2], counter[4], word[4];
  } cases[] = {
      {{0, 0}, {0, 0, 0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{~0u, ~0u}, {~0u, ~0u, ~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0xa4093822, 0x299f31d0},
       {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct philox_block b = philox(cases[i].key, cases[i].counter);
    assert_memory_equal(b.word, cases[i].word, sizeof b.word);
  }
}

static void random_models_are_the_same_everywhere(void **state) {
  (void)state;
  static const struct {
    const char *definition, *sha256;
    uint64_t parameters;
  } cases[] = {
      {"{\"random\":{\"seed\":1},\"query_size\":4,\"heads\":2}",
       "413f670ff425c7aadbc58a21d9b30f702524aa271549589cb0975e97d5dd0b10", 64},
      {"{\"random\":{\"seed\":1},\"query_size\":512,\"heads\":8,\"bias\":true}",
       "e5f34c4e0286ae383f23455e0547ab4c08a31d5e1f9fac64dfffd75acfb7c64f", 4 * (262144 + 512)},
      {"{\"random\":{\"seed\":9007199254740991},\"query_size\":8,\"heads\":2,\"bias\":true}",
       "e7caea2e7fea39a9f90be32d033747d94286947f454c18c8ab2e5f6b38ed323c", 4 * 72},
      {"{\"random\":{\"seed\":5},\"query_size\":20,\"key_size\":2,\"value_size\":4,"
       "\"projection\":\"none\",\"score\":\"additive\",\"score_size\":8}",
       "cd3b5ba051c8ed484ab26f8920cc17ff4f858642aab6970b39528266a27de08a", 8 * 23},
      {"{\"random\":{\"seed\":5},\"query_size\":12,\"heads\":3,\"score\":\"additive\"}",
       "1e20a49dc4466a68323b9e24f971f5bb094714589422c60b45fcaca73211e179", 4 * 144 + 4 * 9},
      {"{\"random\":{\"seed\":5},\"query_size\":12,\"heads\":4,\"kv_heads\":2,\"bias\":true,"
       "\"score\":\"bilinear\"}",
       "fbb6843b17c1e935e25dc5565227d03aef63793a364ba0eb96ba32a49cfbf959",
       2 * (144 + 12 + 72 + 6) + 9},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct model *m = load_well(cases[i].definition, ".");
    assert_string_equal(m->digest, cases[i].sha256);
    assert_int_equal(m->parameters, cases[i].parameters);
    assert_string_equal(m->source, "random");
    model_free(m);
  }
}

static void random_numbers_fill_their_bounds(void **state) {
  (void)state;
  enum { OUT = 37, IN = 113 };
  float weight[OUT * IN], bias[1000];
  double bound = 0.2, sum = 0; /* sqrt(6 / 150) */
  float low = 1, high = -1;
  random_weight(3, ROLE_VALUE, OUT, IN, weight);
  for (size_t i = 0; i < OUT * IN; i++) {
    sum += weight[i];
    if (weight[i] < low) low = weight[i];
    if (weight[i] > high) high = weight[i];
  }
  assert_true(low >= -(float)bound && low < -0.99 * bound);
  assert_true(high <= (float)bound && high > 0.99 * bound);
  assert_true(sum / (OUT * IN) < 0.01 && sum / (OUT * IN) > -0.01);
  random_bias(3, ROLE_VALUE, 1000, bias);
  for (size_t i = 0; i < 1000; i++) assert_true(bias[i] >= -0.1f && bias[i] <= 0.1f);
}

static void random_sizes_follow_the_query_size(void **state) {
  (void)state;
  struct model *m = load_well("{\"random\":{\"seed\":1},\"query_size\":12,\"heads\":4,"
                              "\"kv_heads\":2,\"hidden\":24,\"value_size\":5,\"causal\":true}",
                              ".");
  assert_shape(&m->shape, 4, 2, 6, 6, (size_t[]){12, 12, 5, 12});
  assert_int_equal(m->parameters, 24 * 12 + 12 * 12 + 12 * 5 + 12 * 24);
  assert_true(m->causal);
  model_free(m);
  m = load_well("{\"random\":{\"seed\":1},\"query_size\":12,\"heads\":4,\"hidden\":24,"
                "\"output_projection\":false,\"scale\":1}",
                ".");
  assert_shape(&m->shape, 4, 4, 6, 6, (size_t[]){12, 12, 12, 24});
  assert_true(m->shape.scale == 1);
  model_free(m);
  m = load_well("{\"random\":{\"seed\":1},\"projection\":\"none\",\"query_size\":12,\"heads\":4,"
                "\"kv_heads\":2,\"value_size\":10,\"output_projection\":true,\"output_size\":3}",
                ".");
  assert_shape(&m->shape, 4, 2, 3, 5, (size_t[]){12, 6, 10, 3});
  assert_int_equal(m->parameters, 60);
  model_free(m);
  m = load_well("{\"projection\":\"none\",\"query_size\":16}", ".");
  assert_shape(&m->shape, 1, 1, 16, 16, (size_t[]){16, 16, 16, 16});
  assert_true(m->shape.scale == 0.25f);
  assert_string_equal(m->source, "none");
  assert_string_equal(m->layout, "none");
  model_free(m);
}

/* --- what a definition may not say --- */

static void wrong_definitions_are_refused_by_key(void **state) {
  (void)state;
  ill("{\"head\":2}", "unknown key \"head\" (did you mean \"heads\"?)");
  ill("{\"num_heads\":2}", "unknown key \"num_heads\" (did you mean \"heads\"?)");
  ill("{\"num-kv-heads\":2}", "unknown key \"num-kv-heads\" (did you mean \"kv_heads\"?)");
  ill("{\"relative\":1}", "unknown key \"relative\"");
  ill("{" RANDOM ",\"query_size\":4}", "heads: required with projection linear");
  ill("{" RANDOM ",\"heads\":2}", "query_size: required without a checkpoint");
  ill("{" RANDOM ",\"heads\":0,\"query_size\":4}", "heads: 0 is outside 1 to 4096");
  ill("{" RANDOM ",\"heads\":\"2\",\"query_size\":4}", "heads: needs an integer, not a string");
  ill("{" RANDOM ",\"heads\":2.0,\"query_size\":4}", "heads: needs an integer");
  ill("{" RANDOM ",\"heads\":2,\"query_size\":5}", "heads: 2 do not divide the hidden size 5");
  ill("{" RANDOM ",\"heads\":6,\"kv_heads\":4,\"query_size\":6}", "kv_heads: 4 does not divide 6");
  ill("{" RANDOM ",\"heads\":2,\"query_size\":4,\"hidden\":-4}", "hidden: -4 is outside");
  ill("{" RANDOM ",\"heads\":2,\"query_size\":4,\"bias\":1}", "bias: needs true or false");
  ill("{" RANDOM ",\"heads\":2,\"query_size\":4,\"causal\":null}", "causal: needs true or false");
  ill("{" RANDOM ",\"heads\":2,\"query_size\":4,\"scale\":0}",
      "scale: 0 is not a positive float32");
  ill("{" RANDOM ",\"heads\":2,\"query_size\":4,\"scale\":1e39}", "scale: 1e+39 is not a positive");
  ill("{" RANDOM ",\"heads\":2,\"query_size\":4,\"scale\":\"1\"}", "scale: needs a number");
  ill("{" RANDOM ",\"heads\":2,\"query_size\":4,\"output_projection\":false,\"output_size\":3}",
      "output_size: 3 in the definition, but it must be 4");
  ill("{" RANDOM ",\"checkpoint\":\"x\",\"heads\":2}",
      "random: cannot be combined with a checkpoint");
  ill("{\"random\":{},\"heads\":2}", "random: needs {\"seed\": n}");
  ill("{\"random\":{\"seed\":-1},\"heads\":2}", "random: needs {\"seed\": n}");
  ill("{\"random\":{\"seed\":1.5},\"heads\":2}", "random: needs {\"seed\": n}");
  ill("{\"random\":{\"seed\":9007199254740992},\"heads\":2}", "random: needs {\"seed\": n}");
  ill("{\"random\":{\"seed\":1,\"x\":1},\"heads\":2}", "random: needs {\"seed\": n}");
  ill("{\"random\":1,\"heads\":2}", "random: needs an object");
  ill("{\"heads\":2,\"query_size\":4}", "needs a checkpoint, or random");
  ill("{\"projection\":\"none\",\"query_size\":4,\"output_projection\":true}",
      "needs a checkpoint, or random");
  ill("{\"projection\":\"none\"}", "query_size: required with projection none");
  ill("{\"projection\":\"none\",\"query_size\":5,\"heads\":2}", "heads: 2 do not divide the query");
  ill("{\"projection\":\"none\",\"query_size\":4,\"key_size\":5}",
      "key_size: 5 in the definition, but it must be 4");
  ill("{\"projection\":\"none\",\"query_size\":4,\"hidden\":5}",
      "hidden: 5 in the definition, but it must be 4");
  ill("{\"projection\":\"none\",\"query_size\":4,\"heads\":2,\"value_size\":5}",
      "heads: 2 do not divide the 5 columns of the values");
  ill("{\"projection\":\"none\",\"query_size\":4,\"bias\":true}", "bias: true, but there");
  ill("{" RANDOM ",\"heads\":2,\"query_size\":4,\"layout\":\"plain\"}",
      "layout: does not apply without a checkpoint");
  ill("{" RANDOM ",\"heads\":2,\"query_size\":4,\"layer\":0}", "layer: does not apply");
  ill("{\"checkpoint\":\"x\",\"heads\":2,\"layer\":\"*\"}",
      "layer: needs an integer, not a string; \"layers\": \"all\" makes a model of each");
  ill("{\"checkpoint\":\"x\",\"heads\":2,\"layer\":1.5}", "layer: needs an integer, not a ");
  ill("{\"checkpoint\":\"\",\"heads\":2}", "checkpoint: needs a path");
  ill("{\"checkpoint\":1,\"heads\":2}", "checkpoint: needs a string");
  ill("{\"checkpoint\":\"/nowhere/w.safetensors\",\"heads\":2}",
      "/nowhere/w.safetensors: No such file");
  ill("{\"checkpoint\":\"/dev/null\",\"heads\":2}", "/dev/null: is not a regular file");
  ill("{\"checkpoint\":\"/dev\",\"heads\":2}", "/dev: is a directory");
  ill("{\"checkpoint\":\"x\",\"heads\":2,\"tensors\":{\"quer\":\"q\"}}",
      "tensors: unknown role \"quer\" (did you mean \"query\"?)");
  ill("{\"checkpoint\":\"x\",\"heads\":2,\"tensors\":{\"query\":\"\"}}", "query needs the name");
  ill("{\"checkpoint\":\"x\",\"heads\":2,\"tensors\":[]}", "tensors: needs an object");
  ill("{\"checkpoint\":\"x\",\"heads\":2,\"tensors\":{},\"layout\":\"d2l\"}",
      "tensors: cannot be combined with a layout or a layer");
}

static void words_that_are_unknown_are_named_with_the_known_ones(void **state) {
  (void)state;
#define LINEAR "{" RANDOM ",\"heads\":2,\"query_size\":8,"
  ill(LINEAR "\"layout\":\"gpt3\"}", "layout: \"gpt3\" is not one of auto, plain, torch, d2l, "
                                     "bert, clip, gpt2, t5, llama, whisper");
  ill(LINEAR "\"score\":\"cosine\"}",
      "score: \"cosine\" is not one of scaled_dot, dot, additive, bilinear");
}

static void positions_are_read_strictly(void **state) {
  (void)state;
  ill(LINEAR "\"rope\":true}", "rope: needs an object or false, not a boolean");
  ill(LINEAR "\"rope\":{\"theta\":1}}", "rope: unknown key \"theta\"");
  ill(LINEAR "\"rope\":{\"base\":\"1\"}}", "rope: base needs a number above 1, at most 1e+12");
  ill(LINEAR "\"rope\":{\"base\":1}}", "rope: base needs a number above 1");
  ill(LINEAR "\"rope\":{\"base\":1e13}}", "rope: base needs a number above 1");
  ill(LINEAR "\"rope\":{},\"score\":\"additive\"}", "rope: does not apply with score additive");
  ill("{" RANDOM ",\"heads\":2,\"query_size\":6,\"rope\":{}}",
      "rope: the head size must be even, not 3");
  ill(LINEAR "\"relative_bias\":1}", "relative_bias: needs an object or false, not an integer");
  ill(LINEAR "\"relative_bias\":{\"bukets\":1}}",
      "relative_bias: unknown key \"bukets\" (did you mean \"buckets\"?)");
  ill(LINEAR "\"relative_bias\":{\"max_distance\":0}}",
      "relative_bias: max_distance: 0 is outside 1 to 1048576");
  ill(LINEAR "\"relative_bias\":{\"bidirectional\":1}}",
      "relative_bias: bidirectional: needs true or false, not an integer");
  ill(LINEAR "\"relative_bias\":{\"buckets\":7}}",
      "relative_bias: buckets: must be even if bidirectional, not 7");
  ill(LINEAR "\"relative_bias\":{\"buckets\":2}}",
      "relative_bias: 2 buckets are too few, at least 4 are required");
  ill(LINEAR "\"relative_bias\":{\"buckets\":3,\"bidirectional\":true}}",
      "must be even if bidirectional, not 3");
  ill(LINEAR "\"relative_bias\":{\"max_distance\":8}}",
      "relative_bias: max_distance: 8 is within the 8 distances that have a bucket each");
  ill("{\"projection\":\"none\",\"query_size\":4,\"relative_bias\":{}}",
      "relative_bias: needs a checkpoint, or random, for its table");
  ill("{\"checkpoint\":\"x\",\"heads\":2,\"relative_bias\":{\"buckets\":8}}",
      "relative_bias: buckets: cannot be combined with a checkpoint, which contains them");
  ill("{\"checkpoint\":\"x\",\"heads\":2,\"relative_bias\":false,"
      "\"tensors\":{\"relative_bias\":\"t\"}}",
      "tensors: relative_bias does not apply with relative_bias false");
}

static void positions_need_no_checkpoint(void **state) {
  (void)state;
  struct model *m = load_well(LINEAR "\"rope\":{\"base\":500000},\"relative_bias\":{}}", ".");
  assert_true(m->shape.rope_base == 500000);
  assert_int_equal(m->shape.relative_buckets, 32);
  assert_int_equal(m->shape.relative_distance, 128);
  assert_true(m->shape.relative_both);
  assert_int_equal(m->parameters, 4 * 64 + 32 * 2);
  model_free(m);
  m = load_well(LINEAR "\"rope\":{},\"relative_bias\":{\"bidirectional\":false,\"buckets\":3,"
                       "\"max_distance\":2}}",
                ".");
  assert_true(m->shape.rope_base == 10000);
  assert_int_equal(m->shape.relative_buckets, 3);
  assert_false(m->shape.relative_both);
  model_free(m);
  m = load_well(LINEAR "\"rope\":false,\"relative_bias\":false}", ".");
  assert_true(m->shape.rope_base == 0);
  assert_int_equal(m->shape.relative_buckets, 0);
  assert_int_equal(m->parameters, 4 * 64);
  model_free(m);
}

/* --- registry --- */

static void the_registry_holds_every_model(void **state) {
  (void)state;
  char *const nothing[] = {NULL}, *const base[] = {"--default-model=base", "--gemm=openblas", NULL};
  struct config c;
  struct error e = {0};
  assert_int_equal(config_read(&c, nothing, nothing, &e), STATUS_OK);
  struct registry *r = registry_load(&c, NULL, &e);
  assert_non_null(r);
  assert_int_equal(registry_count(r), 6);
  assert_string_equal(registry_at(r, 0)->name, "words");
  assert_string_equal(registry_default(r)->name, "demo");
  assert_ptr_equal(registry_find(r, "base"), registry_at(r, 4));
  assert_null(registry_find(r, "bas"));
  assert_true(registry_scratch_bytes(r) >= layer_scratch_bytes(registry_at(r, 4)->layer));
  registry_free(r);
  config_free(&c);
  assert_int_equal(config_read(&c, base, nothing, &e), STATUS_OK);
  r = registry_load(&c, NULL, &e);
  assert_non_null(r);
  assert_string_equal(registry_default(r)->name, "base");
  assert_string_equal(layer_engine(registry_default(r)->layer), "openblas");
  registry_free(r);
  config_free(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(golden_files_are_checkpoints),
      cmocka_unit_test(golden_files_have_every_score),
      cmocka_unit_test(sigmoid_golden_files_say_so),
      cmocka_unit_test(grouped_golden_files_hold_a_slice_per_head),
      cmocka_unit_test(digests_are_those_of_the_tensors_in_their_order),
      cmocka_unit_test(philox_gives_the_known_answers),
      cmocka_unit_test(random_models_are_the_same_everywhere),
      cmocka_unit_test(random_numbers_fill_their_bounds),
      cmocka_unit_test(random_sizes_follow_the_query_size),
      cmocka_unit_test(wrong_definitions_are_refused_by_key),
      cmocka_unit_test(words_that_are_unknown_are_named_with_the_known_ones),
      cmocka_unit_test(positions_are_read_strictly),
      cmocka_unit_test(positions_need_no_checkpoint),
      cmocka_unit_test(the_registry_holds_every_model),
  };
  return cmocka_run_group_tests(tests, blas_start, NULL);
}
