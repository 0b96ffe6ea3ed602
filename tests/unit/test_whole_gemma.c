/* test_whole_gemma: what the folders of Gemma 2 and 3 may say beside what the golden ones do. */
#include <math.h>

#include "tests/support/whole_place.h"
#include "tests/support/whole_read.h"

static void read_folder(struct whole_read *m, const struct place *p, const char *golden,
                        const char *change) {
  char definition[512];
  whole_place_tensors(p, golden, NULL);
  whole_place_config(p, golden, change);
  whole_place_definition(p, "", definition);
  whole_read(m, json_of(definition), "/");
}

/* A bit for each layer whose kind has this. */
enum has { HAS_WINDOW, HAS_FAR_BASE, HAS_STRETCH };

static unsigned layers_with(const struct whole_read *m, enum has what) {
  unsigned found = 0;
  for (size_t i = 0; i < m->form.layers; i++) {
    const struct stack_kind *kind = &m->form.kind[m->form.layer[i].kind];
    const bool has = what == HAS_WINDOW     ? kind->window > 0
                     : what == HAS_FAR_BASE ? kind->self.rope_base == 1e6
                                            : kind->self.rope_stretch.factor > 1;
    found |= (unsigned)has << i;
  }
  return found;
}

/* --- Gemma 2 --- */

static void scores_and_logits_are(const struct place *p, const char *change, double scalar,
                                  float score_cap, float logit_cap) {
  struct whole_read m;
  read_folder(&m, p, "gemma2-a", change);
  assert_true(m.form.kind->self.scale == (float)(1 / sqrt(scalar)));
  assert_true(m.form.kind->self.cap == score_cap && m.form.kind[1].self.cap == score_cap);
  assert_true(m.form.output.cap == logit_cap && m.form.output.tied);
  assert_int_equal(layers_with(&m, HAS_WINDOW), 5);
  whole_read_free(&m);
}

static void scores_and_logits_are_capped(void **state) {
  const struct place *p = *state;
  scores_and_logits_are(p, "{}", 12, 3, 4);
  scores_and_logits_are(p, "{\"attn_logit_softcapping\":\"-\",\"final_logit_softcapping\":\"-\"}",
                        12, 50, 30);
  scores_and_logits_are(p, "{\"attn_logit_softcapping\":null,\"final_logit_softcapping\":null}", 12,
                        0, 0);
  scores_and_logits_are(p, "{\"query_pre_attn_scalar\":224.5}", 224.5, 3, 4);
  scores_and_logits_are(p, "{\"query_pre_attn_scalar\":\"-\"}", 256, 3, 4);
  /* As newer files have it. */
  scores_and_logits_are(p,
                        "{\"layer_types\":[\"sliding_attention\",\"full_attention\","
                        "\"sliding_attention\"],\"sliding_window_size\":4,"
                        "\"rope_parameters\":{\"rope_theta\":10000,\"rope_type\":\"default\"}}",
                        12, 3, 4);
}

/* The factors of all norms are 1 and what is stored. */
static void branches_are_normalized_on_both_sides(void **state) {
  static const char *const names[] = {"input_layernorm", "post_attention_layernorm",
                                      "pre_feedforward_layernorm", "post_feedforward_layernorm"};
  const struct place *p = *state;
  struct whole_read m;
  struct error e = {0};
  read_folder(&m, p, "gemma2-a", "{}");
  const struct stack_layer *l = &m.form.layer[2];
  const struct stack_norm *norms[] = {&l->norm_self, &l->after_self, &l->norm_forward,
                                      &l->after_forward};
  for (size_t i = 0; i < 4; i++) {
    char name[80];
    float stored[24];
    snprintf(name, sizeof name, "model.layers.2.%s.weight", names[i]);
    const struct checkpoint_entry *t = checkpoint_find(m.plan.source.file, name);
    assert_int_equal(checkpoint_read_floats(m.plan.source.file, t, 0, 24, stored, &e), STATUS_OK);
    for (size_t x = 0; x < 24; x++) assert_true(norms[i]->factor[x] == 1 + stored[x]);
    assert_null(norms[i]->shift);
  }
  whole_read_free(&m);
  whole_place_tensors(p, "gemma2-a", &(struct whole_edit){.drop = "1.post_feedforward_layernorm"});
  whole_place_refused(p, "",
                      "there is no tensor \"model.layers.1.post_feedforward_layernorm.weight\"");
}

/* --- Gemma 3 --- */

static void layers_differ(void **state) {
  const struct place *p = *state;
  struct whole_read m;
  read_folder(&m, p, "gemma3-a", "{}");
  assert_int_equal(layers_with(&m, HAS_WINDOW), 11);
  assert_int_equal(layers_with(&m, HAS_FAR_BASE), 4);
  assert_true(m.form.kind->self.norm_epsilon == 1e-6f);
  assert_non_null(m.form.layer[3].self[ROLE_NORM_KEY].weight);
  whole_read_free(&m);
  read_folder(
      &m, p, "gemma3-a",
      "{\"sliding_window_pattern\":\"-\",\"_sliding_window_pattern\":2,\"rope_theta\":\"-\","
      "\"rope_local_base_freq\":\"-\"}");
  assert_int_equal(layers_with(&m, HAS_WINDOW), 15);
  assert_int_equal(layers_with(&m, HAS_FAR_BASE), 0);
  whole_read_free(&m);
  read_folder(
      &m, p, "gemma3-a",
      "{\"rope_scaling\":{\"factor\":8.0,\"rope_type\":\"linear\"},\"layer_types\":["
      "\"full_attention\",\"sliding_attention\",\"sliding_attention\",\"full_attention\"]}");
  assert_int_equal(layers_with(&m, HAS_WINDOW), 6);
  assert_int_equal(layers_with(&m, HAS_FAR_BASE), 9);
  assert_int_equal(layers_with(&m, HAS_STRETCH), 9);
  whole_read_free(&m);
  read_folder(&m, p, "gemma3-b",
              "{\"rope_parameters\":{\"full_attention\":{\"factor\":8.0,\"rope_type\":\"linear\"},"
              "\"sliding_attention\":{\"rope_type\":\"default\"}},\"rope_theta\":1000000}");
  assert_int_equal(layers_with(&m, HAS_FAR_BASE) | layers_with(&m, HAS_STRETCH), 1);
  whole_read_free(&m);
}

/* In both directions a row attends to half the window on each side. */
static void an_embedding_model_has_half_the_window(void **state) {
  const struct place *p = *state;
  struct whole_read m;
  read_folder(&m, p, "embeddinggemma-a", "{\"sliding_window\":7,\"_sliding_window_pattern\":2}");
  assert_int_equal(m.plan.kind, MODEL_ENCODER);
  assert_int_equal(m.form.kind[1].window, 4);
  assert_false(m.form.causal || m.form.output.tied);
  whole_read_free(&m);
  read_folder(&m, p, "embeddinggemma-a", "{\"use_bidirectional_attention\":false}");
  assert_int_equal(m.plan.kind, MODEL_DECODER);
  assert_int_equal(m.form.kind[1].window, 8);
  whole_read_free(&m);
}

/* The text decoder of a model that also reads images. */
static void the_text_decoder_is_taken(void **state) {
  static const char config[] =
      "{\"architectures\":[\"Gemma3ForConditionalGeneration\"],\"model_type\":\"gemma3\","
      "\"boi_token_index\":255999,\"eoi_token_index\":256000,\"eos_token_id\":[1,106],"
      "\"image_token_index\":262144,\"mm_tokens_per_image\":256,\"text_config\":{"
      "\"hidden_size\":24,\"intermediate_size\":20,\"head_dim\":8,\"model_type\":\"gemma3_text\","
      "\"num_attention_heads\":3,\"num_hidden_layers\":4,\"num_key_value_heads\":1,"
      "\"rope_scaling\":{\"factor\":8.0,\"rope_type\":\"linear\"},\"sliding_window\":4},"
      "\"vision_config\":{\"model_type\":\"siglip_vision_model\",\"hidden_size\":32}}";
  static const char *const prefixes[] = {"language_model.model.", "model.language_model."};
  const struct place *p = *state;
  for (size_t i = 0; i < 2; i++) {
    whole_place_tensors(
        p, "gemma3-a",
        &(struct whole_edit){
            .rename = "model.",
            .to = prefixes[i],
            .more = {{"vision_tower.encoder.layers.0.self_attn.q_proj.weight", 32, 32},
                     {"multi_modal_projector.mm_input_projection_weight", 32, 24}}});
    whole_place_write(p, "config.json", config);
    whole_place_write(p, "generation_config.json",
                      "{\"cache_implementation\":\"hybrid\",\"do_sample\":true,\"eos_token_id\":"
                      "[1,10],\"top_k\":64,\"top_p\":0.95}");
    whole_place_refused(p, ",\"tower\":\"vision\"",
                        "tower: \"vision\" of model_type gemma3 is not supported");
    model_free(whole_place_load(p, ",\"tower\":\"text\""));
    struct model *m = whole_place_load(p, "");
    assert_string_equal(m->whole->family, "gemma3");
    assert_true(whole_can_generate(m->whole));
    assert_int_equal(m->whole->token.ends, 2);
    assert_int_equal(m->whole->aside, 2);
    assert_true(m->whole->part[0].model.shape.scale == 1 / 16.0f);
    model_free(m);
  }
  whole_place_tensors(p, "gemma3-a", NULL);
  whole_place_refused(p, "", "no tensor's name ends with \"layers.0.self_attn.q_proj.weight\"");
}

/* --- what is refused --- */

static void other_values_are_refused(void **state) {
  static const struct {
    const char *golden, *change, *why;
  } cases[] = {
      {"gemma2-a", "{\"use_bidirectional_attention\":true}",
       "use_bidirectional_attention: has an unsupported value"},
      {"gemma2-a", "{\"is_causal\":false}", "is_causal: has an unsupported value"},
      {"gemma2-a", "{\"attn_logit_softcapping\":0}",
       "config.json: attn_logit_softcapping: needs a number from 1e-6 to 1e9"},
      {"gemma2-a", "{\"attn_logit_softcapping\":\"50\"}",
       "config.json: attn_logit_softcapping: needs a number from 1e-6 to 1e9"},
      {"gemma2-a", "{\"final_logit_softcapping\":-30}",
       "config.json: final_logit_softcapping: needs a number from 1e-6 to 1e9"},
      {"gemma2-a", "{\"query_pre_attn_scalar\":null}",
       "config.json: query_pre_attn_scalar: needs a number from 1e-6 to 1e9"},
      {"gemma2-a", "{\"query_pre_attn_scalar\":1e10}",
       "config.json: query_pre_attn_scalar: needs a number from 1e-6 to 1e9"},
      {"gemma3-a", "{\"attn_logit_softcapping\":50.0}",
       "attn_logit_softcapping: has an unsupported value"},
      {"gemma3-a", "{\"final_logit_softcapping\":30.0}",
       "final_logit_softcapping: has an unsupported value"},
      {"gemma3-a", "{\"is_causal\":false}", "is_causal: has an unsupported value"},
      {"gemma3-a", "{\"sliding_window_pattern\":0}",
       "config.json: sliding_window_pattern: needs an integer from 1"},
      {"gemma3-a", "{\"query_pre_attn_scalar\":[]}", "query_pre_attn_scalar: needs a number"},
      {"gemma3-a", "{\"rope_local_base_freq\":1}", "rope_local_base_freq: needs a number above 1"},
      {"gemma3-a", "{\"rope_scaling\":{\"factor\":8.0,\"rope_type\":\"yarn\"}}",
       "rope_scaling: has an unsupported kind"},
      {"llama-b", "{\"final_logit_softcapping\":30.0}",
       "final_logit_softcapping: has an unsupported value"},
      {"llama-b", "{\"model_type\":\"gemma\",\"query_pre_attn_scalar\":12}",
       "query_pre_attn_scalar: has an unsupported value"},
  };
  const struct place *p = *state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    whole_place_tensors(p, cases[i].golden, NULL);
    whole_place_config(p, cases[i].golden, cases[i].change);
    whole_place_refused(p, "", cases[i].why);
  }
  whole_place_tensors(p, "gemma2-a", NULL);
  whole_place_config(p, "gemma2-a", "{}");
  whole_place_refused(p, ",\"logit_score\":[3,4]",
                      "logit_score: not supported with capped logits (final_logit_softcapping)");
}

int main(void) {
#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, whole_place_enter, whole_place_leave)
  const struct CMUnitTest tests[] = {
      IN_PLACE(scores_and_logits_are_capped),
      IN_PLACE(branches_are_normalized_on_both_sides),
      IN_PLACE(layers_differ),
      IN_PLACE(an_embedding_model_has_half_the_window),
      IN_PLACE(the_text_decoder_is_taken),
      IN_PLACE(other_values_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
