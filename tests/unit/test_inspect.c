/* test_inspect: what is printed about a checkpoint, what is guessed, and that every definition
 * loads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "config/inspect/inspect.h"
#include "config/inspect/inspect_name.h"
#include "tests/support/blas_start.h"
#include "tests/support/model_load.h"

static int enter(void **state) { return place_make(state, "w.safetensors"); }

/* What inspect printed. */
struct printed {
  char *out, *notes;
  struct error error;
};

static struct printed answer_to(const struct inspect_ask *asked) {
  struct printed p = {0};
  struct inspect_ask ask = *asked;
  size_t sizes[2];
  ask.named = ask.path;
  FILE *out = open_memstream(&p.out, &sizes[0]), *notes = open_memstream(&p.notes, &sizes[1]);
  assert_true(out && notes);
  inspect_file(&ask, out, notes, &p.error);
  fclose(out);
  fclose(notes);
  return p;
}

static struct printed inspect(const char *path, bool models_only) {
  return answer_to(&(struct inspect_ask){.path = path, .models_only = models_only});
}

static void printed_free(struct printed *p) {
  free(p->out);
  free(p->notes);
}

static void says(const char *text, const char *part) {
  if (!strstr(text, part)) fail_msg("\"%s\" does not say \"%s\"", text, part);
}

/* Checks that every definition that is printed loads; where its number of heads is not known, that
 * it is refused for the want of it. */
static json_t *models_of(const struct place *p, const char *notes) {
  struct printed printed = inspect(p->file, true);
  assert_string_equal(printed.error.detail, "");
  if (*notes) says(printed.notes, notes);
  if (!*notes) assert_string_equal(printed.notes, "");
  json_t *document = json_of(printed.out), *definition;
  json_t *models = json_incref(json_object_get(document, "models"));
  const char *name;
  json_object_foreach(models, name, definition) {
    struct error e = {0};
    struct model *m = model_load(name, definition, ".", GEMM_AUTO, COMPUTE_FLOAT32, &e);
    if (strstr(notes, "heads is unknown")) {
      says(e.detail, "heads: required with projection linear, and no config.json");
    } else {
      assert_string_equal(e.detail, "");
      assert_non_null(m);
    }
    model_free(m);
  }
  json_decref(document);
  printed_free(&printed);
  return models;
}

/* `wanted` is the definition without its checkpoint. */
static void is(const json_t *models, const char *name, const char *wanted) {
  json_t *definition = json_deep_copy(json_object_get(models, name)), *right = json_of(wanted);
  if (!definition) fail_msg("there is no model %s", name);
  json_object_del(definition, "checkpoint");
  char *text = json_dumps(definition, JSON_COMPACT);
  if (!json_equal(definition, right)) fail_msg("%s is %s, not %s", name, text, wanted);
  free(text);
  json_decref(definition);
  json_decref(right);
}

static void write_config(const struct place *p, const char *text) {
  char path[128];
  snprintf(path, sizeof path, "%s/config.json", p->folder);
  unlink(path);
  if (!text) return;
  FILE *out = fopen(path, "w");
  assert_non_null(out);
  assert_true(fputs(text, out) >= 0 && fclose(out) == 0);
}

/* With that config.json the only model is `name`, with the definition `wanted`. */
static void with_config(const struct place *p, const char *config, const char *name,
                        const char *wanted, const char *notes) {
  write_config(p, config);
  json_t *models = models_of(p, notes);
  is(models, name, wanted);
  json_decref(models);
  write_config(p, NULL);
}

static void add_projections(struct made *m, const char *prefix, size_t rows, size_t kv_rows,
                            const char *output) {
  add_named(m, rows, 6, "%sq_proj.weight", prefix);
  add_named(m, kv_rows, 6, "%sk_proj.weight", prefix);
  add_named(m, kv_rows, 6, "%sv_proj.weight", prefix);
  add_named(m, 6, rows, "%s%s.weight", prefix, output);
}

/* --- heads and other hints --- */

static void heads_are_told_or_guessed(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  add_projections(&m, "model.layers.3.self_attn.", 256, 128, "o_proj");
  write_made(p, &m);
#define PLACE "{\"layout\":\"llama\",\"layer\":3,"
  with_config(p, NULL, "w.layer3", PLACE "\"rope\":{\"base\":10000.0}}",
              "note: heads is unknown and left out: neither the file nor a config.json beside it "
              "contains it; look for num_heads or num_attention_heads where the file is from, and "
              "use --heads N (4 would be usual)\nnote: the base of rope is a guess");
  with_config(p, "{\"num_attention_heads\":8,\"num_key_value_heads\":4,\"rope_theta\":5e5}",
              "w.layer3", PLACE "\"heads\":8,\"kv_heads\":4,\"rope\":{\"base\":500000.0}}", "");
  with_config(p,
              "{\"text_config\":{\"num_attention_heads\":16,\"rope_parameters\":"
              "{\"rope_type\":\"default\",\"rope_theta\":5e5}},\"num_attention_heads\":2}",
              "w.layer3", PLACE "\"heads\":16,\"kv_heads\":8,\"rope\":{\"base\":500000.0}}", "");
  write_config(p, "{\"n_head\":3,\"rope_theta\":5e5}");
  struct printed printed = inspect(p->file, true);
  says(printed.notes, "w.layer3: config.json says 3 heads: heads: 3 do not divide the 256 columns");
  says(printed.notes, "heads is unknown and left out: config.json does not fit; look");
  assert_null(strstr(printed.notes, "no config.json beside it"));
  assert_null(strstr(printed.out, "heads"));
  printed_free(&printed);
  with_config(p, "{\"n_head\":\"8\",\"num_heads\":0,\"rope_theta\":5e5}", "w.layer3",
              PLACE "\"rope\":{\"base\":500000.0}}", "heads is unknown");
  with_config(p, "[1]", "w.layer3", PLACE "\"rope\":{\"base\":10000.0}}",
              "config.json: is not an object: it is ignored\nnote: heads is unknown");
  write_config(p, "{\"n_head\":");
  printed = inspect(p->file, true);
  says(printed.notes, "config.json, line 1, column");
  printed_free(&printed);
  write_config(p, NULL);
}

/* What is asked for counts for the layers whose checkpoint does not tell it. */
static void heads_may_be_said(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  add_projections(&m, "model.layers.3.self_attn.", 256, 128, "o_proj");
  add_roles(&m, "plain.", d2l, ".weight");
  for (size_t i = 0; i < 4; i++)
    add_named(&m, 12, 12, "encoder.block.0.layer.0.SelfAttention.%c.weight", "qkvo"[i]);
  made_add(&m, "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", 32, 3);
  write_made(p, &m);
  for (int told = 0; told < 2; told++) { /* it counts more than config.json */
    write_config(p, told ? "{\"num_attention_heads\":8,\"rope_theta\":1e4}" : NULL);
    struct printed printed =
        answer_to(&(struct inspect_ask){.path = p->file, .models_only = true, .heads = 4});
    assert_string_equal(printed.error.detail, "");
    json_t *document = json_of(printed.out), *models = json_object_get(document, "models");
    is(models, "w.layer3", PLACE "\"heads\":4,\"kv_heads\":2,\"rope\":{\"base\":10000.0}}");
    is(models, "w.plain", "{\"layout\":\"d2l\",\"heads\":4}");
    is(models, "w.encoder0", "{\"layout\":\"t5\",\"layer\":0,\"heads\":3}");
    assert_null(strstr(printed.notes, "heads is unknown"));
    json_decref(document);
    printed_free(&printed);
  }
  struct printed printed =
      answer_to(&(struct inspect_ask){.path = p->file, .models_only = true, .heads = 5});
  says(printed.notes, "note: the layer at \"plain.\" cannot be served: heads: 5 do not divide");
  printed_free(&printed);
  write_config(p, NULL);
}

/* The base comes from the frequencies in the file, unless config.json says one. */
static void frequencies_tell_the_base(void **state) {
  const struct place *p = *state;
  static const float numbers[] = {1, 0.04472136f}; /* of 500 */
  struct made m = {0};
  add_projections(&m, "layers.0.self_attn.", 16, 16, "o_proj");
  made_add_bytes(&m, "layers.0.self_attn.rotary_emb.inv_freq", "F32", "[2]", numbers,
                 sizeof numbers);
  write_made(p, &m);
  with_config(p, "{\"n_head\":4}", "w.layer0",
              "{\"layout\":\"llama\",\"heads\":4,\"layer\":0,\"rope\":{\"base\":500.0}}", "");
  with_config(p, NULL, "w.layer0", "{\"layout\":\"llama\",\"layer\":0,\"rope\":{\"base\":500.0}}",
              "heads is unknown");
  /* More of them than there are columns: whatever their number, an answer comes at once. */
  add_projections(&m, "layers.0.self_attn.", 16, 16, "o_proj");
  made_add_bytes(&m, "layers.0.self_attn.rotary_emb.inv_freq", "X1", "[9007199254740992]", "", 0);
  write_made(p, &m);
  struct printed printed = inspect(p->file, true);
  says(printed.notes, "rotary_emb.inv_freq\": does not have the 8 frequencies of heads of 16");
  printed_free(&printed);
}

static void what_config_says_and_a_definition_cannot_is_noted(void **state) {
  const struct place *p = *state;
  static const struct {
    const char *config, *key;
  } cases[] = {
      {"\"rope_scaling\":{\"rope_type\":\"llama3\"}", "rope_scaling"},
      {"\"rope_parameters\":{\"rope_type\":\"yarn\"}", "rope_parameters"},
      {"\"sliding_window\":4096", "sliding_window"},
      {"\"sliding_window\":4096,\"use_sliding_window\":true", "sliding_window"},
      {"\"partial_rotary_factor\":0.5", "partial_rotary_factor"},
      {"\"scale_attn_weights\":false", "scale_attn_weights"},
  };
  static const char *const harmless =
      "{\"n_head\":4,\"rope_theta\":1e4,\"rope_scaling\":null,\"sliding_window\":4096,"
      "\"use_sliding_window\":false,\"partial_rotary_factor\":1.0,\"rope_parameters\":{},"
      "\"attn_logit_softcapping\":null}";
#define DEFINITION \
  "{\"layout\":\"llama\",\"layer\":0,\"heads\":4,\"kv_heads\":2,\"rope\":{\"base\":10000.0}}"
  struct made m = {0};
  add_projections(&m, "model.layers.0.self_attn.", 16, 8, "o_proj");
  write_made(p, &m);
  with_config(p, harmless, "w.layer0", DEFINITION, "");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char config[256], note[128];
    snprintf(config, sizeof config, "{\"n_head\":4,\"rope_theta\":1e4,%s}", cases[i].config);
    snprintf(note, sizeof note, "note: config.json has %s, which is not applied", cases[i].key);
    with_config(p, config, "w.layer0", DEFINITION, note);
  }
}

static void towers_have_their_own_heads(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  add_projections(&m, "text_model.encoder.layers.0.self_attn.", 16, 16, "out_proj");
  add_projections(&m, "vision_model.encoder.layers.0.self_attn.", 16, 16, "out_proj");
  write_made(p, &m);
  write_config(p, "{\"model_type\":\"clip\",\"text_config\":{\"num_attention_heads\":2},"
                  "\"vision_config\":{\"num_attention_heads\":4}}");
  json_t *models = models_of(p, "");
  is(models, "w.text0",
     "{\"layout\":\"clip\",\"layer\":0,\"prefix\":\"text_model.encoder.\",\"heads\":2}");
  is(models, "w.vision0",
     "{\"layout\":\"clip\",\"layer\":0,\"prefix\":\"vision_model.encoder.\",\"heads\":4}");
  json_decref(models);
  write_config(p, "{\"model_type\":\"siglip\",\"text_config\":{\"num_attention_heads\":2},"
                  "\"vision_config\":{\"num_attention_heads\":4}}");
  models = models_of(p, "");
  is(models, "w.text0",
     "{\"layout\":\"clip\",\"layer\":0,\"prefix\":\"text_model.encoder.\",\"heads\":2,"
     "\"causal\":false}");
  json_decref(models);
  add_projections(&m, "model.encoder.layers.0.self_attn.", 16, 16, "out_proj");
  add_projections(&m, "model.decoder.layers.0.self_attn.", 16, 16, "out_proj");
  add_projections(&m, "model.decoder.layers.0.encoder_attn.", 16, 16, "out_proj");
  write_made(p, &m);
  write_config(p, "{\"encoder_attention_heads\":2,\"decoder_attention_heads\":4}");
  models = models_of(p, "");
  assert_int_equal(json_object_size(models), 3);
  is(models, "w.encoder0",
     "{\"layout\":\"whisper\",\"layer\":0,\"prefix\":\"model.encoder.\",\"heads\":2}");
  is(models, "w.decoder0",
     "{\"layout\":\"whisper\",\"layer\":0,\"prefix\":\"model.decoder.\",\"heads\":4}");
  is(models, "w.decoder0-cross",
     "{\"layout\":\"whisper\",\"prefix\":\"model.decoder.layers.0.encoder_attn.\",\"heads\":4}");
  json_decref(models);
  write_config(p, NULL);
}

/* A model of one's own speaks in the words of definitions. */
static void heads_may_be_told_in_the_words_of_definitions(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  add_named(&m, 16, 6, "decoder.blks.block0.attention1.W_q.weight");
  add_named(&m, 8, 6, "decoder.blks.block0.attention1.W_k.weight");
  add_named(&m, 8, 6, "decoder.blks.block0.attention1.W_v.weight");
  add_named(&m, 6, 16, "decoder.blks.block0.attention1.W_o.weight");
  write_made(p, &m);
#define BOOK "{\"layout\":\"d2l\",\"heads\":4,\"kv_heads\":2}"
#define OWN  "{\"model_type\":\"transformer\",\"kv_heads\":2,"
  with_config(p, OWN "\"heads\":4}", "w.decoder.blks.block0.attention1", BOOK, "");
  with_config(p, OWN "\"heads\":4,\"encoder\":{\"heads\":8},\"decoder\":{\"layers\":1}}",
              "w.decoder.blks.block0.attention1", BOOK, "");
}

static void config_tells_who_sees_what_and_which_model_it_is(void **state) {
  const struct place *p = *state;
  static const char *const bert[] = {"self.query", "self.key", "self.value", "output.dense"};
  struct made m = {0};
  add_roles(&m, "bert.encoder.layer.0.attention.", bert, ".weight");
  write_made(p, &m);
  with_config(p, "{\"num_attention_heads\":2,\"is_decoder\":true,\"model_type\":\"bert\"}",
              "w.layer0", "{\"layout\":\"bert\",\"layer\":0,\"heads\":2,\"causal\":true}", "");
  with_config(p, "{\"num_attention_heads\":2,\"model_type\":\"big_bird\"}", "w.layer0",
              "{\"layout\":\"bert\",\"layer\":0,\"heads\":2}",
              "fit config.json's model_type big_bird");
  with_config(p,
              "{\"text_config\":{\"num_attention_heads\":2},"
              "\"vision_config\":{\"num_attention_heads\":4}}",
              "w.layer0", "{\"layout\":\"bert\",\"layer\":0}",
              "heads is unknown and left out: neither the file nor a config.json beside it "
              "contains it; look for num_heads or num_attention_heads where the file is from, and "
              "use --heads N (1 would be usual)\nnote: config.json describes several models, and "
              "it is unknown which one has this layer");
}

static void tables_tell_heads_and_config_the_distance(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  for (size_t i = 0; i < 4; i++)
    add_named(&m, 12, 12, "encoder.block.0.layer.0.SelfAttention.%c.weight", "qkvo"[i]);
  made_add(&m, "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", 32, 3);
  write_made(p, &m);
  with_config(p, NULL, "w.encoder0", "{\"layout\":\"t5\",\"layer\":0,\"heads\":3}", "");
  with_config(p, "{\"relative_attention_max_distance\":64,\"num_heads\":4}", "w.encoder0",
              "{\"layout\":\"t5\",\"layer\":0,\"heads\":3,\"relative_bias\":"
              "{\"max_distance\":64,\"bidirectional\":true}}",
              "");
}

/* --- layers with other scores, and names --- */

static void scores_are_recognised_by_their_parameters(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  add_roles(&m, "", plain, ".weight");
  made_add(&m, "score.query", 3, 2);
  made_add(&m, "score.key", 3, 2);
  made_add(&m, "score.vector", 3, 0);
  write_made(p, &m);
  with_config(p, NULL, "w", "{\"layout\":\"plain\",\"score\":\"additive\",\"heads\":2}", "");
  add_roles(&m, "", plain, ".weight");
  made_add(&m, "score.weight", 2, 2);
  write_made(p, &m);
  with_config(p, NULL, "w", "{\"layout\":\"plain\",\"score\":\"bilinear\",\"heads\":2}", "");
  made_add(&m, "score.weight", 5, 4);
  write_made(p, &m);
  with_config(p, NULL, "w",
              "{\"layout\":\"plain\",\"score\":\"bilinear\",\"projection\":\"none\",\"heads\":1,"
              "\"value_size\":4}",
              "w: value_size is a guess");
  made_add(&m, "net.W_q.weight", 8, 20);
  made_add(&m, "net.W_k.weight", 8, 2);
  made_add(&m, "net.w_v.weight", 1, 8);
  write_made(p, &m);
  with_config(p, NULL, "w.net",
              "{\"layout\":\"d2l\",\"score\":\"additive\",\"projection\":\"none\",\"heads\":1,"
              "\"value_size\":20}",
              "w.net: value_size is a guess");
}

static void names_are_models_names_and_differ(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  add_roles(&m, "", d2l, ".weight");
  add_roles(&m, "a b.", d2l, ".weight");
  add_roles(&m, "a_b.", d2l, ".weight");
  add_roles(&m, "a-rather-long-name.that-goes-on-and-on.until-it-is-longer-than-a-models.", d2l,
            ".weight");
  write_made(p, &m);
  json_t *models = models_of(p, "heads is unknown");
  assert_int_equal(json_object_size(models), 4);
  is(models, "w", "{\"layout\":\"d2l\",\"prefix\":\"\"}");
  is(models, "w.a_b", "{\"layout\":\"d2l\",\"prefix\":\"a b.\"}");
  is(models, "w.a_b-2", "{\"layout\":\"d2l\",\"prefix\":\"a_b.\"}");
  json_decref(models);
}

/* --- paths --- */

static void paths_start_where_the_configuration_lies(void **state) {
  (void)state;
  static const struct {
    const char *checkpoint, *written, *wanted; /* "@": the current folder */
  } cases[] = {
      {"w.npz", "attend.json", "w.npz"},
      {"./w.npz", "./attend.json", "./w.npz"},
      {"/m/w.npz", "c/attend.json", "/m/w.npz"},
      {"c/w.npz", "c/attend.json", "w.npz"},
      {"c/d/w/", "./c//attend.json", "@/c/d/w/"},
      {"./c/d/w", "c/attend.json", "d/w"},
      {"w.npz", "c/attend.json", "@/w.npz"},
      {"../w.npz", "c/attend.json", "@/../w.npz"},
      {"cc/w.npz", "c/attend.json", "@/cc/w.npz"},
      {"./w.npz", "/c/attend.json", "@/w.npz"},
      {"c/", "c/attend.json", "@/c/"},
  };
  char here[512], wanted[600];
  assert_non_null(getcwd(here, sizeof here));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct error e = {0};
    const bool whole = cases[i].wanted[0] == '@';
    char *path = inspect_path_for(cases[i].checkpoint, cases[i].written, &e);
    snprintf(wanted, sizeof wanted, "%s%s", whole ? here : "", cases[i].wanted + whole);
    assert_string_equal(path, wanted);
    free(path);
  }
}

/* --- what cannot be served, and the whole text --- */

static void layers_that_cannot_be_served_are_named(void **state) {
  const struct place *p = *state;
  static const unsigned char nan[144] = {0, 0, 0xc0, 0x7f};
  struct made m = {0};
  add_projections(&m, "model.layers.0.self_attn.", 6, 6, "o_proj");
  add_projections(&m, "model.layers.1.self_attn.", 6, 6, "dense");
  for (size_t i = 0; i < 3; i++)
    add_named(&m, 6, 6, "model.layers.2.self_attn.%c_proj.weight", "qkv"[i]);
  made_add_bytes(&m, "model.layers.2.self_attn.o_proj.weight", "F32", "[6,6]", nan, sizeof nan);
  write_made(p, &m);
  write_config(p, "{\"n_head\":1,\"rope_theta\":1e4}");
  struct printed printed =
      answer_to(&(struct inspect_ask){.path = p->file, .models_only = true, .check = true});
  assert_string_equal(printed.error.detail, "");
  json_t *checked = json_of(printed.out);
  assert_int_equal(json_object_size(json_object_get(checked, "models")), 1);
  json_decref(checked);
  says(printed.notes, "note: the layer at \"model.layers.1.self_attn.\" cannot be served: has no "
                      "tensor \"model.layers.1.self_attn.o_proj.weight\" (did you mean");
  says(printed.notes, "note: the layer at \"model.layers.2.self_attn.\" cannot be served: tensor "
                      "\"model.layers.2.self_attn.o_proj.weight\" holds a number that is not fin");
  printed_free(&printed);
  printed = answer_to(&(struct inspect_ask){.path = p->file, .check = true});
  says(printed.out, "layout llama: 2 layers can be served\nnote: the layer at");
  says(printed.out, "\nchecked: w.layer0\nnote: the layer at \"model.layers.2.self_attn.\" cannot");
  printed_free(&printed);
  printed = inspect(p->file, true); /* what only its numbers tell is not known without them */
  says(printed.out, "\"w.layer2\"");
  assert_null(strstr(printed.notes, "not finite"));
  printed_free(&printed);
  write_config(p, NULL);
}

static void no_layer_may_be_left_after_the_check(void **state) {
  const struct place *p = *state;
  static const unsigned char nan[144] = {0, 0, 0xc0, 0x7f};
  struct made m = {0};
  for (size_t i = 0; i < 3; i++) add_named(&m, 6, 6, "W_%c.weight", "qkv"[i]);
  made_add_bytes(&m, "W_o.weight", "F32", "[6,6]", nan, sizeof nan);
  write_made(p, &m);
  struct printed printed =
      answer_to(&(struct inspect_ask){.path = p->file, .models_only = true, .check = true});
  says(printed.error.detail, "no layer of it is recognized");
  assert_string_equal(printed.out, "");
  printed_free(&printed);
  printed = answer_to(&(struct inspect_ask){.path = p->file, .check = true});
  assert_string_equal(printed.error.detail, "");
  says(printed.out, "no layer is recognized");
  printed_free(&printed);
}

static void a_file_without_layers_is_listed_but_no_configuration(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  made_add(&m, "embedding.\\u001b[31m.weight", 3, 2);
  made_add(&m, "\\u009b31m\\u202e\\u2067\\u2028\\u00e9\\ud83d\\ude00", 3, 2);
  made_add_bytes(&m, "ids", "I64", "[]", "12345678", 8);
  write_made(p, &m);
  struct printed printed = inspect(p->file, true);
  assert_int_equal(printed.error.status, STATUS_CONFIG);
  says(printed.error.detail, "w.safetensors: no layer of it is recognized; name the tensors");
  assert_string_equal(printed.out, "");
  printed_free(&printed);
  printed = inspect(p->file, false);
  assert_string_equal(printed.error.detail, "");
  says(printed.out, "w.safetensors: a safetensors file, 3 tensors\n\n");
  says(printed.out, "           ?31m???\xc3\xa9\xf0\x9f\x98\x80\n");
  says(printed.out, "  F32   [3, 2]           embedding.?[31m.weight\n");
  says(printed.out, "  I64   []               ids\n");
  says(printed.out, "no layer is recognized");
  printed_free(&printed);
}

/* A control character is escaped as JSON does; a visible character is printed as it is. */
static void a_prefix_reaches_the_terminal_as_text(void **state) {
  const struct place *p = *state;
  static const char *const prefixes[][2] = {{"\\u202e.", "\"\\u202E.\""},
                                            {"\\u00e9.", "\"\xc3\xa9.\""}};
  for (size_t i = 0; i < 2; i++) {
    struct made m = {0};
    add_roles(&m, "b.", d2l, ".weight");
    add_roles(&m, prefixes[i][0], d2l, ".weight");
    write_made(p, &m);
    struct printed printed = inspect(p->file, true);
    assert_string_equal(printed.error.detail, "");
    says(printed.out, prefixes[i][1]);
    assert_null(strstr(printed.out, "\xe2\x80\xae"));
    printed_free(&printed);
  }
}

static void the_text_ends_with_the_models(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  add_roles(&m, "", plain, ".weight");
  write_made(p, &m);
  struct printed text = inspect(p->file, false), models = inspect(p->file, true);
  assert_string_equal(text.error.detail, "");
  assert_string_equal(text.notes, "");
  says(text.out, "layout plain: 1 layer can be served\nnote: heads is unknown");
  says(text.out, models.out);
  printed_free(&text);
  printed_free(&models);
}

static void broken_files_are_refused_with_a_sentence(void **state) {
  const struct place *p = *state;
  struct made m;
  struct printed printed = inspect("/nowhere/w.safetensors", false);
  assert_int_equal(printed.error.status, STATUS_CONFIG);
  says(printed.error.detail, "/nowhere/w.safetensors: No such file");
  printed_free(&printed);
  made_raw(&m, "{\"a\":1}", 7, 0);
  made_write(&m, p->file);
  made_free(&m);
  printed = inspect(p->file, true);
  assert_int_equal(printed.error.status, STATUS_CONFIG);
  says(printed.error.detail, "tensor \"a\" is not described by");
  assert_string_equal(printed.out, "");
  printed_free(&printed);
}

int main(void) {
#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, enter, place_remove)
  const struct CMUnitTest tests[] = {
      IN_PLACE(heads_are_told_or_guessed),
      IN_PLACE(heads_may_be_said),
      IN_PLACE(frequencies_tell_the_base),
      IN_PLACE(what_config_says_and_a_definition_cannot_is_noted),
      IN_PLACE(towers_have_their_own_heads),
      IN_PLACE(heads_may_be_told_in_the_words_of_definitions),
      IN_PLACE(config_tells_who_sees_what_and_which_model_it_is),
      IN_PLACE(tables_tell_heads_and_config_the_distance),
      IN_PLACE(scores_are_recognised_by_their_parameters),
      IN_PLACE(names_are_models_names_and_differ),
      cmocka_unit_test(paths_start_where_the_configuration_lies),
      IN_PLACE(layers_that_cannot_be_served_are_named),
      IN_PLACE(no_layer_may_be_left_after_the_check),
      IN_PLACE(a_file_without_layers_is_listed_but_no_configuration),
      IN_PLACE(a_prefix_reaches_the_terminal_as_text),
      IN_PLACE(the_text_ends_with_the_models),
      IN_PLACE(broken_files_are_refused_with_a_sentence),
  };
  return cmocka_run_group_tests(tests, blas_start, NULL);
}
