/* test_model: definitions, layouts, sizes, random weights and digests; what is refused, and how.
 *
 * Digests were worked out by other programs from the same files and formulas. Runs at the top of
 * the source tree: the golden files are checkpoints, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "config/config.h"
#include "config/definition.h"
#include "config/digest.h"
#include "config/file.h"
#include "config/model.h"
#include "config/parameters.h"
#include "config/random.h"
#include "config/registry.h"
#include "core/philox.h"
#include "tests/support/place.h"
#include "tests/support/safetensors_make.h"

static int enter(void **state) { return place_make(state, "w.safetensors"); }

static json_t *json_of(const char *text) {
  json_t *json = json_loads(text, 0, NULL);
  if (!json) fail_msg("not JSON: %s", text);
  return json;
}

static struct model *load_well(const char *definition, const char *directory) {
  struct error e = {0};
  json_t *json = json_of(definition);
  struct model *m = model_load("m", json, directory, GEMM_AUTO, &e);
  json_decref(json);
  assert_string_equal(e.detail, "");
  assert_non_null(m);
  return m;
}

static void load_ill(const char *definition, const char *directory, const char *detail) {
  struct error e = {0};
  json_t *json = json_of(definition);
  struct model *m = model_load("m", json, directory, GEMM_AUTO, &e);
  json_decref(json);
  if (m) fail_msg("%s was taken, but should say \"%s\"", definition, detail);
  assert_int_equal(e.status, STATUS_CONFIG);
  assert_memory_equal(e.detail, "model m: ", 9);
  if (!strstr(e.detail, detail)) fail_msg("\"%s\" does not say \"%s\"", e.detail, detail);
  assert_null(strchr(e.detail, '\n'));
}

static void ill(const char *definition, const char *detail) { load_ill(definition, ".", detail); }

/* --- golden files --- */

static void assert_shape(const struct layer_shape *s, size_t heads, size_t kv_heads, size_t size,
                         size_t value_size, const size_t sizes[4]) {
  assert_int_equal(s->heads, heads);
  assert_int_equal(s->kv_heads, kv_heads);
  assert_int_equal(s->head_size, size);
  assert_int_equal(s->value_head_size, value_size);
  assert_int_equal(s->query_size, sizes[0]);
  assert_int_equal(s->key_size, sizes[1]);
  assert_int_equal(s->value_size, sizes[2]);
  assert_int_equal(s->output_size, sizes[3]);
}

struct golden {
  const char *name, *layout;
  bool bias;
  size_t heads, kv_heads, head_size, value_head_size, sizes[4];
};

/* Loads a golden file with the definition that it carries. */
static struct model *load_golden(const char *name) {
  char path[128];
  struct file f;
  struct error e = {0};
  snprintf(path, sizeof path, "tests/golden/%s.safetensors", name);
  file_read(path, &f, &e);
  assert_string_equal(e.detail, "");
  struct safetensors *s = safetensors_parse(f.bytes, f.size, &e);
  assert_string_equal(e.detail, "");
  json_t *definition = json_of(safetensors_metadata(s, "model"));
  assert_int_equal(json_object_set_new(definition, "checkpoint", json_string(path)), 0);
  struct model *m = model_load("golden", definition, ".", GEMM_AUTO, &e);
  assert_string_equal(e.detail, "");
  assert_non_null(m);
  json_decref(definition);
  safetensors_free(s);
  file_free(&f);
  return m;
}

static void golden_files_are_checkpoints(void **state) {
  (void)state;
#define A100 \
  5, 5, 20, 20, { 100, 100, 100, 100 }
#define B24 \
  4, 4, 6, 6, { 24, 24, 24, 24 }
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
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct golden *g = &cases[i];
    struct model *m = load_golden(g->name);
    assert_shape(&m->shape, g->heads, g->kv_heads, g->head_size, g->value_head_size, g->sizes);
    assert_string_equal(m->layout, g->layout);
    assert_int_equal(m->bias, g->bias);
    assert_false(m->causal);
    assert_memory_equal(m->source, g->name, strlen(g->name));
    assert_null(strchr(m->source, '/'));
    assert_string_equal(m->score, "scaled_dot");
    assert_string_equal(m->weighting, "softmax");
    model_free(m);
  }
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
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct model *m = load_golden(cases[i].name);
    assert_string_equal(m->sha256, cases[i].sha256);
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
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct model *m = load_well(cases[i].definition, ".");
    assert_string_equal(m->sha256, cases[i].sha256);
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

#define RANDOM "\"random\":{\"seed\":1}"

static void wrong_definitions_are_refused_by_key(void **state) {
  (void)state;
  ill("{\"head\":2}", "unknown key \"head\"; the nearest is \"heads\"");
  ill("{\"relative\":1}", "unknown key \"relative\"");
  ill("{" RANDOM ",\"query_size\":4}", "heads: required with projection linear");
  ill("{" RANDOM ",\"heads\":2}", "query_size: required without a checkpoint");
  ill("{" RANDOM ",\"heads\":0,\"query_size\":4}", "heads: 0 is outside 1 to 65536");
  ill("{" RANDOM ",\"heads\":\"2\",\"query_size\":4}", "heads: needs an integer, not a string");
  ill("{" RANDOM ",\"heads\":2.0,\"query_size\":4}", "heads: needs an integer");
  ill("{" RANDOM ",\"heads\":2,\"query_size\":5}", "heads: 2 do not divide the hidden size 5");
  ill("{" RANDOM ",\"heads\":6,\"kv_heads\":4,\"query_size\":6}", "kv_heads: 4 does not divide 6");
  ill("{" RANDOM ",\"heads\":2,\"query_size\":4,\"hidden\":-4}", "hidden: -4 is outside");
  ill("{" RANDOM ",\"heads\":2,\"query_size\":4,\"bias\":1}", "bias: needs true or false");
  ill("{" RANDOM ",\"heads\":2,\"query_size\":4,\"causal\":null}", "causal: needs true or false");
  ill("{" RANDOM ",\"heads\":2,\"query_size\":4,\"scale\":0}", "scale: 0 is no positive float32");
  ill("{" RANDOM ",\"heads\":2,\"query_size\":4,\"scale\":1e39}", "scale: 1e+39 is no positive");
  ill("{" RANDOM ",\"heads\":2,\"query_size\":4,\"scale\":\"1\"}", "scale: needs a number");
  ill("{" RANDOM ",\"heads\":2,\"query_size\":4,\"output_projection\":false,\"output_size\":3}",
      "output_size: 3 is said, but it is 4");
  ill("{" RANDOM ",\"checkpoint\":\"x\",\"heads\":2}", "random: not together with a checkpoint");
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
      "key_size: 5 is said, but it is 4");
  ill("{\"projection\":\"none\",\"query_size\":4,\"hidden\":5}", "hidden: 5 is said, but it is 4");
  ill("{\"projection\":\"none\",\"query_size\":4,\"heads\":2,\"value_size\":5}",
      "heads: 2 do not divide the 5 columns of the values");
  ill("{\"projection\":\"none\",\"query_size\":4,\"bias\":true}", "bias: true is said, but there");
  ill("{" RANDOM ",\"heads\":2,\"query_size\":4,\"layout\":\"plain\"}",
      "layout: has no meaning without a checkpoint");
  ill("{" RANDOM ",\"heads\":2,\"query_size\":4,\"layer\":0}", "layer: has no meaning");
  ill("{\"checkpoint\":\"\",\"heads\":2}", "checkpoint: needs a path");
  ill("{\"checkpoint\":1,\"heads\":2}", "checkpoint: needs a string");
  ill("{\"checkpoint\":\"/nowhere/w.safetensors\",\"heads\":2}",
      "/nowhere/w.safetensors: No such file");
  ill("{\"checkpoint\":\"/dev/null\",\"heads\":2}", "/dev/null: is no regular file");
  ill("{\"checkpoint\":\"/tmp\",\"heads\":2}", "/tmp: is a directory");
  ill("{\"checkpoint\":\"x\",\"heads\":2,\"tensors\":{\"quer\":\"q\"}}",
      "tensors: unknown role \"quer\"; the nearest is \"query\"");
  ill("{\"checkpoint\":\"x\",\"heads\":2,\"tensors\":{\"query\":\"\"}}", "query needs the name");
  ill("{\"checkpoint\":\"x\",\"heads\":2,\"tensors\":[]}", "tensors: needs an object");
  ill("{\"checkpoint\":\"x\",\"heads\":2,\"tensors\":{},\"layout\":\"d2l\"}",
      "tensors: not together with a layout or a layer");
}

static void what_is_not_served_yet_is_said_so(void **state) {
  (void)state;
  static const struct {
    const char *member, *detail;
  } cases[] = {
      {"\"score\":\"dot\"", "score: this version does not serve dot"},
      {"\"score\":\"additive\"", "score: this version does not serve additive"},
      {"\"score\":\"bilinear\"", "score: this version does not serve bilinear"},
      {"\"score\":\"scaled\"", "score: unknown word \"scaled\"; the nearest is \"scaled_dot\""},
      {"\"weighting\":\"sigmoid\"", "weighting: this version does not serve sigmoid"},
      {"\"projection\":\"grouped\"", "projection: this version does not serve grouped"},
      {"\"rope\":{\"base\":10000}", "rope: this version does not serve"},
      {"\"relative_bias\":{}", "relative_bias: this version does not serve"},
      {"\"score_size\":8", "score_size: this version does not serve"},
      {"\"layout\":\"bert\"", "layout: this version does not serve bert"},
      {"\"layout\":\"gpt3\"", "layout: unknown word \"gpt3\"; the nearest is \"gpt2\""},
      {"\"checkpoint\":\"model.safetensors.index.json\"", "checkpoint: this version does not"},
      {"\"checkpoint\":\"x\",\"tensors\":{\"score.query\":\"w\"}", "this version does not serve"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char definition[256];
    snprintf(definition, sizeof definition, "{\"heads\":2,\"query_size\":4,%s}", cases[i].member);
    ill(definition, cases[i].detail);
  }
}

/* --- layouts --- */

static void write_made(const struct place *p, struct made *m) {
  made_finish(m);
  made_write(m, p->file);
  made_free(m);
}

/* The four roles of a layer of 4 columns, two heads. */
static void add_roles(struct made *m, const char *prefix, const char *const stems[4],
                      const char *end) {
  for (size_t i = 0; i < 4; i++) {
    char name[128];
    snprintf(name, sizeof name, "%s%s%s", prefix, stems[i], end);
    made_add(m, name, 4, strcmp(end, ".bias") == 0 ? 0 : 4);
  }
}

static const char *const plain[] = {"query", "key", "value", "output"};
static const char *const d2l[] = {"W_q", "W_k", "W_v", "W_o"};

#define W "{\"checkpoint\":\"w.safetensors\",\"heads\":2"

static void layout_is(const struct place *p, const char *definition, const char *layout) {
  struct model *m = load_well(definition, p->folder);
  assert_string_equal(m->layout, layout);
  assert_string_equal(m->source, "w.safetensors");
  model_free(m);
}

static void d2l_is_found_behind_any_prefix(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  add_roles(&m, "net.attention.", d2l, ".weight");
  write_made(p, &m);
  layout_is(p, W "}", "d2l");
  layout_is(p, W ",\"layout\":\"d2l\"}", "d2l");
  layout_is(p, W ",\"prefix\":\"net.attention.\"}", "d2l");
  load_ill(W ",\"prefix\":\"net.\"}", p->folder,
           "fit none of plain, torch, d2l behind this prefix");
  load_ill(W ",\"layout\":\"torch\"}", p->folder, "fit none of torch");
  load_ill(W ",\"layer\":0}", p->folder, "layer: the layout d2l has none");
  load_ill(W ",\"bias\":true}", p->folder, "bias: true is said, but there is none");
  add_roles(&m, "a.", d2l, ".weight");
  add_roles(&m, "b.", d2l, ".weight");
  add_roles(&m, "b.", d2l, ".bias");
  add_roles(&m, "xb", d2l, ".weight"); /* no dot: another name */
  write_made(p, &m);
  load_ill(W "}", p->folder, "prefix: must say which, \"");
  layout_is(p, W ",\"prefix\":\"b.\",\"bias\":true}", "d2l");
  load_ill(W ",\"prefix\":\"b.\",\"bias\":false}", p->folder,
           "bias: false is said, but the checkpoint has biases");
}

static void torch_layers_are_counted(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  for (size_t i = 0; i < 2; i++) {
    char name[128];
    snprintf(name, sizeof name, "encoder.layers.%zu.self_attn.in_proj_weight", i);
    made_add(&m, name, 12, 4);
    snprintf(name, sizeof name, "encoder.layers.%zu.self_attn.out_proj.weight", i);
    made_add(&m, name, 4 + i, 4);
  }
  write_made(p, &m);
  load_ill(W "}", p->folder, "prefix: must say which");
  layout_is(p, W ",\"layer\":0}", "torch");
  layout_is(p, W ",\"layer\":0,\"prefix\":\"encoder.\"}", "torch");
  struct model *second = load_well(W ",\"layer\":1}", p->folder);
  assert_int_equal(second->shape.output_size, 5);
  model_free(second);
  load_ill(W ",\"layer\":2}", p->folder, "fit none of");
}

static void torch_is_read_as_torch_writes_it(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  made_add(&m, "in_proj_weight", 12, 4);
  made_add(&m, "out_proj.weight", 4, 4);
  made_add(&m, "bias_k", 4, 0);
  write_made(p, &m);
  load_ill(W "}", p->folder, "a learned key and value are not served");
  made_add(&m, "in_proj_weight", 13, 4);
  made_add(&m, "out_proj.weight", 4, 4);
  write_made(p, &m);
  load_ill(W "}", p->folder, "tensor \"in_proj_weight\": 13 rows are not three times");
  made_add(&m, "in_proj_weight", 12, 4);
  made_add(&m, "in_proj_bias", 9, 0);
  write_made(p, &m);
  load_ill(W "}", p->folder, "tensor \"in_proj_bias\" has 3 numbers for the 4 rows");
  made_add(&m, "q_proj_weight", 4, 4);
  made_add(&m, "k_proj_weight", 4, 5);
  write_made(p, &m);
  load_ill(W "}", p->folder, "has no tensor \"v_proj_weight\"; the nearest is");
}

static void names_that_fit_two_layouts_must_be_decided(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  add_roles(&m, "", plain, ".weight");
  add_roles(&m, "", d2l, ".weight");
  write_made(p, &m);
  load_ill(W "}", p->folder, "layout: must say which, plain or d2l");
  layout_is(p, W ",\"layout\":\"plain\"}", "plain");
}

static void tensors_are_stems_or_whole_names(void **state) {
  const struct place *p = *state;
  static const char *const stems[] = {"a", "b", "c", "d"};
  struct made m = {0};
  add_roles(&m, "x.", stems, ".weight");
  add_roles(&m, "x.", stems, ".bias");
  write_made(p, &m);
  struct model *whole = load_well(
      W ",\"tensors\":{\"query\":\"x.a.weight\",\"key\":\"x.b.weight\",\"value\":\"x.c.weight\","
        "\"output\":\"x.d\"}}",
      p->folder);
  assert_int_equal(whole->parameters, 4 * 16 + 4);
  model_free(whole);
  layout_is(p,
            W ",\"prefix\":\"x.\",\"tensors\":{\"query\":\"a\",\"key\":\"a\",\"value\":\"a\","
              "\"output\":\"d\"}}",
            "tensors");
  load_ill(W ",\"tensors\":{\"query\":\"x.a\",\"key\":\"x.b\",\"value\":\"x.c\"}}", p->folder,
           "tensors: names no output; without one output_projection must be false");
  layout_is(p,
            W ",\"output_projection\":false,\"tensors\":{\"query\":\"x.a\",\"key\":\"x.b\","
              "\"value\":\"x.c\"}}",
            "tensors");
  load_ill(W ",\"tensors\":{\"query\":\"x.q\",\"key\":\"x.b\",\"value\":\"x.c\"}}", p->folder,
           "has no tensor \"x.q.weight\"; the nearest is \"x.");
}

static void an_output_alone_serves_split_columns(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  made_add(&m, "output.weight", 3, 4);
  made_add(&m, "output.bias", 3, 0);
  write_made(p, &m);
  struct model *one = load_well(W ",\"projection\":\"none\",\"query_size\":4,"
                                  "\"output_projection\":true,\"bias\":true}",
                                p->folder);
  assert_shape(&one->shape, 2, 2, 2, 2, (size_t[]){4, 4, 4, 3});
  assert_int_equal(one->parameters, 15);
  model_free(one);
  load_ill(W ",\"projection\":\"none\",\"query_size\":6,\"output_projection\":true}", p->folder,
           "tensor \"output.weight\" has 4 columns, but the heads together 6");
  load_ill(W ",\"projection\":\"none\",\"query_size\":4,\"output_projection\":true,"
             "\"output_size\":4}",
           p->folder, "output_size: 4 is said, but it is 3");
}

/* --- tensors that do not fit --- */

static void sizes_that_disagree_are_named_with_both_numbers(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  made_add(&m, "query.weight", 6, 5);
  made_add(&m, "key.weight", 6, 7);
  made_add(&m, "value.weight", 10, 8);
  made_add(&m, "output.weight", 9, 10);
  write_made(p, &m);
  struct model *one = load_well(W ",\"hidden\":6,\"query_size\":5,\"key_size\":7,\"value_size\":8,"
                                  "\"output_size\":9}",
                                p->folder);
  assert_shape(&one->shape, 2, 2, 3, 5, (size_t[]){5, 7, 8, 9});
  model_free(one);
  load_ill(W ",\"hidden\":7}", p->folder, "hidden: 7 is said, but it is 6");
  load_ill(W ",\"query_size\":6}", p->folder, "query_size: 6 is said, but it is 5");
  load_ill(W ",\"key_size\":6}", p->folder, "key_size: 6 is said, but it is 7");
  load_ill(W ",\"value_size\":6}", p->folder, "value_size: 6 is said, but it is 8");
  load_ill(W ",\"output_size\":6}", p->folder, "output_size: 6 is said, but it is 9");
  load_ill(W ",\"kv_heads\":1}", p->folder, "keys of 6 columns are not 1 heads of 3");
  load_ill("{\"checkpoint\":\"w.safetensors\",\"heads\":4}", p->folder,
           "w.safetensors: heads: 4 do not divide the 6 columns of the queries");
}

static void only_tensors_that_are_used_are_judged(void **state) {
  const struct place *p = *state;
  static const unsigned char nan[64] = {0, 0, 0xc0, 0x7f};
  struct made m = {0};
  add_roles(&m, "", plain, ".weight");
  made_add_bytes(&m, "other.weight", "F32", "[4,4]", nan, sizeof nan);
  made_add_bytes(&m, "ids", "I64", "[8]", nan, sizeof nan);
  made_add_bytes(&m, "odd", "F6_NEW", "[9,9]", nan, sizeof nan);
  write_made(p, &m);
  layout_is(p, W "}", "plain");
  static const struct {
    const char *dtype, *shape, *detail;
    size_t size;
  } cases[] = {
      {"F32", "[4,4]", "w.safetensors: tensor \"output.weight\" holds a number that is not fin",
       64},
      {"I32", "[4,4]", "tensor \"output.weight\" is of type I32", 64},
      {"F6_NEW", "[4,4]", "tensor \"output.weight\" is of type F6_NEW", 64},
      {"F32", "[16]", "tensor \"output.weight\" has 1 dimensions, not 2", 64},
      {"F32", "[0,4]", "tensor \"output.weight\" holds no numbers", 0},
      {"F32", "[2,8]", "tensor \"output.weight\" has 8 columns, but the heads together 4", 64},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    add_roles(&m, "", (const char *const[]){"query", "key", "value", "spare"}, ".weight");
    made_add_bytes(&m, "output.weight", cases[i].dtype, cases[i].shape, nan, cases[i].size);
    write_made(p, &m);
    load_ill(W "}", p->folder, cases[i].detail);
    layout_is(p, W ",\"output_projection\":false}", "plain");
  }
  add_roles(&m, "", plain, ".weight");
  made_add(&m, "key.bias", 5, 0);
  write_made(p, &m);
  load_ill(W "}", p->folder, "tensor \"key.bias\" has 5 numbers for the 4 rows of \"key.weight\"");
}

static void smaller_types_are_converted(void **state) {
  const struct place *p = *state;
  static const unsigned char half[] = {0, 0x3c, 0, 0xc0, 1, 0, 0, 0}; /* 1, -2, 2^-24, 0 */
  struct made m = {0};
  struct error e = {0};
  struct definition d;
  struct parameters values;
  made_add(&m, "pad", 1, 0);
  made_add_bytes(&m, "odd", "U8", "[1]", "x", 1); /* what follows lies unaligned */
  made_add_bytes(&m, "query.weight", "F16", "[2,2]", half, sizeof half);
  made_add_bytes(&m, "key.weight", "BF16", "[2,2]", "\x80\x3f\0\xc0\0\0\0\0", 8);
  made_add(&m, "value.weight", 2, 2);
  write_made(p, &m);
  struct file f;
  json_t *json = json_of("{\"heads\":1,\"checkpoint\":\"x\",\"output_projection\":false}");
  assert_int_equal(file_read(p->file, &f, &e), STATUS_OK);
  struct safetensors *s = safetensors_parse(f.bytes, f.size, &e);
  assert_int_equal(definition_read(&d, json, &e), STATUS_OK);
  assert_int_equal(parameters_read(&values, &d, s, &e), STATUS_OK);
  const float *query = values.matrix[ROLE_QUERY].weight, *key = values.matrix[ROLE_KEY].weight;
  assert_true(query[0] == 1 && query[1] == -2 && query[2] == 0x1p-24f && query[3] == 0);
  assert_true(key[0] == 1 && key[1] == -2 && key[2] == 0 && key[3] == 0);
  assert_true(values.matrix[ROLE_VALUE].weight[3] == 1.1875f);
  assert_null(values.matrix[ROLE_OUTPUT].weight);
  assert_null(values.matrix[ROLE_QUERY].bias);
  parameters_free(&values);
  safetensors_free(s);
  file_free(&f);
  json_decref(json);
}

static void a_checkpoint_that_is_none_is_named(void **state) {
  const struct place *p = *state;
  struct made m;
  made_raw(&m, "{\"a\":1}", 7, 0);
  made_write(&m, p->file);
  made_free(&m);
  load_ill(W "}", p->folder, "model m: w.safetensors: tensor \"a\" is not described by");
  load_ill("{\"checkpoint\":\"v.safetensors\",\"heads\":2}", p->folder, "No such file");
  struct error e = {0};
  struct file f;
  FILE *empty = fopen(p->file, "wb");
  assert_non_null(empty);
  fclose(empty);
  assert_int_equal(file_read(p->file, &f, &e), STATUS_OK);
  assert_int_equal(f.size, 0);
  file_free(&f);
  load_ill(W "}", p->folder, "too short for a safetensors file: 0 bytes");
}

/* --- registry --- */

static void the_registry_holds_every_model(void **state) {
  (void)state;
  char *const nothing[] = {NULL}, *const base[] = {"--default-model=base", "--gemm=openblas", NULL};
  struct config c;
  struct error e = {0};
  assert_int_equal(config_read(&c, nothing, nothing, &e), STATUS_OK);
  struct registry *r = registry_load(&c, &e);
  assert_non_null(r);
  assert_int_equal(registry_count(r), 2);
  assert_string_equal(registry_at(r, 0)->name, "demo");
  assert_string_equal(registry_default(r)->name, "demo");
  assert_ptr_equal(registry_find(r, "base"), registry_at(r, 1));
  assert_null(registry_find(r, "bas"));
  assert_true(registry_scratch_bytes(r) >= layer_scratch_bytes(registry_at(r, 1)->layer));
  registry_free(r);
  config_free(&c);
  assert_int_equal(config_read(&c, base, nothing, &e), STATUS_OK);
  r = registry_load(&c, &e);
  assert_non_null(r);
  assert_string_equal(registry_default(r)->name, "base");
  assert_string_equal(layer_engine(registry_default(r)->layer), "openblas");
  registry_free(r);
  config_free(&c);
}

static int start(void **state) {
  (void)state;
  gemm_blas_init();
  return 0;
}

int main(void) {
#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, enter, place_remove)
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(golden_files_are_checkpoints),
      cmocka_unit_test(digests_are_those_of_the_tensors_in_their_order),
      cmocka_unit_test(philox_gives_the_known_answers),
      cmocka_unit_test(random_models_are_the_same_everywhere),
      cmocka_unit_test(random_numbers_fill_their_bounds),
      cmocka_unit_test(random_sizes_follow_the_query_size),
      cmocka_unit_test(wrong_definitions_are_refused_by_key),
      cmocka_unit_test(what_is_not_served_yet_is_said_so),
      IN_PLACE(d2l_is_found_behind_any_prefix),
      IN_PLACE(torch_layers_are_counted),
      IN_PLACE(torch_is_read_as_torch_writes_it),
      IN_PLACE(names_that_fit_two_layouts_must_be_decided),
      IN_PLACE(tensors_are_stems_or_whole_names),
      IN_PLACE(an_output_alone_serves_split_columns),
      IN_PLACE(sizes_that_disagree_are_named_with_both_numbers),
      IN_PLACE(only_tensors_that_are_used_are_judged),
      IN_PLACE(smaller_types_are_converted),
      IN_PLACE(a_checkpoint_that_is_none_is_named),
      cmocka_unit_test(the_registry_holds_every_model),
  };
  return cmocka_run_group_tests(tests, start, NULL);
}
