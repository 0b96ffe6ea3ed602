/* test_hints: the notes of a model that differs from the config.json beside its checkpoint. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "config/describe/hints/hints.h"
#include "tests/support/blas_start.h"
#include "tests/support/model_load.h"

static int enter(void **state) { return place_make(state, "w.safetensors"); }

static const char *const proj[] = {"q_proj", "k_proj", "v_proj", "out_proj"};
static const char *const llama[] = {"q_proj", "k_proj", "v_proj", "o_proj"};
static const char *const bert[] = {"self.query", "self.key", "self.value", "output.dense"};

static void write_config(const struct place *p, const char *text) {
  char path[128];
  snprintf(path, sizeof path, "%s/config.json", p->folder);
  unlink(path);
  if (!text) return;
  FILE *out = fopen(path, "w");
  assert_non_null(out);
  assert_true(fputs(text, out) >= 0 && fclose(out) == 0);
}

static void write_layer(const struct place *p, const char *prefix, const char *const stems[4]) {
  struct made m = {0};
  add_roles(&m, prefix, stems, ".weight");
  write_made(p, &m);
}

/* A layer of two heads of 2 columns, with that config.json beside it, gets the note `note`, or
 * none. */
static void told(const struct place *p, const char *more, const char *config, const char *note) {
  char definition[256];
  write_config(p, config);
  snprintf(definition, sizeof definition, W "%s}", more);
  struct model *m = load_well(definition, p->folder);
  if (!note) {
    if (m->notes.count) fail_msg("%s: \"%s\"", config, m->notes.text[0]);
  } else {
    if (m->notes.count != 1) fail_msg("%s: %zu notes, not one", config, m->notes.count);
    if (!strstr(m->notes.text[0], note))
      fail_msg("\"%s\" does not say \"%s\"", m->notes.text[0], note);
  }
  model_free(m);
  write_config(p, NULL);
}

static void bases_that_differ_are_told(void **state) {
  const struct place *p = *state;
  write_layer(p, "model.layers.3.self_attn.", llama);
  told(p, "", NULL, NULL);
  told(p, "", "{\"rope_theta\":1e4}", NULL);
  told(p, "", "{\"rope_theta\":500000.0}",
       "config.json says rope_theta 500000, but the base here is 10000");
  told(p, "", "{\"rope_parameters\":{\"rope_theta\":5e5,\"rope_type\":\"default\"}}",
       "rope_theta 500000");
  told(p, ",\"rope\":{\"base\":5e5}", "{\"rope_theta\":500000.0}", NULL);
  told(p, ",\"rope\":{\"base\":2e4}", "{\"rope_theta\":500000.0}", NULL);
  told(p, ",\"rope\":{}", "{\"rope_theta\":500000.0}", "rope_theta 500000");
  told(p, ",\"rope\":false", "{\"rope_theta\":5e5,\"rope_scaling\":{\"rope_type\":\"yarn\"}}",
       NULL);
  write_layer(p, "", plain);
  told(p, "", "{\"rope_theta\":1e4}", "has rope_theta, but queries and keys are not rotated");
  told(p, ",\"rope\":{}", "{\"rope_theta\":1e4}", NULL);
}

static void who_sees_what_is_told(void **state) {
  const struct place *p = *state;
  write_layer(p, "text_model.encoder.layers.0.self_attn.", proj);
  told(p, "", "{\"model_type\":\"clip_text_model\"}", NULL);
  told(p, "", "{\"model_type\":\"siglip\",\"text_config\":{\"num_attention_heads\":2}}",
       "says that the model is not causal, but this definition is causal (set causal to confirm)");
  told(p, ",\"causal\":false", "{\"model_type\":\"siglip_text_model\"}", NULL);
  write_layer(p, "bert.encoder.layer.0.attention.", bert);
  told(p, "", "{\"is_decoder\":false}", NULL);
  told(p, "", "{\"is_decoder\":true}",
       "says that the model is causal, but this definition is not (set causal to confirm)");
  told(p, ",\"causal\":true", "{\"is_decoder\":true}", NULL);
  write_layer(p, "model.layers.0.self_attn.", llama);
  told(p, "", "{\"use_bidirectional_attention\":true}", "the model is not causal, but");
  told(p, "", "{\"is_causal\":false}", "the model is not causal, but");
  told(p, "", "{\"model_type\":\"eurobert\"}", "the model is not causal, but");
}

static void counts_that_differ_are_told(void **state) {
  const struct place *p = *state;
  write_layer(p, "model.layers.0.self_attn.", llama);
  told(p, "", "{\"num_attention_heads\":4}",
       "config.json says 4 heads, but here are 2 (set heads to confirm)");
  told(p, "", "{\"num_attention_heads\":2,\"num_key_value_heads\":1}",
       "config.json says 1 heads of keys, but here are 2 (set kv_heads to confirm)");
  told(p, ",\"kv_heads\":2", "{\"num_key_value_heads\":1}", NULL);
  struct made m = {0};
  for (size_t i = 0; i < 4; i++)
    add_named(&m, 4, 4, "encoder.block.0.layer.0.SelfAttention.%c.weight", "qkvo"[i]);
  made_add(&m, "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", 32, 2);
  write_made(p, &m);
  told(p, "", "{\"relative_attention_max_distance\":64}",
       "config.json says 64 as relative_attention_max_distance, but here are 128 (set "
       "relative_bias");
  told(p, ",\"relative_bias\":{\"max_distance\":90}", "{\"relative_attention_max_distance\":64}",
       NULL);
}

/* Each key at a value that changes the layer, and at one that does not. */
static void what_no_definition_can_say_is_told(void **state) {
  const struct place *p = *state;
  static const struct {
    const char *changes, *neutral, *key;
  } cases[] = {
      {"{\"rope_scaling\":{\"rope_type\":\"llama3\"}}", "{\"rope_scaling\":null}", "rope_scaling"},
      {"{\"rope_scaling\":{\"type\":\"linear\"}}", "{\"rope_scaling\":{\"type\":\"default\"}}",
       "rope_scaling"},
      {"{\"rope_parameters\":{\"full_attention\":{\"rope_theta\":1e4}}}",
       "{\"rope_parameters\":{\"rope_type\":\"default\"}}", "rope_parameters"},
      {"{\"rope_parameters\":{\"partial_rotary_factor\":0.5}}",
       "{\"rope_parameters\":{\"partial_rotary_factor\":1}}", "rope_parameters"},
      {"{\"partial_rotary_factor\":0}", "{\"partial_rotary_factor\":1.0}", "partial_rotary_factor"},
      {"{\"rotary_pct\":0.25}", "{\"rotary_pct\":null}", "rotary_pct"},
      {"{\"no_rope_layers\":[1,1,1,0]}", "{\"no_rope_layers\":[0,0,0,1]}", "no_rope_layers"},
      {"{\"sliding_window\":4096}", "{\"sliding_window\":4096,\"use_sliding_window\":false}",
       "sliding_window"},
      {"{\"sliding_window\":1}", "{\"sliding_window\":0}", "sliding_window"},
      {"{\"sliding_window\":9,\"layer_types\":[\"x\",\"x\",\"x\",\"sliding_attention\"]}",
       "{\"sliding_window\":9,\"layer_types\":[\"x\",\"x\",\"x\",\"full_attention\"]}",
       "sliding_window"},
      {"{\"layer_types\":[\"x\",\"x\",\"x\",\"chunked_attention\"]}", "{\"layer_types\":[]}",
       "layer_types"},
      {"{\"attention_chunk_size\":8192}", "{\"attention_chunk_size\":null}",
       "attention_chunk_size"},
      {"{\"attention_type\":\"block_sparse\"}", "{\"attention_type\":\"original_full\"}",
       "attention_type"},
      {"{\"query_pre_attn_scalar\":1}", "{\"query_pre_attn_scalar\":2}", "query_pre_attn_scalar"},
      {"{\"attention_multiplier\":1}", "{\"attention_multiplier\":0.7071067811865476}",
       "attention_multiplier"},
      {"{\"scale_attn_weights\":false}", "{\"scale_attn_weights\":true}", "scale_attn_weights"},
      {"{\"scale_attn_by_inverse_layer_idx\":true}", "{\"scale_attn_by_inverse_layer_idx\":false}",
       "scale_attn_by_inverse_layer_idx"},
      {"{\"position_embedding_type\":\"relative_key\"}",
       "{\"position_embedding_type\":\"absolute\"}", "position_embedding_type"},
      {"{\"attn_logit_softcapping\":50.0}", "{\"attn_logit_softcapping\":null}",
       "attn_logit_softcapping"},
      {"{\"clip_qkv\":8}", "{\"clip_qkv\":null}", "clip_qkv"},
      {"{\"alibi\":true}", "{\"alibi\":false}", "alibi"},
      {"{\"use_qk_norm\":true}", "{\"use_qk_norm\":false}", "use_qk_norm"},
      {"{\"pruned_heads\":{\"3\":[1]}}", "{\"pruned_heads\":{}}", "pruned_heads"},
      {"{\"quantization_config\":{\"bits\":4}}", "{\"num_local_experts\":8,\"num_experts\":8}",
       "quantization_config"},
  };
  write_layer(p, "model.layers.3.self_attn.", llama);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char note[128];
    snprintf(note, sizeof note, "config.json has %s, which is not applied", cases[i].key);
    told(p, "", cases[i].changes, note);
    told(p, "", cases[i].neutral, NULL);
  }
  told(p, ",\"scale\":1", "{\"attention_multiplier\":1}", NULL);
  told(p, ",\"rope\":{}", "{\"position_embedding_type\":\"rotary\"}", NULL);
  write_layer(p, "h.0.x.", llama);
  told(p,
       ",\"tensors\":{\"query\":\"h.0.x.q_proj\",\"key\":\"h.0.x.k_proj\",\"value\":"
       "\"h.0.x.v_proj\",\"output\":\"h.0.x.o_proj\"}",
       "{\"scale_attn_weights\":false,\"model_type\":\"x\"}", "scale_attn_weights");
}

static void models_that_are_not_known_are_told(void **state) {
  const struct place *p = *state;
  write_layer(p, "model.layers.0.self_attn.", llama);
  told(p, "", "{\"model_type\":\"llama\"}", NULL);
  told(p, "", "{\"model_type\":\"cohere\"}",
       "layout llama is not known to fit config.json's model_type cohere");
  told(p, "", "{\"model_type\":\"a\\u001bb\"}", "model_type a?b");
  write_layer(p, "model.decoder.layers.0.self_attn.", proj);
  told(p, "", "{\"model_type\":\"detr\"}",
       "layout whisper is not known to fit config.json's model_type detr");
  write_layer(p, "", plain);
  told(p, "", "{\"model_type\":\"cohere\"}", NULL);
}

/* The first words of the address choose the tower. */
static void towers_are_told_by_the_address(void **state) {
  const struct place *p = *state;
#define TOWERS                                                                            \
  "{\"text_config\":{\"num_attention_heads\":2,\"model_type\":\"llama\"},"                \
  "\"vision_config\":{\"num_attention_heads\":4,\"model_type\":\"siglip_vision_model\"}," \
  "\"model_type\":\"llava\""
  write_layer(p, "vision_tower.vision_model.encoder.layers.0.self_attn.", proj);
  told(p, "", TOWERS "}", "says 4 heads, but here are 2");
  write_layer(p, "model.visual.encoder.layers.0.self_attn.", proj);
  told(p, "", "{\"vision_config\":{\"num_heads\":4},\"num_attention_heads\":2}", "says 4 heads");
  write_layer(p, "language_model.model.layers.0.self_attn.", llama);
  told(p, "", TOWERS "}", NULL);
  write_layer(p, "audio.layers.0.self_attn.", llama);
  told(p, "", TOWERS "}", "describes several models, and it is unknown which one has this layer");
  told(p, "", TOWERS ",\"num_attention_heads\":2}",
       "layout llama is not known to fit config.json's model_type llava");
  write_layer(p, "decoder.bert.encoder.layer.0.attention.", bert);
  told(p, "",
       "{\"encoder\":{\"model_type\":\"bert\"},\"decoder\":{\"model_type\":\"bert\","
       "\"is_decoder\":true}}",
       "the model is causal, but");
}

/* A definition that says no heads has so many, with that config.json beside the checkpoint. */
static void takes(const struct place *p, const char *more, const char *config, size_t heads,
                  size_t kv_heads, bool hinted) {
  char definition[300];
  write_config(p, config);
  snprintf(definition, sizeof definition, "{\"checkpoint\":\"w.safetensors\"%s}", more);
  struct model *m = load_well(definition, p->folder);
  assert_int_equal(m->shape.heads, heads);
  assert_int_equal(m->shape.kv_heads, kv_heads);
  assert_int_equal(m->hinted, hinted);
  assert_int_equal(m->notes.count, 0);
  model_free(m);
  write_config(p, NULL);
}

static void takes_none(const struct place *p, const char *config, const char *detail) {
  write_config(p, config);
  load_ill("{\"checkpoint\":\"w.safetensors\"}", p->folder, detail);
  write_config(p, NULL);
}

static void heads_that_are_not_said_are_taken(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  write_layer(p, "model.layers.3.self_attn.", llama);
  takes(p, "", "{\"num_attention_heads\":2}", 2, 2, true);
  takes(p, "", "{\"n_head\":1}", 1, 1, true);
  takes(p, "", "{\"heads\":2}", 2, 2, true);
  takes(p, ",\"projection\":\"none\",\"score\":\"dot\",\"query_size\":4",
        "{\"num_attention_heads\":2}", 1, 1, false);
  takes_none(p, "{\"num_attention_heads\":3}",
             "w.safetensors: config.json says 3 heads: heads: 3 do not divide the 4 columns");
  takes_none(p, NULL, "w.safetensors: heads: required with projection linear, and no config.json");
  takes_none(p, "{\"model_type\":\"llama\"}", "heads: required with projection linear, and no");
  takes_none(p, "[]", "heads: required with projection linear, and no config.json");
  takes_none(p,
             "{\"text_config\":{\"num_attention_heads\":2},"
             "\"vision_config\":{\"num_attention_heads\":2}}",
             "heads: required with projection linear, and no config.json");
  /* Heads of keys are told by the rows where a family shares them, else by config.json. */
  add_named(&m, 8, 4, "q.weight");
  add_named(&m, 4, 4, "k.weight");
  add_named(&m, 4, 4, "v.weight");
  add_named(&m, 4, 8, "o.weight");
  write_made(p, &m);
#define MAP ",\"tensors\":{\"query\":\"q\",\"key\":\"k\",\"value\":\"v\",\"output\":\"o\"}"
  takes(p, MAP, "{\"num_attention_heads\":4,\"num_key_value_heads\":2}", 4, 2, true);
  takes(p, MAP ",\"kv_heads\":1", "{\"num_attention_heads\":2,\"num_key_value_heads\":2}", 2, 1,
        true);
  for (size_t i = 0; i < 4; i++)
    add_named(&m, 12, 12, "encoder.block.0.layer.0.SelfAttention.%c.weight", "qkvo"[i]);
  made_add(&m, "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", 32, 3);
  write_made(p, &m);
  takes(p, "", NULL, 3, 3, false); /* the table tells them */
}

static void a_config_that_is_none_is_told_and_no_more(void **state) {
  const struct place *p = *state;
  char path[128];
  write_layer(p, "model.layers.0.self_attn.", llama);
  told(p, "", "{\"rope_theta\":", "config.json, line 1");
  told(p, "", "[1]", "config.json: is not an object: it is ignored");
  told(p, "", "{\"models\":{},\"listen\":\"x\"}", NULL);
  snprintf(path, sizeof path, "%s/config.json", p->folder);
  assert_int_equal(symlink("/dev/zero", path), 0);
  struct model *m = load_well(W "}", p->folder);
  assert_int_equal(m->notes.count, 0);
  model_free(m);
  unlink(path);
}

static void the_place_is_known(void **state) {
  const struct place *p = *state;
  write_layer(p, "model.layers.3.self_attn.", llama);
  struct model *m = load_well(W "}", p->folder);
  assert_string_equal(m->place, "model.layers.3.self_attn.");
  model_free(m);
  m = load_well("{\"projection\":\"none\",\"query_size\":4}", ".");
  assert_null(m->place);
  model_free(m);
}

int main(void) {
#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, enter, place_remove)
  const struct CMUnitTest tests[] = {
      IN_PLACE(bases_that_differ_are_told),
      IN_PLACE(who_sees_what_is_told),
      IN_PLACE(counts_that_differ_are_told),
      IN_PLACE(what_no_definition_can_say_is_told),
      IN_PLACE(models_that_are_not_known_are_told),
      IN_PLACE(towers_are_told_by_the_address),
      IN_PLACE(heads_that_are_not_said_are_taken),
      IN_PLACE(a_config_that_is_none_is_told_and_no_more),
      IN_PLACE(the_place_is_known),
  };
  return cmocka_run_group_tests(tests, blas_start, NULL);
}
