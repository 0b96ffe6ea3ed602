/* test_layout_families: the names, shapes and habits of each family of checkpoints. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/blas_start.h"
#include "tests/support/model_load.h"
#include "tests/support/npz_make.h"

static int enter(void **state) { return place_make(state, "w.safetensors"); }

/* The `n`-th number that made_add adds. */
static float nth(size_t n) { return 1.0f + (float)n / 16.0f; }

static const char *const proj[] = {"q_proj", "k_proj", "v_proj", "out_proj"};

/* Layers 0 and 1, with weights of 4 columns and biases for all roles but `unbiased`; 4: for all. */
static void add_layers(struct made *m, const char *format, const char *const stems[4],
                       size_t unbiased) {
  for (size_t i = 0; i < 2; i++) {
    char prefix[128];
    const char *number = strstr(format, "{i}");
    snprintf(prefix, sizeof prefix, "%.*s%zu%s", (int)(number - format), format, i, number + 3);
    for (size_t role = 0; role < 4; role++) {
      add_named(m, 4, 4, "%s%s.weight", prefix, stems[role]);
      if (role != unbiased) add_named(m, 4, 0, "%s%s.bias", prefix, stems[role]);
    }
  }
}

/* Checks a model of two heads: its layout, whether it is causal, its number of parameters. */
static void is(const struct place *p, const char *definition, const char *layout, bool causal,
               uint64_t parameters) {
  struct model *m = load_well(definition, p->folder);
  assert_string_equal(m->layout, layout);
  assert_int_equal(m->causal, causal);
  assert_int_equal(m->parameters, parameters);
  model_free(m);
}

enum { BIASED = 4 * (16 + 4), BARE = 4 * 16 };

/* --- apart, behind stems --- */

static void bert_is_served_from_every_model_around_it(void **state) {
  const struct place *p = *state;
  static const char *const bert[] = {"self.query", "self.key", "self.value", "output.dense"};
  static const char *const vit[] = {"attention.query", "attention.key", "attention.value",
                                    "output.dense"};
  static const char *const around[] = {"bert.", "roberta.", "", "deep.inside."};
  struct made m = {0};
  for (size_t i = 0; i < 4; i++) {
    char format[128];
    snprintf(format, sizeof format, "%sencoder.layer.{i}.attention.", around[i]);
    add_layers(&m, format, bert, 4);
    made_add(&m, "bert.embeddings.word_embeddings.weight", 3, 4);
    write_made(p, &m);
    is(p, W ",\"layer\":1}", "bert", false, BIASED);
    is(p, W ",\"layer\":1,\"layout\":\"bert\",\"bias\":true}", "bert", false, BIASED);
    is(p, W ",\"layer\":0,\"causal\":true}", "bert", true, BIASED);
  }
  is(p, W ",\"prefix\":\"deep.inside.\",\"layer\":1}", "bert", false, BIASED);
  is(p, W ",\"prefix\":\"deep.inside.encoder.\",\"layer\":1}", "bert", false, BIASED);
  is(p, W ",\"prefix\":\"deep.inside.encoder.layer.1.attention.\"}", "bert", false, BIASED);
  load_ill(W ",\"prefix\":\"deep.\",\"layer\":1}", p->folder,
           "prefix: no attention has this prefix");
  load_ill(W ",\"layer\":12}", p->folder,
           "layer: no attention here has this number; there are 2, from "
           "\"deep.inside.encoder.layer.0.attention.\" on");
  add_layers(&m, "vit.encoder.layer.{i}.attention.", vit, 4);
  write_made(p, &m);
  is(p, W ",\"layer\":1}", "bert", false, BIASED);
  load_ill(W ",\"layer\":1,\"layout\":\"llama\"}", p->folder,
           "fit none of llama; at \"vit.encoder.layer.1.attention.\" they are");
  add_layers(&m, "bert.encoder.layer.{i}.attention.", bert, 4);
  made_add(&m, "bert.encoder.layer.1.attention.self.distance_embedding.weight", 9, 2);
  write_made(p, &m);
  is(p, W ",\"layer\":0}", "bert", false, BIASED);
  load_ill(W ",\"layer\":1}", p->folder,
           "self.distance_embedding.weight\": embedded distances are not supported");
}

static void clip_has_two_towers_of_which_one_is_causal(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  add_layers(&m, "text_model.encoder.layers.{i}.self_attn.", proj, 4);
  add_layers(&m, "vision_model.encoder.layers.{i}.self_attn.", proj, 4);
  write_made(p, &m);
  is(p, W ",\"layer\":0,\"prefix\":\"text_model.\"}", "clip", true, BIASED);
  is(p, W ",\"layer\":0,\"prefix\":\"text_model.\",\"causal\":false}", "clip", false, BIASED);
  is(p, W ",\"layer\":0,\"prefix\":\"vision_model.encoder.\"}", "clip", false, BIASED);
  load_ill(W ",\"layer\":1}", p->folder,
           "prefix: required: \"text_model.encoder.\" or \"vision_model.encoder.\"");
  load_ill(W "}", p->folder,
           "prefix or layer: required: \"text_model.encoder.layers.0.self_attn.\" or "
           "\"text_model.encoder.layers.1.self_attn.\" or another one");
  load_ill(W ",\"layer\":1,\"prefix\":\"text\"}", p->folder,
           "prefix: no attention has this prefix");
}

static void whisper_has_keys_without_bias_and_cross_attention(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  add_layers(&m, "model.encoder.layers.{i}.self_attn.", proj, ROLE_KEY);
  add_layers(&m, "model.decoder.layers.{i}.self_attn.", proj, ROLE_KEY);
  add_layers(&m, "model.decoder.layers.{i}.encoder_attn.", proj, ROLE_KEY);
  write_made(p, &m);
  is(p, W ",\"layer\":0,\"prefix\":\"model.encoder.\"}", "whisper", false, BIASED - 4);
  is(p, W ",\"layer\":0,\"prefix\":\"model.decoder.\"}", "whisper", true, BIASED - 4);
  is(p, W ",\"prefix\":\"model.decoder.layers.1.encoder_attn.\"}", "whisper", false, BIASED - 4);
  is(p, W ",\"prefix\":\"model.decoder.layers.1.encoder_attn.\",\"layer\":1}", "whisper", false,
     BIASED - 4);
  load_ill(W ",\"layer\":1}", p->folder,
           "prefix: required: \"model.encoder.\" or \"model.decoder.\"");
  load_ill(W ",\"prefix\":\"model.decoder.layers.1.encoder_attn.\",\"layer\":0}", p->folder,
           "layer: no attention here has this number; there is one at \"model.decoder.layers.1.");
  add_layers(&m, "decoder.layers.{i}.encoder_attn.", proj, ROLE_KEY);
  write_made(p, &m);
  load_ill(W ",\"layer\":1}", p->folder,
           "prefix: cross-attention needs the full prefix: \"decoder.layers.1.encoder_attn.\"");
  add_layers(&m, "decoder.layers.{i}.encoder_attn.", proj, ROLE_KEY);
  write_made(p, &m);
  load_ill(W ",\"prefix\":\"decoder.\",\"layer\":1}", p->folder,
           "cross-attention needs the full prefix");
  add_named(&m, 4, 12, "layers.0.multihead_attn.in_proj_weight");
  write_made(p, &m);
  load_ill(W "}", p->folder, "prefix: cross-attention needs the full prefix: \"layers.0.multi");
}

/* The layer with this number may be in another stack. */
static void a_number_means_nothing_where_there_are_several_stacks(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  add_layers(&m, "encoder.layers.{i}.self_attn.", proj, 4);
  add_layers(&m, "decoder.layers.{i}.self_attn.", proj, 4);
  for (size_t i = 0; i < 4; i++)
    add_named(&m, 4, 4, "decoder.layers.5.self_attn.%s.weight", proj[i]);
  write_made(p, &m);
  load_ill(W ",\"layer\":5}", p->folder, "prefix: required: \"decoder.\" or \"encoder.\"");
  is(p, W ",\"layer\":5,\"prefix\":\"decoder.\"}", "whisper", true, BARE);
  load_ill(W ",\"layer\":5,\"prefix\":\"encoder.\"}", p->folder,
           "layer: no attention here has this number");
}

static void a_layout_makes_no_other_family_of_a_place(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  add_layers(&m, "text_model.encoder.layers.{i}.self_attn.", proj, 4);
  write_made(p, &m);
  load_ill(W ",\"layout\":\"whisper\",\"layer\":0,\"prefix\":\"text_model.encoder.\"}", p->folder,
           "fit none of whisper after this prefix, which ends with its dot; at "
           "\"text_model.encoder.layers.0.self_attn.\" they are those of clip");
  is(p, W ",\"layer\":0,\"layout\":\"clip\"}", "clip", true, BIASED);
}

static void prefixes_that_are_nearly_right_are_mended(void **state) {
  const struct place *p = *state;
  static const char *const bert[] = {"self.query", "self.key", "self.value", "output.dense"};
  struct made m = {0};
  add_layers(&m, "bert.encoder.layer.{i}.attention.", bert, 4);
  write_made(p, &m);
  load_ill(W ",\"layer\":0,\"prefix\":\"encoder.\"}", p->folder,
           "prefix: no attention has this prefix; try \"bert.encoder.\"");
  load_ill(W ",\"layer\":0,\"prefix\":\"bert\"}", p->folder, "; try \"bert.\"");
  load_ill(W ",\"prefix\":\"bert.encoder.layer.1.attention.self.\"}", p->folder,
           "prefix: ends within the names of bert; try \"bert.encoder.layer.1.attention.\"");
  add_layers(&m, "decoder.layers.{i}.self_attn.", proj, 4);
  write_made(p, &m);
  load_ill(W ",\"layer\":0,\"prefix\":\"decoder\"}", p->folder, "; try \"decoder.\"");
}

static void torch_decoders_have_cross_attention(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  for (size_t i = 0; i < 2; i++) {
    add_named(&m, 12, 4, "decoder.layers.%zu.self_attn.in_proj_weight", i);
    add_named(&m, 4, 4, "decoder.layers.%zu.self_attn.out_proj.weight", i);
    add_named(&m, 12, 4, "decoder.layers.%zu.multihead_attn.in_proj_weight", i);
    add_named(&m, 12, 0, "decoder.layers.%zu.multihead_attn.in_proj_bias", i);
    add_named(&m, 4, 4, "decoder.layers.%zu.multihead_attn.out_proj.weight", i);
  }
  write_made(p, &m);
  is(p, W ",\"layer\":1}", "torch", false, BARE);
  is(p, W ",\"prefix\":\"decoder.layers.1.multihead_attn.\"}", "torch", false, BARE + 12);
}

/* --- llama --- */

/* Adds the frequencies of a base for heads of 4 columns. */
static void add_frequencies(struct made *m, const char *format, size_t layer, double base) {
  char name[128];
  const float numbers[] = {1, (float)(1 / sqrt(base))};
  snprintf(name, sizeof name, format, layer);
  made_add_bytes(m, name, "F32", "[2]", numbers, sizeof numbers);
}

static void a_bias_that_is_missing_is_no_zero(void **state) {
  static const char *const lost[] = {"q", "k", "v"};
  const struct place *p = *state;
  for (size_t i = 0; i < 3; i++) {
    struct made m = {0};
    for (size_t role = 0; role < 4; role++) {
      char name[64];
      snprintf(name, sizeof name, "model.layers.0.self_attn.%c_proj.weight", "qkvo"[role]);
      made_add(&m, name, 4, 4);
      snprintf(name, sizeof name, "model.layers.0.self_attn.%c_proj.bias", "qkvo"[role]);
      if (role < 3 && role != i) made_add(&m, name, 4, 0);
    }
    write_made(p, &m);
    char detail[96];
    snprintf(detail, sizeof detail, "self_attn.%s_proj.weight\" has none", lost[i]);
    load_ill("{\"checkpoint\":\"w.safetensors\",\"heads\":2,\"layer\":0}", p->folder, detail);
  }
}

static void llama_shares_its_keys_and_turns_them(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  for (size_t i = 0; i < 2; i++) {
    add_named(&m, 16, 6, "model.layers.%zu.self_attn.q_proj.weight", i);
    add_named(&m, 8, 6, "model.layers.%zu.self_attn.k_proj.weight", i);
    add_named(&m, 8, 6, "model.layers.%zu.self_attn.v_proj.weight", i);
    add_named(&m, 6, 16, "model.layers.%zu.self_attn.o_proj.weight", i);
    add_frequencies(&m, "model.layers.%zu.self_attn.rotary_emb.inv_freq", i, 1e4);
  }
  add_named(&m, 16, 0, "model.layers.1.self_attn.q_proj.bias"); /* as Qwen2 has them */
  add_named(&m, 8, 0, "model.layers.1.self_attn.k_proj.bias");
  add_named(&m, 8, 0, "model.layers.1.self_attn.v_proj.bias");
  write_made(p, &m);
#define LLAMA "{\"checkpoint\":\"w.safetensors\",\"heads\":4,\"layer\":0"
  struct model *one = load_well(LLAMA "}", p->folder);
  assert_string_equal(one->layout, "llama");
  assert_shape(&one->shape, 4, 2, 4, 4, (size_t[]){6, 6, 6, 6});
  assert_true(one->causal && !one->bias && one->shape.rope_base == 10000);
  assert_true(one->shape.scale == 0.5f);
  model_free(one);
  one = load_well(LLAMA ",\"kv_heads\":2,\"causal\":false,\"rope\":{\"base\":500000}}", p->folder);
  assert_true(!one->causal && one->shape.rope_base == 500000);
  model_free(one);
  one = load_well(LLAMA ",\"rope\":false}", p->folder);
  assert_true(one->causal && one->shape.rope_base == 0);
  model_free(one);
  one =
      load_well("{\"checkpoint\":\"w.safetensors\",\"heads\":4,\"layer\":1,\"prefix\":\"model.\"}",
                p->folder);
  assert_int_equal(one->parameters, 16 * 6 * 2 + 8 * 6 * 2 + 32);
  model_free(one);
  load_ill(LLAMA ",\"kv_heads\":4}", p->folder, "keys of 8 columns are not 4 heads of 4");
  load_ill("{\"checkpoint\":\"w.safetensors\",\"heads\":3,\"layer\":0}", p->folder,
           "heads: 3 do not divide the 16 columns of the queries");
  load_ill("{\"checkpoint\":\"w.safetensors\",\"heads\":1,\"layer\":0}", p->folder,
           "keys of 8 columns are not 1 heads of 16");
  load_ill("{\"checkpoint\":\"w.safetensors\",\"layer\":0}", p->folder,
           "heads: required with projection linear, and no config.json beside the checkpoint "
           "contains it; look for num_heads or num_attention_heads where the checkpoint is from "
           "(attend inspect w.safetensors --models --heads N writes it)");
  load_ill("{\"checkpoint\":\"w.safetensors\",\"heads\":16,\"layer\":0}", p->folder,
           "rope: the head size must be even, not 1");
}

static void what_would_change_a_llama_is_refused(void **state) {
  const struct place *p = *state;
  static const struct {
    const char *stem, *why;
  } cases[] = {{"q_norm.weight", "queries and keys that are normalised are not supported"},
               {"k_norm.weight", "queries and keys that are normalised are not supported"},
               {"sinks", "attention sinks are not supported"}};
  static const char *const llama[] = {"q_proj", "k_proj", "v_proj", "o_proj"};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct made m = {0};
    add_layers(&m, "model.layers.{i}.self_attn.", llama, 4);
    add_named(&m, 4, 0, "model.layers.1.self_attn.%s", cases[i].stem);
    write_made(p, &m);
    is(p, W ",\"layer\":0}", "llama", true, BIASED);
    load_ill(W ",\"layer\":1}", p->folder, cases[i].why);
  }
}

/* A tensor beside the matrices would change the layer, unless it is known to be harmless. */
static void what_nobody_knows_beside_a_layer_is_refused(void **state) {
  const struct place *p = *state;
  static const char *const bert[] = {"self.query", "self.key", "self.value", "output.dense"};
  static const char *const vit[] = {"attention.query", "attention.key", "attention.value",
                                    "output.dense"};
  static const char *const llama[] = {"q_proj", "k_proj", "v_proj", "o_proj"};
  static const struct {
    const char *path, *const *stems, *beside, *why;
  } cases[] = {
      {"encoder.layer.{i}.attention.", bert, "encoder.layer.1.attention.self.query_global.weight",
       "belongs to the layer"},
      {"encoder.layer.{i}.attention.", bert, "encoder.layer.1.attention.self.query.lora_A.weight",
       "belongs to the layer"},
      {"encoder.layer.{i}.attention.", bert, "encoder.layer.1.attention.self.score.weight",
       "belongs to the layer"},
      {"encoder.layer.{i}.attention.", vit, "encoder.layer.1.attention.attention.q_bias",
       "belongs to the layer"},
      {"encoder.layer.{i}.attention.", vit,
       "encoder.layer.1.attention.attention.relative_position_bias.relative_position_bias_table",
       "positions in two dimensions are not supported"},
      {"layers.{i}.self_attn.", llama, "layers.1.self_attn.k_proj.weight_scale",
       "belongs to the layer"},
      {"encoder.layers.{i}.self_attn.", proj, "encoder.layers.1.self_attn.gate",
       "belongs to the layer"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct made m = {0};
    char why[256];
    add_layers(&m, cases[i].path, cases[i].stems, 4);
    made_add(&m, cases[i].beside, 4, 4);
    write_made(p, &m);
    snprintf(why, sizeof why, "tensor \"%s\": %s", cases[i].beside, cases[i].why);
    load_ill(W ",\"layer\":1}", p->folder, why);
    model_free(load_well(W ",\"layer\":0}", p->folder));
  }
}

static void what_is_harmless_beside_a_layer_is_left_alone(void **state) {
  const struct place *p = *state;
  static const char *const bert[] = {"self.query", "self.key", "self.value", "output.dense"};
  struct made m = {0};
  add_layers(&m, "encoder.layer.{i}.attention.", bert, 4);
  made_add(&m, "encoder.layer.1.attention.output.LayerNorm.gamma", 4, 0);
  made_add(&m, "encoder.layer.1.attention.LayerNorm.weight", 4, 0);
  write_made(p, &m);
  is(p, W ",\"layer\":1}", "bert", false, BIASED);
  is(p, W ",\"layer\":1,\"output_projection\":false}", "bert", false, 3 * 20);
}

/* Some families keep such a tensor once, for the whole stack. */
static void what_changes_a_whole_stack_is_refused(void **state) {
  const struct place *p = *state;
  static const char *const bert[] = {"self.query", "self.key", "self.value", "output.dense"};
  static const char *const vit[] = {"attention.query", "attention.key", "attention.value",
                                    "output.dense"};
  static const struct {
    const char *const *stems;
    const char *beyond;
  } cases[] = {
      {vit, "x.encoder.relative_position_bias.relative_position_bias_table"},
      {bert, "x.encoder.embed_positions.weight"},
      {bert, "x.encoder.rel_pos_bias.weight"},
      {bert, "x.encoder.rel_pos_x_bias.weight"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct made m = {0};
    add_layers(&m, "x.encoder.layer.{i}.attention.", cases[i].stems, 4);
    made_add(&m, cases[i].beyond, 4, 4);
    write_made(p, &m);
    load_ill(W ",\"layer\":1}", p->folder, cases[i].beyond);
  }
}

static void siglip_has_the_names_of_clip_but_sees_to_both_sides(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  add_layers(&m, "text_model.encoder.layers.{i}.self_attn.", proj, 4);
  made_add(&m, "text_model.head.weight", 4, 4);
  write_made(p, &m);
  is(p, W ",\"layer\":0}", "clip", false, BIASED);
  is(p, W ",\"layer\":0,\"causal\":true}", "clip", true, BIASED);
}

static void frequencies_are_those_of_the_base(void **state) {
  const struct place *p = *state;
  static const char *const llama[] = {"q_proj", "k_proj", "v_proj", "o_proj"};
  static const char *const esm[] = {"self.query", "self.key", "self.value", "output.dense"};
  static const float odd[] = {0.5f, 0.005f};
#define EIGHT "{\"checkpoint\":\"w.safetensors\",\"heads\":1,\"layer\":0"
  struct made m = {0};
  add_layers(&m, "layers.{i}.self_attn.", llama, 4);
  add_frequencies(&m, "layers.%zu.self_attn.rotary_emb.inv_freq", 0, 5e5);
  made_add_bytes(&m, "layers.1.self_attn.rotary_emb.inv_freq", "F32", "[2]", odd, sizeof odd);
  write_made(p, &m);
  load_ill(EIGHT "}", p->folder,
           "rope: base required: tensor \"layers.0.self_attn.rotary_emb.inv_freq\" holds those of "
           "base 500000, not those of base 10000");
  struct model *one = load_well(EIGHT ",\"rope\":{\"base\":500000}}", p->folder);
  assert_int_equal(one->notes.count, 0);
  model_free(one);
  one = load_well(EIGHT ",\"rope\":{\"base\":300}}", p->folder);
  assert_int_equal(one->notes.count, 1);
  assert_non_null(
      strstr(one->notes.text[0], "holds those of base 500000, not those of rope's base 300"));
  model_free(one);
  one = load_well(EIGHT ",\"rope\":false}", p->folder);
  assert_int_equal(one->notes.count, 0);
  model_free(one);
  load_ill("{\"checkpoint\":\"w.safetensors\",\"heads\":1,\"layer\":1}", p->folder,
           "holds no base's, not those");
  load_ill(W ",\"layer\":0}", p->folder, "does not have the 1 frequencies of heads of 2 columns");
  add_layers(&m, "model.layers.{i}.self_attn.", llama, 4);
  add_frequencies(&m, "model.rotary_emb.inv_freq", 0, 5e5);
  write_made(p, &m);
  load_ill(EIGHT "}", p->folder, "tensor \"model.rotary_emb.inv_freq\" holds those of base 500000");
  add_layers(&m, "esm.encoder.layer.{i}.attention.", esm, 4);
  add_frequencies(&m, "esm.encoder.layer.%zu.attention.self.rotary_embeddings.inv_freq", 0, 1e4);
  write_made(p, &m);
  load_ill(EIGHT "}", p->folder, "it rotates queries and keys: set rope, to false or its base");
  one = load_well(EIGHT ",\"rope\":{}}", p->folder);
  assert_true(one->shape.rope_base == 10000 && !one->causal);
  model_free(one);
}

/* --- gpt2 --- */

static void gpt2_lies_the_other_way(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  made_add(&m, "transformer.h.0.attn.bias", 1, 1);
  made_add(&m, "transformer.h.0.attn.masked_bias", 1, 0);
  made_add(&m, "transformer.h.0.attn.c_attn.weight", 4, 12);
  made_add(&m, "transformer.h.0.attn.c_attn.bias", 12, 0);
  made_add(&m, "transformer.h.0.attn.c_proj.weight", 4, 4);
  made_add(&m, "transformer.h.0.attn.c_proj.bias", 4, 0);
  write_made(p, &m);
  is(p, W "}", "gpt2", true, BIASED);
  is(p, W ",\"layer\":0,\"prefix\":\"transformer.\"}", "gpt2", true, BIASED);
  struct parameters one = parameters_of(W ",\"layer\":0}", p->file);
  for (size_t role = ROLE_QUERY; role <= ROLE_OUTPUT; role++) {
    const struct parameters_matrix *matrix = &one.matrix[role];
    const size_t from = role < ROLE_OUTPUT ? 4 * role : 0, width = role < ROLE_OUTPUT ? 12 : 4;
    for (size_t out = 0; out < 4; out++) {
      assert_true(matrix->bias[out] == nth(from + out));
      for (size_t in = 0; in < 4; in++)
        assert_true(matrix->weight[4 * out + in] == nth(width * in + from + out));
    }
  }
  parameters_free(&one);
}

/* Large enough to be read in several pieces, some of which end within a line. */
static void large_matrices_are_turned_whole(void **state) {
  const struct place *p = *state;
  enum { E = 200 };
  struct made m = {0};
  made_add(&m, "h.0.attn.c_attn.weight", E, 3 * E);
  made_add(&m, "h.0.attn.c_proj.weight", E, E);
  write_made(p, &m);
  struct parameters one = parameters_of(W ",\"layer\":0}", p->file);
  for (size_t out = 0; out < E; out++) {
    for (size_t in = 0; in < E; in++) {
      assert_true(one.matrix[ROLE_VALUE].weight[E * out + in] == nth(3 * E * in + 2 * E + out));
      assert_true(one.matrix[ROLE_OUTPUT].weight[E * out + in] == nth(E * in + out));
    }
  }
  parameters_free(&one);
}

/* The array that made_add makes, in Fortran's order. */
static void add_by_columns(struct npz_made *z, const char *member, size_t rows, size_t columns) {
  char literal[128];
  float *numbers = malloc(rows * columns * sizeof *numbers);
  assert_non_null(numbers);
  for (size_t row = 0; row < rows; row++)
    for (size_t column = 0; column < columns; column++)
      numbers[column * rows + row] = nth(row * columns + column);
  snprintf(literal, sizeof literal,
           "{'descr': '<f4', 'fortran_order': True, 'shape': (%zu, %zu), }\n", rows, columns);
  npz_add(z, member, npy_make(1, literal, numbers, rows * columns * sizeof *numbers), NPZ_DEFLATED);
  free(numbers);
}

/* Layers of three families: one has its matrices apart, one as rows of a larger matrix, and one as
 * columns. */
static const struct {
  const char *name;
  size_t rows, columns;
} lying[] = {{"query.weight", 6, 5},
             {"key.weight", 6, 7},
             {"value.weight", 4, 3},
             {"output.weight", 5, 4},
             {"in_proj_weight", 12, 4},
             {"out_proj.weight", 3, 4},
             {"h.0.attn.c_attn.weight", 4, 12},
             {"h.0.attn.c_proj.weight", 4, 3}};

static void write_lying(const struct place *p, bool by_columns) {
  struct made m = {0};
  struct npz_made z = {0};
  if (by_columns) z = npz_make(p->file);
  for (size_t i = 0; i < sizeof lying / sizeof *lying; i++) {
    char member[64];
    snprintf(member, sizeof member, "%s.npy", lying[i].name);
    if (by_columns) {
      add_by_columns(&z, member, lying[i].rows, lying[i].columns);
    } else {
      made_add(&m, lying[i].name, lying[i].rows, lying[i].columns);
    }
  }
  if (by_columns) npz_write(&z);
  if (!by_columns) write_made(p, &m);
}

/* The numbers are the same, whichever way they lie and whatever part is read. */
static void assert_same_parameters(const struct place *p, const char *definition) {
  write_lying(p, false);
  struct parameters right = parameters_of(definition, p->file);
  assert_int_equal(unlink(p->file), 0);
  write_lying(p, true);
  struct parameters turned = parameters_of(definition, p->file);
  assert_int_equal(unlink(p->file), 0);
  for (enum role role = ROLE_QUERY; role <= ROLE_OUTPUT; role++) {
    const struct parameters_matrix *a = &right.matrix[role], *b = &turned.matrix[role];
    assert_int_equal(a->out, b->out);
    assert_int_equal(a->in, b->in);
    assert_memory_equal(a->weight, b->weight, a->out * a->in * sizeof *a->weight);
  }
  parameters_free(&right);
  parameters_free(&turned);
}

static void what_lies_by_columns_is_the_same_layer(void **state) {
  const struct place *p = *state;
  assert_same_parameters(p, "{\"checkpoint\":\"x\",\"heads\":2,\"layout\":\"plain\"}");
  assert_same_parameters(p, "{\"checkpoint\":\"x\",\"heads\":2,\"layout\":\"torch\"}");
  assert_same_parameters(p, "{\"checkpoint\":\"x\",\"heads\":2,\"layout\":\"gpt2\"}");
}

static void what_is_not_side_by_side_is_no_gpt2(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  made_add(&m, "h.0.attn.c_attn.weight", 12, 4);
  write_made(p, &m);
  load_ill(W "}", p->folder,
           "\"h.0.attn.c_attn.weight\" is [12, 4]; queries, keys and values side by side would be "
           "[n, 3n]");
  made_add(&m, "h.0.attn.c_attn.weight", 4, 12);
  made_add(&m, "h.0.attn.c_attn.bias", 11, 0);
  write_made(p, &m);
  load_ill(W "}", p->folder, "\"h.0.attn.c_attn.bias\": 11 rows cannot be divided among");
  made_add(&m, "h.0.attn.c_attn.weight", 4, 12);
  made_add(&m, "h.0.attn.c_attn.bias", 9, 0);
  write_made(p, &m);
  load_ill(W "}", p->folder, "\"h.0.attn.c_attn.bias\" has 3 numbers for the 4 columns of");
  made_add(&m, "h.0.attn.c_attn.weight", 4, 12);
  write_made(p, &m);
  load_ill(W "}", p->folder, "has no tensor \"h.0.attn.c_proj.weight\" (did you mean");
  is(p, W ",\"output_projection\":false}", "gpt2", true, 3 * 16);
}

/* --- t5 --- */

#define TABLE "layer.0.SelfAttention.relative_attention_bias.weight"

/* Queries of 5 columns, an inner width of 8, four heads. */
static void add_t5(struct made *m, const char *stack, size_t blocks, const char *inside) {
  for (size_t i = 0; i < blocks; i++) {
    for (size_t role = 0; role < 3; role++)
      add_named(m, 8, 5, "%s.block.%zu.%s.%c.weight", stack, i, inside, "qkv"[role]);
    add_named(m, 5, 8, "%s.block.%zu.%s.o.weight", stack, i, inside);
  }
}

static void make_t5(const struct place *p) {
  struct made m = {0};
  add_t5(&m, "encoder", 4, "layer.0.SelfAttention");
  add_t5(&m, "decoder", 2, "layer.0.SelfAttention");
  add_t5(&m, "decoder", 2, "layer.1.EncDecAttention");
  made_add(&m, "encoder.block.0." TABLE, 8, 4);
  made_add(&m, "decoder.block.0." TABLE, 6, 4);
  write_made(p, &m);
}

#define T5 "{\"checkpoint\":\"w.safetensors\""

static void t5_has_one_table_for_all_blocks(void **state) {
  const struct place *p = *state;
  make_t5(p);
  struct model *m = load_well(T5 ",\"prefix\":\"encoder.\",\"layer\":3}", p->folder);
  assert_string_equal(m->layout, "t5");
  assert_shape(&m->shape, 4, 4, 2, 2, (size_t[]){5, 5, 5, 5});
  assert_true(m->shape.scale == 1 && !m->causal && !m->bias);
  assert_int_equal(m->shape.relative_buckets, 8);
  assert_int_equal(m->shape.relative_distance, 128);
  assert_true(m->shape.relative_both);
  assert_int_equal(m->parameters, 4 * 40 + 32);
  model_free(m);
  m = load_well(T5 ",\"prefix\":\"decoder.\",\"layer\":1,\"heads\":4}", p->folder);
  assert_true(m->shape.scale == 1 && m->causal);
  assert_int_equal(m->shape.relative_buckets, 6);
  assert_false(m->shape.relative_both);
  model_free(m);
  struct parameters one = parameters_of(T5 ",\"prefix\":\"encoder.\",\"layer\":3}", p->file);
  assert_int_equal(one.matrix[ROLE_RELATIVE].out, 8);
  assert_int_equal(one.matrix[ROLE_RELATIVE].in, 4);
  for (size_t i = 0; i < 32; i++) assert_true(one.matrix[ROLE_RELATIVE].weight[i] == nth(i));
  parameters_free(&one);
}

/* UMT5 has a table in every block. */
static void t5_blocks_may_have_tables_of_their_own(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  for (size_t i = 0; i < 2; i++) {
    const char *stack = i ? "decoder" : "encoder";
    add_t5(&m, stack, 2, "layer.0.SelfAttention");
    add_named(&m, 8, 4, "%s.block.0." TABLE, stack);
    add_named(&m, 6, 4, "%s.block.1." TABLE, stack);
  }
  write_made(p, &m);
  for (size_t i = 0; i < 4; i++) {
    char definition[128];
    snprintf(definition, sizeof definition, T5 ",\"prefix\":\"%s.\",\"layer\":%zu}",
             i / 2 ? "decoder" : "encoder", i % 2);
    struct model *one = load_well(definition, p->folder);
    assert_int_equal(one->shape.relative_buckets, i % 2 ? 6 : 8);
    model_free(one);
  }
}

static void t5_cross_attention_has_no_table(void **state) {
  const struct place *p = *state;
  make_t5(p);
#define CROSS T5 ",\"prefix\":\"decoder.block.1.layer.1.EncDecAttention.\""
  struct model *m = load_well(CROSS "}", p->folder);
  assert_int_equal(m->shape.heads, 4); /* as many as the decoder's table has */
  assert_int_equal(m->shape.relative_buckets, 0);
  assert_true(m->shape.scale == 1 && !m->causal);
  assert_int_equal(m->parameters, 4 * 40);
  model_free(m);
  load_ill(CROSS ",\"relative_bias\":{}}", p->folder,
           "relative_bias: cross attention of t5 has none");
}

static void t5_may_be_told_otherwise(void **state) {
  const struct place *p = *state;
  make_t5(p);
  struct model *m =
      load_well(T5 ",\"prefix\":\"encoder.\",\"layer\":1,\"scale\":0.5,\"causal\":true,"
                   "\"relative_bias\":{\"max_distance\":20,\"bidirectional\":false}}",
                p->folder);
  assert_true(m->shape.scale == 0.5f && m->causal && !m->shape.relative_both);
  assert_int_equal(m->shape.relative_distance, 20);
  model_free(m);
  m = load_well(T5 ",\"prefix\":\"encoder.\",\"layer\":1,\"relative_bias\":false}", p->folder);
  assert_int_equal(m->shape.relative_buckets, 0);
  assert_int_equal(m->parameters, 4 * 40);
  model_free(m);
  load_ill(T5 ",\"prefix\":\"encoder.\",\"layer\":1,\"heads\":2}", p->folder,
           "heads: 2, but the table of relative positions is for 4");
  load_ill(T5 ",\"layer\":1}", p->folder, "prefix: required: \"encoder.\" or \"decoder.\"");
  struct made made = {0};
  add_t5(&made, "encoder", 2, "layer.0.SelfAttention");
  write_made(p, &made);
  load_ill(T5 ",\"layer\":1,\"heads\":4}", p->folder,
           "has no tensor \"encoder.block.0." TABLE "\"");
  load_ill(T5 ",\"layer\":1,\"relative_bias\":false}", p->folder, "heads: required with");
}

static void any_layout_may_have_a_table(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  add_roles(&m, "", plain, ".weight");
  made_add(&m, "relative_bias", 32, 2);
  made_add(&m, "table.weight", 8, 2);
  made_add(&m, "narrow", 8, 3);
  write_made(p, &m);
  is(p, W "}", "plain", false, BARE);
  is(p, W ",\"relative_bias\":{}}", "plain", false, BARE + 64);
#define NAMED \
  W ",\"tensors\":{\"query\":\"query\",\"key\":\"key\",\"value\":\"value\",\"output\":\"output\""
  is(p, NAMED ",\"relative_bias\":\"table\"}}", "tensors", false, BARE + 16);
  is(p, NAMED "},\"rope\":{}}", "tensors", false, BARE);
  load_ill(NAMED "},\"relative_bias\":{}}", p->folder, "the role \"relative_bias\" is missing");
  load_ill(NAMED ",\"relative_bias\":\"narrow\"}}", p->folder,
           "tensor \"narrow\" is [8, 3], but must be [8, 2]");
  is(p, W ",\"projection\":\"none\",\"query_size\":4,\"relative_bias\":{\"bidirectional\":false}}",
     "plain", false, 64);
}

/* --- names that tell more than the definition says --- */

/* `note` is what the only note says; or NULL for none. */
static void doubted(const struct place *p, const char *definition, const char *note) {
  struct model *m = load_well(definition, p->folder);
  assert_int_equal(m->notes.count, note ? 1 : 0);
  if (note && !strstr(m->notes.text[0], note)) fail_msg("%s", m->notes.text[0]);
  model_free(m);
}

static void names_of_families_with_habits_are_told(void **state) {
  const struct place *p = *state;
  static const char *const llama[] = {"q_proj", "k_proj", "v_proj", "o_proj"};
  struct made m = {0};
  add_layers(&m, "decoder.layers.{i}.self_attn.", proj, 4);
  add_layers(&m, "model.layers.{i}.self_attn.", llama, 4);
  add_layers(&m, "vision_model.encoder.layers.{i}.self_attn.", proj, 4);
  for (size_t i = 0; i < 4; i++)
    add_named(&m, 4, 4, "decoder.block.0.layer.1.EncDecAttention.%c.weight", "qkvo"[i]);
  add_named(&m, 4, 4, "h.0.attn.c_proj.weight");
  write_made(p, &m);
#define FOUR(q, o)                                                                                 \
  W ",\"tensors\":{\"query\":\"" q "\",\"key\":\"" q "\",\"value\":\"" q "\",\"output\":\"" o "\"" \
    "}"
#define DECODER FOUR("decoder.layers.0.self_attn.q_proj", "decoder.layers.0.self_attn.out_proj")
#define VISION  "vision_model.encoder.layers.0.self_attn."
  doubted(p, DECODER "}", "has a name of layout whisper, which is causal (set causal to confirm)");
  doubted(p, DECODER ",\"causal\":false}", NULL);
  doubted(p, FOUR(VISION "q_proj", VISION "out_proj") "}", NULL);
  doubted(p, FOUR("decoder.block.0.layer.1.EncDecAttention.q", VISION "out_proj") "}",
          "layout t5, whose scores are not scaled (set scale to confirm)");
  doubted(p, FOUR("decoder.block.0.layer.1.EncDecAttention.q", VISION "out_proj") ",\"scale\":1}",
          NULL);
  doubted(p, FOUR(VISION "k_proj", "h.0.attn.c_proj.weight") ",\"causal\":true}",
          "layout gpt2, whose matrices are [in, out]");
  doubted(p, FOUR("model.layers.1.self_attn.q_proj", VISION "out_proj") ",\"causal\":true}",
          "layout llama, which rotates queries and keys");
  for (size_t i = 0; i < 4; i++)
    add_named(&m, 4, 4, "encoder.block.0.layer.0.SelfAttention.%c.weight", "qkvo"[i]);
  write_made(p, &m);
#define T5_STEM "encoder.block.0.layer.0.SelfAttention."
  doubted(p, FOUR(T5_STEM "q", T5_STEM "o") ",\"scale\":1}", "which adds relative positions");
}

static void decoders_of_bert_are_told(void **state) {
  const struct place *p = *state;
  static const char *const bert[] = {"self.query", "self.key", "self.value", "output.dense"};
  struct made m = {0};
  add_layers(&m, "x.encoder.layer.{i}.attention.", bert, 4);
  add_layers(&m, "x.encoder.layer.{i}.crossattention.", bert, 4);
  write_made(p, &m);
  doubted(p, W ",\"layer\":1}", "there is cross attention beside \"x.encoder.layer.1.attention.\"");
  doubted(p, W ",\"layer\":1,\"causal\":true}", NULL);
}

/* --- several families in one file --- */

static void families_are_told_apart_by_what_is_longest(void **state) {
  const struct place *p = *state;
  static const char *const llama[] = {"q_proj", "k_proj", "v_proj", "o_proj"};
  struct made m = {0};
  add_layers(&m, "vision_tower.vision_model.encoder.layers.{i}.self_attn.", proj, 4);
  add_layers(&m, "language_model.model.layers.{i}.self_attn.", llama, 4);
  write_made(p, &m);
  load_ill(W ",\"layer\":0}", p->folder,
           "layout: required: the tensor names match both clip and llama");
  is(p, W ",\"layer\":0,\"layout\":\"llama\",\"prefix\":\"language_model.model.\"}", "llama", true,
     BIASED);
  is(p, W ",\"layer\":0,\"prefix\":\"vision_tower.\"}", "clip", false, BIASED);
  is(p, W ",\"layer\":0,\"layout\":\"clip\"}", "clip", false, BIASED);
}

static void numbers_of_layers_are_plain_numbers(void **state) {
  const struct place *p = *state;
  static const char *const numbers[] = {"01", "10000", "", "x"};
  struct made m = {0};
  for (size_t i = 0; i < 4; i++) add_named(&m, 4, 12, "h.%s.attn.c_attn.weight", numbers[i]);
  add_named(&m, 4, 12, "h.9999.attn.c_attn.weight");
  add_named(&m, 4, 4, "h.9999.attn.c_proj.weight");
  write_made(p, &m);
  is(p, W "}", "gpt2", true, BARE);
  is(p, W ",\"layer\":9999}", "gpt2", true, BARE);
  load_ill(W ",\"layer\":1}", p->folder, "there is one at \"h.9999.attn.\"");
}

int main(void) {
#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, enter, place_remove)
  const struct CMUnitTest tests[] = {
      IN_PLACE(bert_is_served_from_every_model_around_it),
      IN_PLACE(clip_has_two_towers_of_which_one_is_causal),
      IN_PLACE(whisper_has_keys_without_bias_and_cross_attention),
      IN_PLACE(a_number_means_nothing_where_there_are_several_stacks),
      IN_PLACE(a_layout_makes_no_other_family_of_a_place),
      IN_PLACE(prefixes_that_are_nearly_right_are_mended),
      IN_PLACE(torch_decoders_have_cross_attention),
      IN_PLACE(a_bias_that_is_missing_is_no_zero),
      IN_PLACE(llama_shares_its_keys_and_turns_them),
      IN_PLACE(what_would_change_a_llama_is_refused),
      IN_PLACE(what_nobody_knows_beside_a_layer_is_refused),
      IN_PLACE(what_is_harmless_beside_a_layer_is_left_alone),
      IN_PLACE(what_changes_a_whole_stack_is_refused),
      IN_PLACE(siglip_has_the_names_of_clip_but_sees_to_both_sides),
      IN_PLACE(frequencies_are_those_of_the_base),
      IN_PLACE(gpt2_lies_the_other_way),
      IN_PLACE(large_matrices_are_turned_whole),
      IN_PLACE(what_lies_by_columns_is_the_same_layer),
      IN_PLACE(what_is_not_side_by_side_is_no_gpt2),
      IN_PLACE(t5_has_one_table_for_all_blocks),
      IN_PLACE(t5_blocks_may_have_tables_of_their_own),
      IN_PLACE(t5_cross_attention_has_no_table),
      IN_PLACE(t5_may_be_told_otherwise),
      IN_PLACE(any_layout_may_have_a_table),
      IN_PLACE(names_of_families_with_habits_are_told),
      IN_PLACE(decoders_of_bert_are_told),
      IN_PLACE(families_are_told_apart_by_what_is_longest),
      IN_PLACE(numbers_of_layers_are_plain_numbers),
  };
  return cmocka_run_group_tests(tests, blas_start, NULL);
}
