/* test_whole_layers: in what the layers of a model differ, and what a file may say of it. */
#include "tests/support/blas_start.h"
#include "tests/support/whole_place.h"
#include "tests/support/whole_read.h"

/* Reads the folder's model. */
static void read_place(struct whole_read *m, const struct place *p) {
  char definition[512];
  whole_place_definition(p, "", definition);
  whole_read(m, json_of(definition), "/");
}

/* The config.json of a golden model, with these members, is refused. */
static void config_is_refused(const struct place *p, const char *golden, const char *change,
                              const char *detail) {
  whole_place_config(p, golden, change);
  whole_place_refused(p, "", detail);
}

/* The layers without rotary positions, a bit each. */
static unsigned unrotated_of(const struct place *p, const char *change) {
  struct whole_read m;
  unsigned found = 0;
  whole_place_config(p, "smollm3-a", change);
  read_place(&m, p);
  for (size_t i = 0; i < m.form.layers; i++)
    found |= (unsigned)(m.form.kind[m.form.layer[i].kind].self.rope_base == 0) << i;
  whole_read_free(&m);
  return found;
}

static void layers_may_lack_rotary_positions(void **state) {
  const struct place *p = *state;
  whole_place_tensors(p, "smollm3-a", NULL);
  assert_int_equal(unrotated_of(p, "{}"), 8);
  assert_int_equal(unrotated_of(p, "{\"no_rope_layers\":[0,1,0,1]}"), 5);
  assert_int_equal(unrotated_of(p, "{\"no_rope_layers\":[1,1,1,1]}"), 0);
  assert_int_equal(unrotated_of(p, "{\"no_rope_layers\":[0,0,0,0]}"), 15);
  assert_int_equal(unrotated_of(p, "{\"no_rope_layers\":null,\"no_rope_layer_interval\":2}"), 10);
  assert_int_equal(unrotated_of(p, "{\"no_rope_layers\":null,\"no_rope_layer_interval\":\"-\"}"),
                   8);
  assert_int_equal(unrotated_of(p, "{\"sliding_window\":16}"), 8);
  struct model *m = whole_place_load(p, "");
  for (size_t i = 0; i < 4; i++)
    assert_true(m->whole->part[i].model.shape.rope_base == (i == 3 ? 0 : 2000000));
  model_free(m);
  whole_place_config(p, "smollm3-a", "{\"bos_token_id\":null}"); /* as published */
  m = whole_place_load(p, "");
  assert_true(m->whole->token.begin < 0 && whole_can_generate(m->whole));
  model_free(m);
}

/* A layer of modernbert-a. */
struct layer_said {
  size_t window;
  double base;
};

static void layers_are(const struct place *p, const char *change, const struct layer_said *far,
                       const struct layer_said *near, unsigned nears) {
  struct whole_read m;
  whole_place_config(p, "modernbert-a", change);
  read_place(&m, p);
  for (size_t i = 0; i < 4; i++) {
    const struct stack_kind *kind = &m.form.kind[m.form.layer[i].kind];
    const struct layer_said *right = nears >> i & 1 ? near : far;
    assert_int_equal(kind->window, right->window);
    assert_true(kind->self.rope_base == right->base);
    assert_true(kind->self.rope_stretch.factor == 0);
  }
  whole_read_free(&m);
}

/* The keys of transformers 4 and 5. */
static void windows_and_rotary_positions_may_alternate(void **state) {
  const struct place *p = *state;
  static const char types[] = "\"layer_types\":[\"sliding_attention\",\"full_attention\","
                              "\"full_attention\",\"sliding_attention\"]";
  const struct layer_said far = {0, 160000}, near = {5, 10000}, wide = {65, 10000},
                          other = {0, 7000}, close = {5, 300};
  char change[400];
  whole_place_tensors(p, "modernbert-a", NULL);
  layers_are(p, "{}", &far, &near, 6);
  layers_are(p, "{\"local_attention\":9}", &far, &near, 6);
  layers_are(p, "{\"local_attention\":\"-\",\"local_rope_theta\":\"-\"}", &far, &wide, 6);
  layers_are(p, "{\"global_attn_every_n_layers\":1}", &far, &near, 0);
  layers_are(p, "{\"global_attn_every_n_layers\":2,\"global_rope_theta\":\"-\"}", &far, &near, 10);
  layers_are(p, "{\"global_attn_every_n_layers\":\"-\"}", &far, &near, 6);
  layers_are(p, "{\"global_rope_theta\":7000,\"local_rope_theta\":300}", &other, &close, 6);
  snprintf(change, sizeof change, "{%s}", types);
  layers_are(p, change, &far, &near, 9);
  snprintf(change, sizeof change,
           "{%s,\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"default\","
           "\"rope_theta\":7000},\"sliding_attention\":{\"rope_theta\":300}}}",
           types);
  layers_are(p, change, &other, &close, 9);
  layers_are(p, "{\"rope_parameters\":{\"sliding_attention\":{\"rope_type\":\"default\"}}}", &far,
             &near, 6);
  layers_are(p,
             "{\"layer_types\":[\"sliding_attention\",\"sliding_attention\",\"sliding_attention\","
             "\"sliding_attention\"]}",
             &far, &near, 15);
  struct model *m = whole_place_load(p, "");
  assert_true(m->whole->part[2].model.window == 5 &&
              m->whole->part[2].model.shape.rope_base == 10000);
  model_free(m);
  whole_place_config(p, "modernbert-a", "{}");
  m = whole_place_load(p, "");
  assert_true(m->whole->part[2].model.window == 5 && m->whole->part[3].model.window == 0);
  assert_true(m->whole->part[2].model.shape.rope_base == 10000 &&
              m->whole->part[3].model.shape.rope_base == 160000);
  model_free(m);
}

/* Each kind may be scaled in its own way. */
static void rotary_positions_may_be_scaled_in_one_kind(void **state) {
  const struct place *p = *state;
  struct whole_read m;
  whole_place_tensors(p, "modernbert-a", NULL);
  whole_place_config(p, "modernbert-a",
                     "{\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"linear\","
                     "\"factor\":4}}}");
  read_place(&m, p);
  assert_true(m.form.kind[0].self.rope_stretch.factor == 4);
  assert_true(m.form.kind[1].self.rope_stretch.factor == 0 && m.form.kind[1].window == 5);
  whole_read_free(&m);
}

static void what_a_file_may_not_say_of_layers(void **state) {
  const struct place *p = *state;
  static const char *const cases[][2] = {
      {"{\"local_rope_theta\":null}", "config.json: local_rope_theta: needs a number above 1"},
      {"{\"global_rope_theta\":1}", "config.json: global_rope_theta: needs a number above 1"},
      {"{\"local_attention\":0}", "config.json: local_attention: needs an integer from 1"},
      {"{\"global_attn_every_n_layers\":0}",
       "config.json: global_attn_every_n_layers: needs an integer from 1"},
      {"{\"sliding_window\":64}", "config.json: sliding_window: has an unsupported value"},
      {"{\"rope_scaling\":{\"type\":\"linear\",\"factor\":2}}",
       "config.json: rope_scaling: has an unsupported value"},
      {"{\"rope_parameters\":{\"rope_theta\":1e4}}",
       "config.json: rope_parameters: rope_theta: must be an object for \"full_attention\" or "
       "\"sliding_attention\""},
      {"{\"rope_parameters\":{\"chunked_attention\":{}}}",
       "config.json: rope_parameters: chunked_attention: must be an object for"},
      {"{\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"yarn\"}}}",
       "config.json: rope_parameters: full_attention: has an unsupported kind"},
      {"{\"rope_parameters\":{\"sliding_attention\":{\"rope_type\":\"linear\",\"factor\":0.5}}}",
       "config.json: rope_parameters: sliding_attention: factor: needs a number of at least 1"},
      {"{\"rope_parameters\":{\"sliding_attention\":{\"partial_rotary_factor\":0.5}}}",
       "config.json: partial_rotary_factor: has an unsupported value"},
      {"{\"rope_parameters\":{\"sliding_attention\":{\"rope_theta\":\"x\"}}}",
       "config.json: rope_theta: needs a number above 1"},
      {"{\"layer_types\":[\"full_attention\"]}",
       "config.json: layer_types: has 1 entries for 4 layers"},
      {"{\"is_causal\":true}", "config.json: is_causal: has an unsupported value"},
      {"{\"classifier_activation\":\"tanh_or_so\"}",
       "config.json: classifier_activation: \"tanh_or_so\" is not a supported activation"},
      {"{\"classifier_activation\":7}",
       "config.json: classifier_activation: \"an integer\" is not a supported activation"}};
  whole_place_tensors(p, "modernbert-a", NULL);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    config_is_refused(p, "modernbert-a", cases[i][0], cases[i][1]);
  /* These have no effect. */
  whole_place_config(
      p, "modernbert-a",
      "{\"deterministic_flash_attn\":true,\"reference_compile\":true,"
      "\"sparse_prediction\":true,\"sparse_pred_ignore_index\":-100,"
      "\"repad_logits_with_grad\":true,\"position_embedding_type\":\"sans_pos\","
      "\"rope_scaling\":null,\"sliding_window\":null,\"classifier_dropout\":0.1,"
      "\"layer_norm_eps\":1e-05,\"gradient_checkpointing\":false,\"mask_token_id\":4,"
      "\"unk_token_id\":3,\"initializer_cutoff_factor\":2.0,\"embedding_dropout\":0.1,"
      "\"global_rope_theta\":160000,\"local_rope_theta\":160000}");
  model_free(whole_place_load(p, ""));
}

/* Layer 0 has no norm before its attention. */
static void one_layer_may_lack_its_norm(void **state) {
  const struct place *p = *state;
  struct whole_read m;
  whole_place_config(p, "modernbert-a", "{}");
  whole_place_tensors(p, "modernbert-a", NULL);
  read_place(&m, p);
  assert_null(m.form.layer[0].norm_self.factor);
  for (size_t i = 1; i < 4; i++)
    assert_true(m.form.layer[i].norm_self.factor && !m.form.layer[i].norm_self.shift);
  whole_read_free(&m);
  struct whole_edit edit = {.add = "layers.0.attn_norm.weight", .rows = 24};
  whole_place_tensors(p, "modernbert-a", &edit);
  whole_place_refused(p, "", "unexpected tensor \"layers.0.attn_norm.weight\"");
  edit = (struct whole_edit){.drop = "layers.2.attn_norm."};
  whole_place_tensors(p, "modernbert-a", &edit);
  whole_place_refused(p, "", "there is no tensor \"layers.2.attn_norm.weight\"");
  edit = (struct whole_edit){.add = "layers.2.attn_norm.bias", .rows = 24};
  whole_place_tensors(p, "modernbert-a", &edit);
  whole_place_refused(p, "", "there is no tensor \"layers.1.attn_norm.bias\"");
}

/* The layers before the classes are those of all heads. */
static void heads_of_rows_may_have_layers(void **state) {
  const struct place *p = *state;
  const struct whole_edit spans = {
      .drop = "classifier.", .more = {{"classifier.weight", 2, 24}, {"classifier.bias", 2, 0}}};
  whole_place_config(p, "modernbert-cls",
                     "{\"architectures\":[\"ModernBertForQuestionAnswering\"],"
                     "\"id2label\":\"-\"}");
  whole_place_tensors(p, "modernbert-cls", &spans);
  struct model *m = whole_place_load(p, "");
  const struct stack_classifier *c = &stack_form(whole_reader(m->whole))->classifier;
  assert_int_equal(whole_classes(m->whole, WHOLE_HEAD_SPANS), 2);
  assert_true(c->vectors == STACK_VECTORS_EACH && c->norm.factor && !c->tanh && !c->pooler);
  assert_int_equal(c->activation, ACTIVATION_GELU);
  model_free(m);
  whole_place_tensors(p, "modernbert-cls", NULL);
  whole_place_refused(p, "", "tensor \"classifier.weight\" has 3 rows, but must have 2");
  whole_place_config(p, "modernbert-cls", "{\"classifier_activation\":\"silu\"}");
  whole_place_tensors(p, "modernbert-cls", NULL);
  m = whole_place_load(p, "");
  c = &stack_form(whole_reader(m->whole))->classifier;
  assert_true(c->activation == ACTIVATION_SILU && c->vectors == STACK_VECTORS_FIRST);
  model_free(m);
  whole_place_config(p, "modernbert-cls", "{\"classifier_pooling\":\"late\"}");
  whole_place_refused(p, "", "classifier_pooling: \"late\" is not supported; supported: cls, mean");
  whole_place_config(p, "modernbert-cls", "{\"classifier_pooling\":\"bos\"}");
  whole_place_refused(p, "", "classifier_pooling: \"bos\" is not supported; supported: cls, mean");
  whole_place_config(p, "modernbert-cls", "{\"classifier_activation\":\"silu\"}");
  whole_place_tensors(p, "modernbert-cls", &(struct whole_edit){.drop = "head.norm."});
  whole_place_refused(p, "", "there is no tensor \"head.norm.weight\" of the classifier");
  whole_place_config(p, "modernbert-mlm", "{\"classifier_activation\":\"silu\"}");
  whole_place_tensors(p, "modernbert-mlm", NULL);
  m = whole_place_load(p, "");
  assert_int_equal(stack_form(whole_reader(m->whole))->output.activation, ACTIVATION_SILU);
  model_free(m);
}

/* --- NomicBERT --- */

/* Checks the base that follows the length of an item, with the tensors of nomic-ntk. */
static void growth_is(const struct place *p, const char *change, double factor, size_t trained) {
  struct whole_read m;
  whole_place_config(p, "nomic-ntk", change);
  read_place(&m, p);
  assert_true(m.form.kind->self.rope_stretch.factor == factor);
  assert_int_equal(m.form.kind->self.rope_stretch.trained, trained);
  assert_int_equal(m.plan.words.positions, 64); /* n_positions */
  whole_read_free(&m);
}

/* Published files have the keys of published code and those of transformers. */
static void nomic_may_say_how_its_base_grows_twice(void **state) {
  const struct place *p = *state;
#define DYNAMIC "\"rope_parameters\":{\"factor\":2.0,\"rope_theta\":1000,\"rope_type\":\"dynamic\"}"
  whole_place_tensors(p, "nomic-ntk", NULL);
  growth_is(p, "{}", 2, 8);
  growth_is(p, "{" DYNAMIC ",\"max_position_embeddings\":48}", 2, 8);
  growth_is(p, "{" DYNAMIC ",\"max_position_embeddings\":48,\"rotary_scaling_factor\":null}", 2,
            48);
  growth_is(p, "{" DYNAMIC ",\"rotary_scaling_factor\":null}", 2, 2048);
  growth_is(p,
            "{\"rope_parameters\":{\"rope_theta\":1000,\"rope_type\":\"default\"},"
            "\"max_position_embeddings\":32,\"rotary_scaling_factor\":null}",
            0, 0);
  config_is_refused(p, "nomic-ntk", "{" DYNAMIC ",\"rotary_scaling_factor\":4}",
                    "config.json: rotary_scaling_factor: differs from rope_parameters");
  config_is_refused(
      p, "nomic-ntk",
      "{\"rope_parameters\":{\"factor\":2,\"rope_theta\":1000,\"rope_type\":\"linear\"}}",
      "config.json: rotary_scaling_factor: differs from rope_parameters");
  config_is_refused(p, "nomic-ntk",
                    "{" DYNAMIC ",\"max_position_embeddings\":0,\"rotary_scaling_factor\":null}",
                    "config.json: max_position_embeddings: needs an integer from 1");
}

static void activations_of_nomic_are(const struct place *p, const char *change,
                                     enum activation layers, enum activation head) {
  whole_place_config(p, "nomic-gelu", change);
  struct model *m = whole_place_load(p, "");
  const struct stack_form *f = stack_form(whole_reader(m->whole));
  assert_true(f->output.tied);
  assert_int_equal(f->kind->activation, layers);
  assert_int_equal(f->output.activation, head);
  model_free(m);
}

/* The layers have the exact GELU for each name; the masked language modeling head has not. */
static void the_head_of_nomic_has_another_activation(void **state) {
  const struct place *p = *state;
#define MASKED "\"architectures\":[\"NomicBertForMaskedLM\"]"
  whole_place_tensors(p, "nomic-gelu",
                      &(struct whole_edit){
                          .more = {{"cls.predictions.transform.dense.weight", 24, 24},
                                   {"cls.predictions.transform.dense.bias", 24, 0},
                                   {"cls.predictions.transform.layer_norm.weight", 24, 0},
                                   {"cls.predictions.transform.layer_norm.bias", 24, 0}}});
  activations_of_nomic_are(p, "{" MASKED "}", ACTIVATION_GELU, ACTIVATION_GELU);
  activations_of_nomic_are(p, "{" MASKED ",\"activation_function\":\"gelu_new\"}", ACTIVATION_GELU,
                           ACTIVATION_GELU_NEW);
  activations_of_nomic_are(p, "{" MASKED ",\"activation_function\":\"gelu_fast\"}", ACTIVATION_GELU,
                           ACTIVATION_GELU_NEW);
  activations_of_nomic_are(p,
                           "{\"architectures\":[\"NomicBertForPreTraining\"],"
                           "\"activation_function\":\"gelu_pytorch_tanh\"}",
                           ACTIVATION_GELU, ACTIVATION_GELU_NEW);
}

int main(void) {
#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, whole_place_enter, whole_place_leave)
  const struct CMUnitTest tests[] = {
      IN_PLACE(layers_may_lack_rotary_positions),
      IN_PLACE(windows_and_rotary_positions_may_alternate),
      IN_PLACE(rotary_positions_may_be_scaled_in_one_kind),
      IN_PLACE(what_a_file_may_not_say_of_layers),
      IN_PLACE(one_layer_may_lack_its_norm),
      IN_PLACE(heads_of_rows_may_have_layers),
      IN_PLACE(nomic_may_say_how_its_base_grows_twice),
      IN_PLACE(the_head_of_nomic_has_another_activation),
  };
  return cmocka_run_group_tests(tests, blas_start, NULL);
}
