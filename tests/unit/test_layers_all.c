/* test_layers_all: one definition for all layers of a checkpoint, and which layers these are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/build/layer/layers_all.h"
#include "config/model/registry.h"
#include "tests/support/blas_start.h"
#include "tests/support/model_load.h"

static int enter(void **state) { return place_make(state, "w.safetensors"); }

static const char *const bert[] = {"self.query", "self.key", "self.value", "output.dense"};
static const char *const llama[] = {"q_proj", "k_proj", "v_proj", "o_proj"};
static const char *const whisper[] = {"q_proj", "k_proj", "v_proj", "out_proj"};

static void add_layer(struct made *m, const char *format, unsigned layer,
                      const char *const stems[4]) {
  char prefix[100];
  snprintf(prefix, sizeof prefix, format, layer);
  add_roles(m, prefix, stems, ".weight");
}

/* The layers that a stage of a pipeline holds, in the order in which they were written. */
static void write_bert(const struct place *p) {
  static const unsigned layers[] = {12, 3, 4};
  struct made m = {0};
  made_add(&m, "embeddings.weight", 3, 4);
  for (size_t i = 0; i < 3; i++) add_layer(&m, "encoder.layer.%u.attention.", layers[i], bert);
  write_made(p, &m);
}

static void expanded(const struct place *p, const char *models, const char *wanted) {
  struct error e = {0};
  json_t *json = json_of(models), *right = json_of(wanted);
  json_t *all = layers_all_expand(json, p->folder, &e);
  assert_string_equal(e.detail, "");
  char *text = json_dumps(all, JSON_COMPACT);
  if (!json_equal(all, right)) fail_msg("%s is not %s", text, wanted);
  free(text);
  json_decref(all);
  json_decref(json);
  json_decref(right);
}

static void refused(const struct place *p, const char *models, const char *detail) {
  struct error e = {0};
  json_t *json = json_of(models);
  assert_null(layers_all_expand(json, p->folder, &e));
  assert_int_equal(e.status, STATUS_CONFIG);
  if (!strstr(e.detail, detail)) fail_msg("\"%s\" does not say \"%s\"", e.detail, detail);
  assert_null(strchr(e.detail, '\n'));
  json_decref(json);
}

#define ALL       "\"checkpoint\":\"w.safetensors\",\"layers\":\"all\""
#define OF(layer) "{\"checkpoint\":\"w.safetensors\",\"layer\":" #layer ",\"heads\":2}"

static void each_layer_gets_a_definition(void **state) {
  const struct place *p = *state;
  write_bert(p);
  expanded(p, "{\"a\":{\"query_size\":4},\"b\":{" ALL ",\"heads\":2},\"b.5\":{\"heads\":1}}",
           "{\"a\":{\"query_size\":4},\"b.3\":" OF(3) ",\"b.4\":" OF(4) ",\"b.12\":" OF(
               12) ",\"b.5\":{\"heads\":1}}");
  struct error e = {0};
  json_t *json = json_of("{\"b\":{" ALL "}}");
  json_t *all = layers_all_expand(json, p->folder, &e);
  static const char *const order[] = {"b.3", "b.4", "b.12"};
  const char *name;
  json_t *one;
  size_t i = 0;
  json_object_foreach(all, name, one) assert_string_equal(name, order[i++]);
  assert_int_equal(i, 3);
  json_decref(all);
  json_decref(json);
}

static void what_has_no_layers_is_refused(void **state) {
  const struct place *p = *state;
  char models[300], name[97];
  write_bert(p);
  refused(p, "{\"b\":{" ALL "},\"b.4\":{}}", "model b: layers: there is another model b.4");
  memset(name, 'x', 95);
  name[95] = '\0';
  snprintf(models, sizeof models, "{\"%s\":{" ALL "}}", name);
  refused(p, models, "is too long for a model's name");
  refused(p, "{\"b\":{\"checkpoint\":\"none.npz\",\"layers\":\"all\"}}", "none.npz: No such file");
  refused(p, "{\"b\":{" ALL ",\"layer\":1}}", "model b: layers: cannot be combined with layer");
  refused(p, "{\"b\":{" ALL ",\"tensors\":{\"query\":\"q\"}}}", "tensors: cannot be combined with");
  refused(p, "{\"b\":{\"checkpoint\":\"w.safetensors\",\"layers\":3}}",
          "model b: layers: needs \"all\", which makes a model of each; \"layer\" is the number");
  refused(p, "{\"b\":{\"checkpoint\":\"w.safetensors\",\"layers\":\"*\"}}",
          "layers: needs \"all\"");
  refused(p, "{\"b\":{" RANDOM ",\"layers\":\"all\"}}", "layers: does not apply without a check");
  refused(p, "{\"b\":{" ALL ",\"layout\":\"plain\"}}", "model b: w.safetensors: layout: the names");
  refused(p, "{\"b\":{" ALL ",\"prefix\":\"x.\"}}",
          "model b: w.safetensors: prefix: no attention has");
  struct made m = {0};
  add_roles(&m, "", plain, ".weight");
  write_made(p, &m);
  refused(p, "{\"b\":{" ALL "}}",
          "model b: w.safetensors: layers: the attention here, at \"\", has no number");
}

static void of_several_stacks_one_is_named(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  for (unsigned i = 0; i < 2; i++) {
    add_layer(&m, "model.encoder.layers.%u.self_attn.", i, whisper);
    add_layer(&m, "model.decoder.layers.%u.self_attn.", i, whisper);
    add_layer(&m, "model.decoder.layers.%u.encoder_attn.", i, whisper);
  }
  write_made(p, &m);
  refused(p, "{\"b\":{" ALL "}}",
          "model b: w.safetensors: prefix: required: \"model.encoder.\" or \"model.decoder.\"");
#define IN(layer) \
  "{\"checkpoint\":\"w.safetensors\",\"prefix\":\"model.decoder.\",\"layer\":" #layer "}"
  expanded(p, "{\"b\":{" ALL ",\"prefix\":\"model.decoder.\"}}",
           "{\"b.0\":" IN(0) ",\"b.1\":" IN(1) "}");
}

/* The other keys count for each of the layers, and a mistake names the layer. */
static void the_registry_loads_each_layer(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  add_layer(&m, "model.layers.%u.self_attn.", 0, llama);
  add_layer(&m, "model.layers.%u.self_attn.", 1, llama);
  add_named(&m, 4, 4, "model.layers.2.self_attn.q_proj.weight");
  write_made(p, &m);
  struct config c = {
      .gemm = "auto", .compute = "float32", .default_model = "m.1", .directory = p->folder};
  struct error e = {0};
  c.models = json_of("{\"m\":{" ALL ",\"heads\":2,\"causal\":false}}");
  assert_null(registry_load(&c, NULL, &e));
  assert_non_null(strstr(e.detail, "model m.2: w.safetensors: has no tensor \"model.layers.2."));
  add_layer(&m, "model.layers.%u.self_attn.", 0, llama);
  add_layer(&m, "model.layers.%u.self_attn.", 1, llama);
  write_made(p, &m);
  e = (struct error){0};
  struct registry *r = registry_load(&c, NULL, &e);
  assert_string_equal(e.detail, "");
  assert_int_equal(registry_count(r), 2);
  assert_string_equal(registry_at(r, 0)->name, "m.0");
  assert_string_equal(registry_default(r)->name, "m.1");
  assert_string_equal(registry_default(r)->place, "model.layers.1.self_attn.");
  assert_false(registry_default(r)->causal);
  registry_free(r);
  c.default_model = "m.2";
  assert_null(registry_load(&c, NULL, &e));
  assert_string_equal(e.detail, "default_model: there is no model \"m.2\" (did you mean \"m.0\"?)");
  json_decref(c.models);
}

int main(void) {
#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, enter, place_remove)
  const struct CMUnitTest tests[] = {
      IN_PLACE(each_layer_gets_a_definition),
      IN_PLACE(what_has_no_layers_is_refused),
      IN_PLACE(of_several_stacks_one_is_named),
      IN_PLACE(the_registry_loads_each_layer),
  };
  return cmocka_run_group_tests(tests, blas_start, NULL);
}
