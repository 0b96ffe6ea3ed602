/* test_whole_modules: folders as sentence-transformers save them; and models that are drawn. */
#include "tests/support/whole_place.h"

#include <math.h>
#include <unistd.h>

#include "config/build/layer/random.h"
#include "config/document/digest.h"
#include "core/reference/stack_ref.h"
#include "tests/support/whole_read.h"

/* --- modules.json --- */

#define MODULE(path, type)                                                                        \
  "{\"idx\":0,\"name\":\"x\",\"path\":\"" path "\",\"type\":\"sentence_transformers.models." type \
  "\"}"
#define MODEL MODULE("", "Transformer")
#define POOL  MODULE("1_Pooling", "Pooling")

static void write_modules(const struct place *p, const char *modules, const char *pooling) {
  whole_place_write(p, "modules.json", modules);
  whole_place_write(p, "1_Pooling/config.json", pooling);
}

static void prepare(const struct place *p) {
  whole_place_tensors(p, "bert-a", NULL);
  whole_place_config(p, "bert-a", "{}");
}

/* With these flags the pool is that one. */
static void pools(const struct place *p, const char *flags, enum stack_pool pool) {
  char pooling[300];
  snprintf(pooling, sizeof pooling, "{\"word_embedding_dimension\":32,%s,\"include_prompt\":true}",
           flags);
  write_modules(p, "[" MODEL "," POOL "]", pooling);
  struct model *m = whole_place_load(p, "");
  assert_int_equal(m->whole->pool, pool);
  assert_false(m->whole->normalize);
  assert_int_equal(m->notes.count, 0);
  model_free(m);
}

static void pooling_tells_the_pool(void **state) {
  const struct place *p = *state;
  prepare(p);
  pools(p, "\"pooling_mode_cls_token\":true,\"pooling_mode_mean_tokens\":false", STACK_POOL_CLS);
  pools(p, "\"pooling_mode_mean_tokens\":true,\"pooling_mode_weightedmean_tokens\":false",
        STACK_POOL_MEAN);
  pools(p, "\"pooling_mode_max_tokens\":true", STACK_POOL_MAX);
  pools(p, "\"pooling_mode_lasttoken\":true", STACK_POOL_LAST);
  pools(p, "\"pooling_mode_mean_sqrt_len_tokens\":true", STACK_POOL_MEAN_SQRT_LEN);
  pools(p, "\"pooling_mode_weightedmean_tokens\":true", STACK_POOL_WEIGHTED_MEAN);
  pools(p, "\"pooling_mode\":\"weightedmean\"", STACK_POOL_WEIGHTED_MEAN);
  pools(p, "\"pooling_mode\":\"mean\"", STACK_POOL_MEAN);
  struct model *m = whole_place_load(p, ",\"pool\":\"none\",\"normalize\":true");
  assert_int_equal(m->whole->pool, STACK_POOL_NONE);
  assert_int_equal(m->notes.count, 2);
  assert_string_equal(m->notes.text[0], "modules.json says pool mean, but here it is none");
  assert_string_equal(m->notes.text[1], "modules.json says normalize false, but here it is true");
  model_free(m);
}

static void add_dense_named(const struct place *p, const char *folder, size_t out, size_t in,
                            bool bias, bool residual) {
  struct made m = {0};
  struct place dense = *p;
  made_add(&m, "linear.weight", out, in);
  if (bias) made_add(&m, "linear.bias", out, 0);
  if (residual) made_add(&m, "residual.weight", out, in);
  snprintf(dense.file, sizeof dense.file, "%.60s/%s/model.safetensors", p->folder, folder);
  write_made(&dense, &m);
}

static void add_dense(const struct place *p, size_t out, size_t in, bool bias) {
  add_dense_named(p, "2_Dense", out, in, bias, false);
}

#define DENSE(act, more)                                                                   \
  "{\"in_features\":32,\"out_features\":3,\"activation_function\":\"torch.nn.modules." act \
  "\"" more "}"

static void what_follows_the_pooling(void **state) {
  const struct place *p = *state;
  prepare(p);
  write_modules(p,
                "[" MODEL "," POOL
                "," MODULE("2_Dense", "Dense") "," MODULE("3_Normalize", "Normalize") "]",
                "{\"pooling_mode_mean_tokens\":true}");
  whole_place_write(p, "2_Dense/config.json", DENSE("activation.Tanh", ",\"bias\":true"));
  add_dense(p, 3, 32, true);
  struct model *m = whole_place_load(p, "");
  const struct stack_form *f = stack_form(whole_reader(m->whole));
  assert_int_equal(f->pooling.dense[0].size, 3);
  assert_true(f->pooling.dense[0].tanh && m->whole->normalize);
  const uint64_t all = m->parameters;
  model_free(m);
  whole_place_write(p, "2_Dense/config.json", DENSE("linear.Identity", ",\"bias\":false"));
  m = whole_place_load(p, ",\"normalize\":false");
  assert_false(stack_form(whole_reader(m->whole))->pooling.dense[0].tanh || m->whole->normalize);
  assert_int_equal(m->parameters, all - 3);
  model_free(m);
  whole_place_write(p, "2_Dense/config.json", DENSE("activation.ReLU", ""));
  whole_place_refused(p, "",
                      "module 2_Dense: activation_function: \"torch.nn.modules.activation.ReLU\"");
  whole_place_write(p, "2_Dense/config.json", "{\"in_features\":0}");
  whole_place_refused(p, "", "module 2_Dense: in_features: needs a size");
  whole_place_write(p, "2_Dense/config.json", DENSE("linear.Identity", ",\"bias\":1"));
  whole_place_refused(p, "", "module 2_Dense: bias: needs true or false");
  whole_place_write(p, "2_Dense/config.json", DENSE("linear.Identity", ""));
  add_dense(p, 3, 32, false);
  whole_place_refused(p, "", "there is no tensor \"linear.bias\" of the dense layer");
  add_dense(p, 4, 32, true);
  whole_place_refused(p, "", "\"linear.weight\" has 4 times 32 numbers here, not 3 times 32");
  whole_place_write(p, "2_Dense/config.json",
                    "{\"in_features\":31,\"out_features\":4,\"activation_function\":"
                    "\"torch.nn.modules.linear.Identity\"}");
  whole_place_refused(p, "", "in_features: 31 for the dense layer, but the width is 32");
}

/* As a cross-encoder is saved. */
static void a_transformer_may_stand_alone(void **state) {
  const struct place *p = *state;
  prepare(p);
  whole_place_write(p, "modules.json",
                    "[{\"path\":\"\",\"type\":\"sentence_transformers.base.modules.transformer."
                    "Transformer\"}]");
  struct model *m = whole_place_load(p, "");
  assert_int_equal(m->whole->pool, STACK_POOL_NONE);
  assert_false(m->whole->normalize);
  model_free(m);
  m = whole_place_load(p, ",\"pool\":\"mean\",\"normalize\":true");
  assert_int_equal(m->notes.count, 0);
  model_free(m);
}

/* Two dense layers, of which either may add what comes in to what it makes. */
static void dense_layers_may_be_two(void **state) {
  const struct place *p = *state;
  static const char same[] =
      "{\"in_features\":32,\"out_features\":32,\"activation_function\":"
      "\"torch.nn.modules.activation.Tanh\",\"use_residual\":true,"
      "\"module_input_name\":\"sentence_embedding\",\"module_output_name\":null}";
  static const char other[] =
      "{\"in_features\":32,\"out_features\":5,\"bias\":false,\"use_residual\":true,"
      "\"activation_function\":\"torch.nn.modules.linear.Identity\"%s}";
  char with[400];
  prepare(p);
  write_modules(p,
                "[" MODEL "," POOL
                "," MODULE("2_Dense", "Dense") "," MODULE("3_Dense", "Dense") "]",
                "{\"pooling_mode_mean_tokens\":true}");
  whole_place_write(p, "2_Dense/config.json", same);
  snprintf(with, sizeof with, other, "");
  whole_place_write(p, "3_Dense/config.json", with);
  add_dense_named(p, "2_Dense", 32, 32, true, false);
  add_dense_named(p, "3_Dense", 5, 32, false, true);
  struct model *m = whole_place_load(p, "");
  const struct stack_form *f = stack_form(whole_reader(m->whole));
  assert_true(f->pooling.dense[0].tanh && f->pooling.dense[0].residual);
  assert_true(f->pooling.dense[1].residual && !f->pooling.dense[1].tanh);
  assert_int_equal(stack_form_pooled(f), 5);
  const uint64_t all = m->parameters;
  model_free(m);
  /* Both of another size than what comes in. */
  whole_place_write(p, "2_Dense/config.json",
                    "{\"in_features\":32,\"out_features\":24,\"use_residual\":true,\"bias\":false,"
                    "\"activation_function\":\"torch.nn.modules.linear.Identity\"}");
  whole_place_write(p, "3_Dense/config.json",
                    "{\"in_features\":24,\"out_features\":5,\"use_residual\":true,\"bias\":false,"
                    "\"activation_function\":\"torch.nn.modules.linear.Identity\"}");
  add_dense_named(p, "2_Dense", 24, 32, false, true);
  add_dense_named(p, "3_Dense", 5, 24, false, true);
  m = whole_place_load(p, "");
  const struct whole_block *last = &m->whole->block[m->whole->blocks - 1];
  assert_string_equal(last->name, "encoder.dense");
  assert_int_equal(last->widths, 3);
  assert_true(last->width[0] == 32 && last->width[1] == 24 && last->width[2] == 5);
  assert_int_equal(last->token, 2 * (32 * 24 + 24 * 5));
  assert_int_equal(last->parameters, 2 * (32 * 24 + 24 * 5));
  model_free(m);
  whole_place_write(p, "modules.json", "[" MODEL "," POOL "]");
  m = whole_place_load(p, "");
  assert_int_equal(all - m->parameters, 32 * 32 + 32 + 2 * 5 * 32);
  model_free(m);
  write_modules(p,
                "[" MODEL "," POOL
                "," MODULE("2_Dense", "Dense") "," MODULE("3_Dense", "Dense") "]",
                "{\"pooling_mode_mean_tokens\":true}");
  whole_place_write(p, "2_Dense/config.json", same);
  whole_place_write(p, "3_Dense/config.json", with);
  add_dense_named(p, "2_Dense", 32, 32, true, false);
  add_dense_named(p, "3_Dense", 5, 32, false, false);
  whole_place_refused(p, "", "there is no tensor \"residual.weight\" of the dense layer");
  snprintf(with, sizeof with, other, ",\"module_input_name\":\"token_embeddings\"");
  whole_place_write(p, "3_Dense/config.json", with);
  whole_place_refused(p, "",
                      "module 3_Dense: module_input_name: \"token_embeddings\" is not supported");
  whole_place_write(p, "3_Dense/config.json", "{\"use_residual\":1}");
  whole_place_refused(p, "", "module 3_Dense: ");
}

static void modules_are_refused(void **state) {
  const struct place *p = *state;
  static const char good[] = "{\"pooling_mode_mean_tokens\":true}";
  prepare(p);
  write_modules(p, "{}", good);
  char detail[200];
  snprintf(detail, sizeof detail, "model m: %s: modules.json: is not a list", p->folder);
  whole_place_refused(p, "", detail);
  write_modules(p, "[]", good);
  whole_place_refused(p, "", "modules.json: has no modules");
  write_modules(p, "[" MODEL "," MODULE("3_Normalize", "Normalize") "]", good);
  whole_place_refused(p, "",
                      "modules.json: Normalize without a Pooling "
                      "before it is not supported");
  write_modules(p, "[" MODEL "," MODULE("2_Dense", "Dense") "]", good);
  whole_place_refused(p, "", "module 2_Dense: "); /* of token embeddings: it has no folder */
  write_modules(p, "[" MODEL "," POOL "," MODULE("2_Mask", "MultiVectorMask") "]", good);
  whole_place_refused(p, "", "modules.json: MultiVectorMask after a Pooling is not supported");
  write_modules(p, "[" POOL "]", good);
  whole_place_refused(p, "", "sentence_transformers.models.Pooling is not supported here");
  write_modules(p, "[" MODEL "," POOL "," POOL "]", good);
  whole_place_refused(p, "", "sentence_transformers.models.Pooling is not supported here");
  write_modules(p, "[" MODEL "," POOL "," MODULE("2_LSTM", "LSTM") "]", good);
  whole_place_refused(p, "", "the module \"sentence_transformers.models.LSTM\" is not supported");
  write_modules(p, "[{\"path\":\"\",\"type\":\"own.Transformer\"}]", good);
  whole_place_refused(p, "", "the module \"own.Transformer\" is not supported");
  write_modules(p, "[" MODEL ",{\"path\":\"1_Pooling\"}]", good);
  whole_place_refused(p, "", "modules.json: needs a type and a path for each module");
  write_modules(p, "[" MODEL "," MODULE("../x", "Pooling") "]", good);
  whole_place_refused(p, "", "modules.json: the path \"../x\" does not lie within the folder");
  write_modules(p, "[" MODEL "," POOL "]", "{\"pooling_mode_median_tokens\":true}");
  whole_place_refused(p, "", "module 1_Pooling: pooling_mode_median_tokens is not supported");
  write_modules(p, "[" MODEL "," POOL "]",
                "{\"pooling_mode_cls_token\":true,\"pooling_mode_mean_tokens\":true}");
  whole_place_refused(p, "", "several modes together are not supported");
  write_modules(p, "[" MODEL "," POOL "]", "{\"pooling_mode\":\"median\"}");
  whole_place_refused(p, "", "module 1_Pooling: pooling_mode is not supported");
  write_modules(p, "[" MODEL "," POOL "]", "{}");
  whole_place_refused(p, "", "module 1_Pooling: contains no mode");
  write_modules(p, "[" MODEL "," POOL "]",
                "{\"pooling_mode_cls_token\":true,\"word_embedding_dimension\":31}");
  whole_place_refused(p, "", "word_embedding_dimension: 31 for the pooling");
  write_modules(p, "[" MODEL "," POOL "]",
                "{\"pooling_mode_cls_token\":true,\"word_embedding_dimension\":-32}");
  whole_place_refused(p, "", "module 1_Pooling: word_embedding_dimension: needs a size");
  write_modules(p, "[" MODEL "," POOL "]",
                "{\"pooling_mode_cls_token\":true,\"word_embedding_dimension\":\"x\"}");
  whole_place_refused(p, "", "module 1_Pooling: word_embedding_dimension: needs a size");
  write_modules(p, "[" MODEL "," POOL "]", NULL);
  whole_place_refused(p, "", "module 1_Pooling: ");
}

/* A link to nothing is no file that is absent: what it would have said counts. */
static void links_to_nothing_are_refused(void **state) {
  static const char *const names[] = {"config.json", "generation_config.json", "modules.json"};
  const struct place *p = *state;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char path[200];
    prepare(p);
    whole_place_write(p, "modules.json", NULL);
    whole_place_write(p, names[i], NULL);
    snprintf(path, sizeof path, "%s/%s", p->folder, names[i]);
    assert_int_equal(symlink("nothing", path), 0);
    whole_place_refused(p, "", "No such file or directory");
    assert_int_equal(unlink(path), 0);
  }
}

static void the_model_may_lie_in_a_folder_of_its_own(void **state) {
  const struct place *p = *state;
  struct place inner = *p;
  write_modules(p, "[" MODULE("0_Transformer", "Transformer") "," POOL "]",
                "{\"pooling_mode_max_tokens\":true}");
  snprintf(inner.folder, sizeof inner.folder, "%.40s/0_Transformer", p->folder);
  snprintf(inner.file, sizeof inner.file, "%.60s/model.safetensors", inner.folder);
  whole_place_config(&inner, "bert-a", "{}");
  whole_place_tensors(&inner, "bert-a", NULL);
  struct model *m = whole_place_load(p, "");
  assert_int_equal(m->whole->pool, STACK_POOL_MAX);
  model_free(m);
}

static void pickles_outside_an_archive_are_refused(void **state) {
  const struct place *p = *state;
  char path[200];
  whole_place_config(p, "bert-a", "{}");
  whole_place_path(p, "pytorch_model.bin", path);
  FILE *out = fopen(path, "wb");
  assert_non_null(out);
  assert_true(fwrite("\x80\x02}q\x00.......", 1, 12, out) == 12 && fclose(out) == 0);
  whole_place_refused(p, "", "is a pickle outside a zip archive");
  unlink(path);
}

/* --- drawn models --- */

#define DRAWN                                                                        \
  "{\"transformer\":{\"random\":{\"seed\":5}},\"layers\":2,\"width\":8,\"heads\":2," \
  "\"feed_forward\":6,\"vocabulary\":9"

static void drawn_numbers_are_those_of_the_formula(void **unused) {
  (void)unused;
  struct whole_read m;
  float weight[9 * 8], bias[8], factor[8];
  whole_read(&m, json_of(DRAWN ",\"kind\":\"encoder\"}"), ".");
  random_weight(5, 64 * 2 + WHOLE_KEY, 8, 8, weight);
  random_bias(5, 64 * 2 + WHOLE_KEY, 8, bias);
  assert_memory_equal(m.form.layer[1].self[ROLE_KEY].weight, weight, 8 * 8 * sizeof *weight);
  assert_memory_equal(m.form.layer[1].self[ROLE_KEY].bias, bias, sizeof bias);
  random_bias(5, 64 + WHOLE_NORM_SELF + 32, 8, factor);
  assert_true(m.form.layer[0].norm_self.factor[3] == factor[3] + 1);
  random_weight(5, 9, 9, 8, weight); /* as long as random models have been there */
  assert_true(m.form.embedding.token[7] == weight[7]);
  assert_null(m.form.last.factor);
  assert_int_equal(m.form.embedding.positions, POSITIONS_INTERLEAVED);
  whole_read_free(&m);
}

static void drawn_models_have_what_is_said(void **unused) {
  (void)unused;
  struct model *m = load_well(DRAWN ",\"kind\":\"seq2seq\",\"norm\":\"pre\",\"norm_kind\":\"rms\","
                                    "\"gated\":true,\"activation\":\"silu\",\"kv_heads\":1,"
                                    "\"positions\":\"rotary\",\"head_size\":6}",
                              ".");
  const struct stack_form *f = stack_form(whole_reader(m->whole));
  assert_int_equal(m->kind, MODEL_SEQ2SEQ);
  assert_string_equal(m->source, "random");
  assert_int_equal(m->whole->token.begin, 1);
  assert_int_equal(m->whole->token.end[0], 2);
  assert_int_equal(m->whole->token.pad, 0);
  assert_int_equal(f->kind->self.kv_heads, 1);
  assert_int_equal(f->kind->self.head_size, 6);
  assert_true(f->kind->self.rope_base == 10000 && f->norm == NORM_RMS && f->place == NORM_PRE);
  model_free(m);
  m = load_well(DRAWN ",\"kind\":\"encoder\",\"positions\":\"learned\",\"max_positions\":5}", ".");
  assert_int_equal(m->whole->positions, 5);
  model_free(m);
  m = load_well(DRAWN ",\"kind\":\"encoder\",\"positions\":\"relative\"}", ".");
  assert_int_equal(m->whole->part[1].model.shape.relative_buckets, 32);
  model_free(m);
  m = load_well(DRAWN ",\"kind\":\"encoder\",\"positions\":\"alibi\"}", ".");
  assert_true(m->whole->part[1].model.shape.alibi);
  assert_int_equal(m->whole->part[1].model.shape.relative_buckets, 0);
  assert_int_equal(stack_form(whole_reader(m->whole))->embedding.positions, POSITIONS_NONE);
  model_free(m);
  m = load_well(DRAWN ",\"kind\":\"encoder\",\"positions\":[\"sinusoid\",\"rotary\"]}", ".");
  f = stack_form(whole_reader(m->whole));
  assert_int_equal(f->embedding.positions, POSITIONS_INTERLEAVED);
  assert_true(f->kind->self.rope_base == 10000);
  model_free(m);
}

/* A voyage model has a dense layer among its own tensors: it is that of a Dense module. */
static void a_dense_layer_may_be_the_model_s_own(void **state) {
  const struct place *p = *state;
  struct whole_edit edit = {.add = "linear.weight", .rows = 40, .columns = 24};
  static const int32_t tokens[3] = {5, 7, 9};
  whole_place_tensors(p, "qwen3-bidirectional", &edit);
  whole_place_config(p, "qwen3-bidirectional",
                     "{\"is_causal\":\"-\",\"use_bidirectional_attention\":true}");
  struct whole_read made;
  whole_read(&made, json_pack("{s:s}", "transformer", p->folder), ".");
  const struct layer_matrix *own = &made.form.pooling.dense[0].matrix;
  assert_int_equal(stack_form_pooled(&made.form), 40);
  assert_non_null(own->weight);
  assert_null(own->bias);
  assert_int_equal(made.plan.aside, 0);
  double state_of[3 * 3 * 24], outputs[3 * 24], vector[40];
  struct error e = {0};
  const struct ref_text text = {.n = 3, .token = tokens};
  stack_ref(&made.form, &text, &(struct ref_hidden){.state = state_of, .outputs = outputs}, &e);
  stack_ref_pool(&made.form,
                 &(struct ref_pooling){.vectors = STACK_VECTORS_MEAN, .after = STACK_AFTER_DENSE},
                 3, outputs, vector, &e);
  for (size_t i = 0; i < 40; i++) { /* the mean of what the matrix makes of each row */
    double right = 0;
    for (size_t n = 0; n < 3 * 24; n++) right += own->weight[i * 24 + n % 24] * outputs[n] / 3;
    assert_true(fabs(vector[i] - right) < 1e-9);
  }
  whole_read_free(&made);
  struct model *m = whole_place_load(p, ",\"pool\":\"mean\"");
  assert_int_equal(m->kind, MODEL_ENCODER);
  model_free(m);
  edit.columns = 23;
  whole_place_tensors(p, "qwen3-bidirectional", &edit);
  whole_place_refused(p, "", "tensor \"linear.weight\" has 40 times 23 numbers here");
  whole_place_tensors(p, "qwen2-a", &(struct whole_edit){.add = "linear.weight", .rows = 3});
  whole_place_config(p, "qwen2-a", "{}");
  m = whole_place_load(p, "");
  assert_int_equal(m->whole->aside, 1); /* a decoder has no such layer */
  model_free(m);
}

/* The digest is that of nn.Transformer's tensors, by name. */
static void drawn_models_are_the_same_everywhere(void **unused) {
  (void)unused;
  struct model *m = load_well(DRAWN ",\"kind\":\"encoder\"}", ".");
  struct whole_read made;
  char hex[DIGEST_TEXT_SIZE];
  unsigned char digest[DIGEST_SIZE];
  size_t parts = 0;
  struct digest_part part[64];
  whole_read(&made, json_of(DRAWN ",\"kind\":\"encoder\"}"), ".");
  part[parts++] = (struct digest_part){made.form.embedding.token, 4 * 9 * 8};
  for (size_t i = 0; i < 2; i++) {
    const struct stack_layer *l = &made.form.layer[i];
    const struct stack_norm *norm[] = {&l->norm_self, &l->norm_forward};
    part[parts++] = (struct digest_part){l->forward.up.bias, 4 * 6};
    part[parts++] = (struct digest_part){l->forward.up.weight, 4 * 6 * 8};
    part[parts++] = (struct digest_part){l->forward.down.bias, 4 * 8};
    part[parts++] = (struct digest_part){l->forward.down.weight, 4 * 6 * 8};
    for (size_t n = 0; n < 2; n++) {
      part[parts++] = (struct digest_part){norm[n]->shift, 4 * 8};
      part[parts++] = (struct digest_part){norm[n]->factor, 4 * 8};
    }
    for (size_t r = 0; r < 3; r++) part[parts++] = (struct digest_part){l->self[r].bias, 4 * 8};
    for (size_t r = 0; r < 3; r++) part[parts++] = (struct digest_part){l->self[r].weight, 4 * 64};
    part[parts++] = (struct digest_part){l->self[ROLE_OUTPUT].bias, 4 * 8};
    part[parts++] = (struct digest_part){l->self[ROLE_OUTPUT].weight, 4 * 64};
  }
  digest_parts(part, parts, digest);
  digest_hex(digest, hex);
  assert_string_equal(m->digest, hex);
  size_t bytes = 0;
  for (size_t i = 0; i < parts; i++) bytes += part[i].size;
  assert_int_equal(m->parameters, bytes / 4);
  model_free(m);
  whole_read_free(&made);
}

int main(void) {
#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, whole_place_enter, whole_place_leave)
  const struct CMUnitTest tests[] = {
      IN_PLACE(pooling_tells_the_pool),
      IN_PLACE(what_follows_the_pooling),
      IN_PLACE(a_transformer_may_stand_alone),
      IN_PLACE(dense_layers_may_be_two),
      IN_PLACE(modules_are_refused),
      IN_PLACE(links_to_nothing_are_refused),
      IN_PLACE(the_model_may_lie_in_a_folder_of_its_own),
      IN_PLACE(pickles_outside_an_archive_are_refused),
      IN_PLACE(a_dense_layer_may_be_the_model_s_own),
      cmocka_unit_test(drawn_numbers_are_those_of_the_formula),
      cmocka_unit_test(drawn_models_have_what_is_said),
      cmocka_unit_test(drawn_models_are_the_same_everywhere),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
