/* test_whole_decoder: what decoders' files may say beside what the golden ones do: norms of heads,
 * windows, other norms. */
#include <math.h>

#include "tests/support/blas_start.h"
#include "tests/support/whole_place.h"
#include "tests/support/whole_read.h"

/* Reads the folder's model, whose definition has these members, too. */
static void read_place(struct whole_read *m, const struct place *p, const char *more) {
  char definition[512];
  whole_place_definition(p, more, definition);
  whole_read(m, json_of(definition), "/");
}

/* A tensor of the folder's file. */
static void read_tensor(const struct whole_read *m, const char *name, size_t count, float *out) {
  struct error e = {0};
  const struct checkpoint_entry *t = checkpoint_find(m->plan.source.file, name);
  assert_non_null(t);
  assert_int_equal(checkpoint_read_floats(m->plan.source.file, t, 0, count, out, &e), STATUS_OK);
}

#define ATTENTION "model.layers.0.self_attn."

static void heads_may_be_normalised(void **state) {
  const struct place *p = *state;
  struct whole_read m;
  float factor[8];
  whole_place_tensors(p, "qwen2-a",
                      &(struct whole_edit){.drop = "model.layers.1.",
                                           .add = ATTENTION "q_norm.weight",
                                           .also = ATTENTION "k_norm.weight",
                                           .rows = 8});
  whole_place_config(p, "qwen2-a",
                     "{\"model_type\":\"qwen3\",\"head_dim\":8,\"num_hidden_layers\":1}");
  read_place(&m, p, "");
  read_tensor(&m, ATTENTION "k_norm.weight", 8, factor);
  assert_memory_equal(m.form.layer[0].self[ROLE_NORM_KEY].weight, factor, sizeof factor);
  assert_non_null(m.form.layer[0].self[ROLE_NORM_QUERY].weight);
  assert_true(m.form.kind->self.norm_epsilon == 1e-6f && m.form.kind->self.kv_heads == 2);
  assert_string_equal(m.plan.family->name, "llama");
  whole_read_free(&m);
  whole_place_config(p, "qwen2-a", "{\"model_type\":\"qwen3\",\"num_hidden_layers\":1}");
  whole_place_refused(p, "", "heads: 4 of the configured head_size do not match the 32 rows");
}

static void a_norm_may_be_stored_as_what_is_above_1(void **state) {
  const struct place *p = *state;
  struct whole_read m;
  float stored[24];
  whole_place_tensors(p, "llama-b", NULL);
  whole_place_config(p, "llama-b",
                     "{\"model_type\":\"gemma\",\"head_dim\":8,\"hidden_activation\":null,"
                     "\"hidden_act\":\"gelu\",\"tie_word_embeddings\":\"-\"}");
  read_place(&m, p, "");
  assert_string_equal(m.plan.family->name, "gemma");
  assert_int_equal(m.form.kind->activation, ACTIVATION_GELU_NEW);
  assert_true(m.form.embedding.scale == sqrtf(24) && m.form.output.tied);
  read_tensor(&m, "model.layers.1.post_attention_layernorm.weight", 24, stored);
  for (size_t i = 0; i < 24; i++)
    assert_true(m.form.layer[1].norm_forward.factor[i] == 1 + stored[i]);
  read_tensor(&m, "model.norm.weight", 24, stored);
  for (size_t i = 0; i < 24; i++) assert_true(m.form.last.factor[i] == 1 + stored[i]);
  whole_read_free(&m);
  whole_place_config(p, "llama-b",
                     "{\"model_type\":\"gemma\",\"head_dim\":8,\"hidden_activation\":\"gelu\"}");
  read_place(&m, p, "");
  assert_int_equal(m.form.kind->activation, ACTIVATION_GELU);
  whole_read_free(&m);
}

static size_t window_of(const struct place *p, const char *golden, const char *change) {
  struct whole_read m;
  whole_place_tensors(p, golden, NULL);
  whole_place_config(p, golden, change);
  read_place(&m, p, "");
  const size_t window = m.form.kind->window;
  whole_read_free(&m);
  return window;
}

static void rows_may_see_a_window_alone(void **state) {
  const struct place *p = *state;
  const char *mistral = "{\"model_type\":\"mistral\",\"head_dim\":8}";
  assert_int_equal(window_of(p, "llama-b", mistral), 4096);
  mistral = "{\"model_type\":\"mistral\",\"head_dim\":8,\"sliding_window\":7}";
  assert_int_equal(window_of(p, "llama-b", mistral), 7);
  mistral = "{\"model_type\":\"mistral\",\"head_dim\":8,\"sliding_window\":null}";
  assert_int_equal(window_of(p, "llama-b", mistral), 0);
  mistral = "{\"model_type\":\"mistral\",\"head_dim\":8,\"sliding_window\":7,"
            "\"use_sliding_window\":false}"; /* Mistral has no such key */
  assert_int_equal(window_of(p, "llama-b", mistral), 7);
  assert_int_equal(window_of(p, "llama-b", "{\"sliding_window\":null}"), 0);
  assert_int_equal(window_of(p, "llama-b", "{\"sliding_window\":7,\"use_sliding_window\":false}"),
                   0);
  assert_int_equal(window_of(p, "qwen2-a", "{}"), 0);
  assert_int_equal(window_of(p, "qwen2-a", "{\"use_sliding_window\":\"-\"}"), 0);
  assert_int_equal(window_of(p, "qwen2-a", "{\"use_sliding_window\":true}"),
                   0); /* from layer 2 on */
  assert_int_equal(window_of(p, "qwen2-a", "{\"use_sliding_window\":true,\"max_window_layers\":0}"),
                   32);
  assert_int_equal(window_of(p, "qwen2-a",
                             "{\"use_sliding_window\":true,\"sliding_window\":5,"
                             "\"layer_types\":[\"sliding_attention\",\"sliding_attention\"]}"),
                   5);
  assert_int_equal(window_of(p, "qwen2-a",
                             "{\"use_sliding_window\":true,"
                             "\"layer_types\":[\"full_attention\",\"full_attention\"]}"),
                   0);
  struct model *m = whole_place_load(p, "");
  assert_int_equal(m->whole->part[0].model.window, 0);
  model_free(m);
  whole_place_config(p, "llama-b", "{\"model_type\":\"mistral\",\"sliding_window\":7}");
  whole_place_tensors(p, "llama-b", NULL);
  m = whole_place_load(p, "");
  assert_int_equal(m->whole->part[0].model.window, 7);
  model_free(m);
}

/* The layers of an nn.TransformerEncoder whose mask hides what is to come. */
static void a_kind_may_tell_a_decoder(void **state) {
  const struct place *p = *state;
  struct whole_edit edit = {.add = "embedding.weight", .rows = 9, .columns = 32};
  whole_place_tensors(p, "torch-encoder-a", &edit);
  whole_place_config(p, "torch-encoder-a", "{\"positions\":\"-\"}");
  struct model *m = whole_place_load(p, "");
  assert_int_equal(m->kind, MODEL_ENCODER);
  assert_false(whole_can_generate(m->whole));
  model_free(m);
  m = whole_place_load(p, ",\"kind\":\"decoder\"");
  assert_int_equal(m->kind, MODEL_DECODER);
  assert_true(whole_can_generate(m->whole));
  assert_string_equal(m->whole->family, "plain");
  assert_string_equal(m->whole->part[0].name, "decoder.0.self");
  model_free(m);
  edit.also = "layers.0.multihead_attn.in_proj_weight";
  whole_place_tensors(p, "torch-encoder-a", &edit);
  whole_place_refused(p, ",\"kind\":\"decoder\"",
                      "unexpected tensor \"layers.0.multihead_attn.in_proj_weight\"");
}

int main(void) {
#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, whole_place_enter, whole_place_leave)
  const struct CMUnitTest tests[] = {
      IN_PLACE(heads_may_be_normalised),
      IN_PLACE(a_norm_may_be_stored_as_what_is_above_1),
      IN_PLACE(rows_may_see_a_window_alone),
      IN_PLACE(a_kind_may_tell_a_decoder),
  };
  return cmocka_run_group_tests(tests, blas_start, NULL);
}
