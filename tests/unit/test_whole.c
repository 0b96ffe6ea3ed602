/* test_whole: whole models as they are loaded: what they are, what they answer, which numbers they
 * have. The golden models lie in tests/golden/models. */
#include <math.h>

#include "config/model/registry.h"
#include "tests/support/blas_start.h"
#include "tests/support/whole_place.h"
#include "tests/support/whole_read.h"

/* --- golden models --- */

struct golden {
  const char *folder, *family;
  enum model_kind kind;
  size_t layers, heads, vocabulary, types, positions;
  int64_t begin, end, pad, forced_end;
};

static const struct golden golden[] = {
    {"bert-a", "bert", MODEL_ENCODER, 3, 4, 80, 2, 32, -1, -1, 0, -1},
    {"bert-b", "bert", MODEL_ENCODER, 2, 3, 64, 3, 24, -1, -1, 0, -1},
    {"roberta-b", "bert", MODEL_ENCODER, 3, 3, 70, 1, 16, 0, 2, 1, -1},
    {"distilbert-b", "distilbert", MODEL_ENCODER, 2, 3, 60, 0, 16, -1, -1, 0, -1},
    {"bert-mlm", "bert", MODEL_ENCODER, 2, 3, 54, 2, 32, -1, -1, 0, -1},
    {"roberta-mlm", "bert", MODEL_ENCODER, 2, 3, 54, 1, 32, 0, 2, 1, -1},
    {"xlm-roberta-mlm", "bert", MODEL_ENCODER, 2, 3, 54, 1, 32, 0, 2, 1, -1},
    {"distilbert-mlm", "distilbert", MODEL_ENCODER, 2, 3, 54, 0, 32, -1, -1, 0, -1},
    {"t5-b", "t5", MODEL_SEQ2SEQ, 3, 3, 80, 0, 0, 0, 1, 0, -1},
    {"t5-v11", "t5", MODEL_SEQ2SEQ, 2, 4, 90, 0, 0, 0, 1, 0, -1},
    {"bart-b", "bart", MODEL_SEQ2SEQ, 2, 3, 70, 0, 40, 2, 2, 1, -1},
    {"marian-a", "marian", MODEL_SEQ2SEQ, 2, 4, 100, 0, 0, 99, 0, 99, -1},
    {"d2l-a", "d2l", MODEL_SEQ2SEQ, 2, 4, 70, 0, 0, 1, 2, 0, -1},
    {"torch-post", "plain", MODEL_SEQ2SEQ, 2, 4, 80, 0, 0, 1, 2, 0, -1},
    {"bart-a", "bart", MODEL_SEQ2SEQ, 2, 4, 90, 0, 40, 2, 2, 1, 2},
    {"marian-b", "marian", MODEL_SEQ2SEQ, 3, 3, 80, 0, 40, 79, 0, 79, 0},
    {"t5-a", "t5", MODEL_SEQ2SEQ, 2, 4, 100, 0, 0, 0, 1, 0, -1},
    {"torch-pre", "plain", MODEL_SEQ2SEQ, 3, 3, 64, 0, 0, 1, 2, 0, -1},
    {"torch-encoder-a", "plain", MODEL_ENCODER, 2, 4, 0, 0, 0, -1, -1, -1, -1},
    {"torch-encoder-b", "plain", MODEL_ENCODER, 3, 3, 0, 0, 0, -1, -1, -1, -1},
    {"vit-a", "vit", MODEL_ENCODER, 2, 4, 0, 0, 0, -1, -1, -1, -1},
    {"gpt2-a", "gpt2", MODEL_DECODER, 3, 4, 96, 0, 40, 0, 0, -1, -1},
    {"gpt2-b", "gpt2", MODEL_DECODER, 2, 3, 72, 0, 32, 0, 0, -1, -1},
    {"llama-a", "llama", MODEL_DECODER, 3, 4, 96, 0, 32, 1, 2, 0, -1},
    {"llama-b", "llama", MODEL_DECODER, 2, 3, 72, 0, 32, 1, 2, 0, -1},
    {"qwen2-a", "llama", MODEL_DECODER, 2, 4, 88, 0, 32, 1, 2, -1, -1},
    {"qwen2-bidirectional", "llama", MODEL_ENCODER, 2, 6, 60, 0, 64, 1, 2, 0, -1},
    {"qwen2-bidirectional-window", "llama", MODEL_ENCODER, 3, 6, 60, 0, 64, 1, 2, 0, -1},
    {"qwen3-bidirectional", "llama", MODEL_ENCODER, 2, 6, 60, 0, 64, 1, 2, 0, -1},
    {"llama-bidirectional", "llama", MODEL_ENCODER, 2, 6, 60, 0, 64, 1, 2, 0, -1},
    {"gemma2-a", "gemma2", MODEL_DECODER, 3, 3, 58, 0, 64, 2, 31, 0, -1},
    {"gemma3-a", "gemma3", MODEL_DECODER, 4, 3, 58, 0, 64, 2, 39, 0, -1},
    {"gemma3-b", "gemma3", MODEL_DECODER, 2, 3, 58, 0, 64, 2, 5, 0, -1},
    {"embeddinggemma-a", "gemma3", MODEL_ENCODER, 4, 3, 60, 0, 64, 2, 1, 0, -1},
    {"eurobert-a", "eurobert", MODEL_ENCODER, 2, 6, 60, 0, 64, 1, 2, 0, -1},
    {"mpnet-a", "mpnet", MODEL_ENCODER, 2, 3, 56, 0, 46, 0, 2, 1, -1},
    {"mpnet-cls", "mpnet", MODEL_ENCODER, 2, 3, 56, 0, 46, 0, 2, 1, -1},
    {"mpnet-mlm", "mpnet", MODEL_ENCODER, 2, 3, 56, 0, 46, 0, 2, 1, -1},
    {"eurobert-mlm", "eurobert", MODEL_ENCODER, 2, 6, 60, 0, 64, 1, 2, 0, -1},
    {"electra-a", "electra", MODEL_ENCODER, 2, 3, 54, 2, 32, -1, -1, 0, -1},
    {"albert-a", "albert", MODEL_ENCODER, 4, 3, 54, 2, 32, 2, 3, 0, -1},
    {"albert-inner", "albert", MODEL_ENCODER, 6, 3, 54, 2, 32, 2, 3, 0, -1},
    {"jina-bert-a", "jina_bert", MODEL_ENCODER, 2, 6, 40, 2, 8192, -1, -1, 0, -1},
    {"jina-bert-cls", "jina_bert", MODEL_ENCODER, 2, 4, 40, 2, 8192, -1, -1, 0, -1},
    {"deberta-v3-a", "deberta-v2", MODEL_ENCODER, 2, 3, 60, 0, 64, -1, -1, 0, -1},
    {"deberta-v3-cls", "deberta-v2", MODEL_ENCODER, 2, 3, 60, 0, 64, -1, -1, 0, -1},
    {"deberta-v2-c2p", "deberta-v2", MODEL_ENCODER, 2, 3, 60, 0, 64, -1, -1, 0, -1},
    {"deberta-v2-conv", "deberta-v2", MODEL_ENCODER, 2, 3, 60, 0, 64, -1, -1, 0, -1},
    {"deberta-v2-separate", "deberta-v2", MODEL_ENCODER, 2, 3, 60, 2, 64, -1, -1, 0, -1},
    {"clip-text-a", "clip_text", MODEL_ENCODER, 2, 3, 40, 0, 40, 0, 7, 1, -1},
    {"jina-v3-a", "jina_v3", MODEL_ENCODER, 2, 3, 54, 1, 64, 0, 2, 1, -1},
    {"modernbert-a", "modernbert", MODEL_ENCODER, 4, 3, 60, 0, 64, 1, 2, 3, -1},
    {"modernbert-b", "modernbert", MODEL_ENCODER, 4, 3, 60, 0, 64, 1, 2, 3, -1},
    {"modernbert-cls", "modernbert", MODEL_ENCODER, 4, 3, 60, 0, 64, 1, 2, 3, -1},
    {"modernbert-cls-mean", "modernbert", MODEL_ENCODER, 4, 3, 60, 0, 64, 1, 2, 3, -1},
    {"modernbert-mlm", "modernbert", MODEL_ENCODER, 4, 3, 60, 0, 64, 1, 2, 3, -1},
    {"nomic-a", "nomic_bert", MODEL_ENCODER, 2, 3, 56, 2, 64, -1, -1, 0, -1},
    {"nomic-ntk", "nomic_bert", MODEL_ENCODER, 2, 3, 56, 2, 64, -1, -1, 0, -1},
    {"gte-a", "gte", MODEL_ENCODER, 2, 3, 50, 2, 64, -1, -1, 0, -1},
    {"gte-cls", "gte", MODEL_ENCODER, 2, 3, 50, 1, 64, -1, -1, 0, -1},
    {"nomic-gelu", "nomic_bert", MODEL_ENCODER, 2, 3, 56, 1, 64, -1, -1, 0, -1},
    {"qwen2-window", "llama", MODEL_DECODER, 3, 3, 58, 0, 64, 1, 14, -1, -1},
};

static struct model *load_golden(const char *folder) {
  char definition[128];
  snprintf(definition, sizeof definition, "{\"transformer\":\"%s\"}", folder);
  return load_well(definition, "tests/golden/models");
}

static void compare(const json_t *right, const float **found) {
  if (json_is_array(right)) {
    for (size_t i = 0; i < json_array_size(right); i++) compare(json_array_get(right, i), found);
    return;
  }
  const double x = json_number_value(right);
  if (!(fabs((double)**found - x) <= 1e-4 + 1e-4 * fabs(x)))
    fail_msg("%.9g, not %.9g", (double)**found, x);
  ++*found;
}

static void fill(const json_t *rows, size_t width, float *out) {
  for (size_t i = 0; i < json_array_size(rows) * width; i++)
    out[i] = (float)json_number_value(json_array_get(json_array_get(rows, i / width), i % width));
}

static void fill_tokens(const json_t *list, int32_t *out) {
  for (size_t i = 0; i < json_array_size(list); i++)
    out[i] = (int32_t)json_integer_value(json_array_get(list, i));
}

/* Results that a check compares, besides the forms of pooling. */
enum { THE_LOGITS = STACK_POOLS, THE_CLASSES };

/* One item alone: the rows in this form of pooling, the logits of all tokens, or those of classes.
 */
static void check_item(const struct model *m, const json_t *one, size_t index, unsigned what,
                       const json_t *right) {
  enum { MOST = 64 * 64 };
  static float rows[MOST];
  static int32_t tokens[MOST], types[MOST];
  const struct stack *s = whole_reader(m->whole);
  const json_t *text = json_array_get(json_object_get(one, "tokens"), index);
  const json_t *states = json_array_get(json_object_get(one, "input_hidden_states"), index);
  const json_t *kinds = json_array_get(json_object_get(one, "token_types"), index);
  const size_t n = json_array_size(text ? text : states), width = stack_form(s)->width;
  struct error e = {0};
  struct arena a;
  arena_init(&a, NULL);
  struct item item = {.q = n, .k = n};
  void *scratch = arena_alloc(&a, stack_scratch_bytes(s), 1, &e);
  struct stack_run *r = stack_run_new(s, &a, &e);
  assert_true(n * width <= MOST);
  r->geometry.items = 1;
  r->geometry.item = &item;
  r->geometry.q_rows = r->geometry.k_rows = n;
  if (what < STACK_POOLS) stack_set_pool(r, (enum stack_pool)what);
  if (what == THE_CLASSES)
    r->vectors = stack_form(s)->classifier.vectors, r->after = STACK_AFTER_CLASSES;
  r->want_logits = what == THE_LOGITS;
  fill_tokens(text, tokens);
  fill_tokens(kinds, types);
  fill(states, width, rows);
  r->tokens = text ? tokens : NULL;
  r->types = kinds ? types : NULL;
  r->embeddings = states ? rows : NULL;
  assert_int_equal(stack_prepare(s, r, &a, &e), STATUS_OK);
  run_compute(&r->run, 1e7, scratch);
  assert_int_equal(run_fault(&r->run, &e), STATUS_OK);
  const float *found = r->want_logits ? r->logits : r->outputs;
  compare(right, &found);
  arena_free(&a);
}

static void check_answers(const struct model *m, const char *folder) {
  char path[128];
  size_t i;
  json_t *one;
  snprintf(path, sizeof path, "tests/golden/models/%s/cases.json", folder);
  json_t *cases = json_load_file(path, 0, NULL);
  assert_non_null(cases);
  json_array_foreach(cases, i, one) {
    const json_t *right = json_object_get(one, "expected");
    const json_t *rows = json_object_get(right, "last_hidden_state");
    const json_t *pooler = json_object_get(json_object_get(right, "pooled"), "pooler");
    const json_t *mean = json_object_get(json_object_get(right, "pooled"), "mean");
    for (size_t item = 0; item < json_array_size(rows); item++) {
      check_item(m, one, item, STACK_POOL_NONE, json_array_get(rows, item));
      check_item(m, one, item, STACK_POOL_MEAN, json_array_get(mean, item));
      if (pooler) check_item(m, one, item, STACK_POOL_POOLER, json_array_get(pooler, item));
    }
    const json_t *logits = json_object_get(right, "logits"); /* of all tokens, or of classes */
    const bool classes = strcmp(json_string_value(json_object_get(one, "kind")), "classify") == 0;
    for (size_t item = 0; item < json_array_size(logits); item++)
      check_item(m, one, item, classes ? THE_CLASSES : THE_LOGITS, json_array_get(logits, item));
  }
  json_decref(cases);
}

/* The decoder beside an encoder; returns how many attentions it has. */
static size_t check_decoder(const struct model *m) {
  const struct whole *w = m->whole;
  const size_t layers = stack_form(w->decoder)->layers, first = stack_form(w->encoder)->layers;
  char name[40];
  assert_true(whole_is_pair(w) && whole_can_generate(w));
  for (size_t i = 0; i < 2 * layers; i++) {
    const bool across = i >= layers;
    snprintf(name, sizeof name, "decoder.%zu.%s", i % layers, across ? "cross" : "self");
    const struct whole_part *part = whole_find_part(w, name);
    assert_ptr_equal(part, &w->part[first + i]);
    assert_ptr_equal(part->model.layer, stack_attention(w->decoder, i));
    assert_int_equal(part->model.causal, !across);
    assert_int_equal(part->model.shape.key_size, stack_form(w->encoder)->width);
  }
  return 2 * layers;
}

static void check_parts(const struct model *m, const struct golden *g) {
  char name[40];
  const struct whole *w = m->whole;
  const bool decodes = g->kind == MODEL_DECODER;
  assert_int_equal(w->parts - (g->kind == MODEL_SEQ2SEQ ? check_decoder(m) : 0), g->layers);
  for (size_t i = 0; i < g->layers; i++) {
    snprintf(name, sizeof name, "%s.%zu.self", decodes ? "decoder" : "encoder", i);
    const struct whole_part *part = whole_find_part(w, name);
    assert_ptr_equal(part, &w->part[i]);
    assert_ptr_equal(part->model.layer, stack_attention(whole_reader(w), i));
    assert_int_equal(part->model.kind, MODEL_ATTENTION);
    assert_int_equal(part->model.shape.heads, g->heads);
    assert_string_equal(part->model.digest, m->digest);
    assert_string_equal(part->model.layout, g->family);
    assert_int_equal(part->model.causal, decodes || strcmp(g->family, "clip_text") == 0);
  }
  assert_null(whole_find_part(w, "encoder.0.cross"));
}

static void golden_models_are_what_they_were(void **unused) {
  (void)unused;
  for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
    const struct golden *g = &golden[i];
    print_message("%s\n", g->folder);
    struct model *m = load_golden(g->folder);
    const struct whole *w = m->whole;
    assert_string_equal(w->family, g->family);
    assert_string_equal(m->layout, g->family);
    assert_string_equal(m->source, "model.safetensors");
    assert_int_equal(m->kind, g->kind);
    assert_int_equal(w->vocabulary, g->vocabulary);
    assert_int_equal(w->types, g->types);
    assert_int_equal(w->positions, g->positions);
    assert_int_equal(w->token.begin, g->begin);
    assert_int_equal(w->token.ends, g->end >= 0);
    if (g->end >= 0) assert_int_equal(w->token.end[0], g->end);
    assert_int_equal(w->token.pad, g->pad);
    assert_int_equal(w->token.forced_end, g->forced_end);
    assert_int_equal(w->token.forced_begin, -1);
    assert_int_equal(m->notes.count, 0);
    assert_null(m->layer);
    check_parts(m, g);
    check_answers(m, g->folder);
    model_free(m);
  }
}

/* Those of other programs, from the same files. */
static void digests_are_of_the_tensors_by_name(void **unused) {
  (void)unused;
  static const struct {
    const char *folder, *digest;
    uint64_t parameters;
  } of[] = {{"bert-b", "4386de2ae542a44062aca33e910b953dcf61e18ca5d26df1678d5c1ac72ba3cf", 17280},
            {"t5-b", "dea03f43b8486d33ab1595b3b68b9be16e36216e750304bc4ecb4394f35be80b", 59616},
            {"bart-b", "889dde631ffc516b3b2cc64a98e29d04c69e1e8d184cde71df377a7c81e8383b", 42622},
            {"vit-a", "67befa183033f2bca76f5d5286faebe6e0cfe9e3709c1f066e05f6dee506c022", 18208}};
  for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
    struct model *m = load_golden(of[i].folder);
    assert_string_equal(m->digest_name, "sha256");
    assert_string_equal(m->digest, of[i].digest);
    assert_int_equal(m->parameters, of[i].parameters);
    model_free(m);
  }
}

/* A whole model beside layers, one of them from a definition of all. */
static void a_registry_holds_both(void **unused) {
  (void)unused;
  struct error e = {0};
  struct config c = {.gemm = "auto",
                     .compute = "float32",
                     .default_model = "",
                     .directory = "tests/golden/models"};
  c.models = json_of("{\"whole\":{\"transformer\":\"bert-b\",\"layers\":2},"
                     "\"each\":{\"checkpoint\":\"bert-b\",\"layers\":\"all\"}}");
  struct registry *r = registry_load(&c, NULL, &e);
  json_decref(c.models);
  assert_string_equal(e.detail, "");
  assert_int_equal(registry_count(r), 3);
  const struct model *whole = registry_find(r, "whole"), *layer = registry_find(r, "each.1");
  assert_true(registry_scratch_bytes(r) >= stack_scratch_bytes(whole_reader(whole->whole)));
  assert_true(registry_scratch_bytes(r) >= layer_scratch_bytes(layer->layer));
  assert_memory_equal(&whole->whole->part[1].model.shape, &layer->shape, sizeof layer->shape);
  assert_int_equal(whole->whole->part[1].model.parameters, layer->parameters);
  assert_false(model_uses_nothing(whole));
  assert_string_equal(registry_default(r)->name, "each.0"); /* the first that is a layer */
  registry_free(r);
}

/* Only what is named, or all there is, makes a whole model the default. */
static void a_whole_model_may_be_the_default(void **unused) {
  (void)unused;
  struct error e = {0};
  struct config c = {.gemm = "auto",
                     .compute = "float32",
                     .default_model = "",
                     .directory = "tests/golden/models"};
  c.models = json_of("{\"a\":{\"transformer\":\"bert-b\"},\"b\":{\"transformer\":\"bert-b\"}}");
  struct registry *r = registry_load(&c, NULL, &e);
  assert_string_equal(registry_default(r)->name, "a");
  registry_free(r);
  c.default_model = "b";
  r = registry_load(&c, NULL, &e);
  json_decref(c.models);
  assert_string_equal(registry_default(r)->name, "b");
  registry_free(r);
}

static void what_will_be_read_is_measured(void **unused) {
  (void)unused;
  struct error e = {0};
  uint64_t bytes;
  json_t *definition = json_of("{\"transformer\":\"bert-b\"}");
  assert_int_equal(model_measure("m", definition, "tests/golden/models", &bytes, &e), STATUS_OK);
  assert_int_equal(bytes, 4 * 17280);
  assert_int_equal(model_measure("m", definition, "nowhere", &bytes, &e), STATUS_CONFIG);
  assert_memory_equal(e.detail, "model m: ", 9);
  json_decref(definition);
}

/* --- names that come and go --- */

/* Of these tensors the same model is made. */
static void is_the_same(const struct place *p, const char *folder, const struct whole_edit *edit) {
  whole_place_tensors(p, folder, edit);
  whole_place_config(p, folder, "{}");
  struct model *m = whole_place_load(p, "");
  check_answers(m, folder);
  model_free(m);
}

static void names_come_and_go(void **state) {
  const struct place *p = *state;
  is_the_same(p, "bert-b", &(struct whole_edit){.rename = "bert.", .to = ""});
  is_the_same(p, "bert-b", &(struct whole_edit){.rename = "bert.", .to = "a.model."});
  is_the_same(p, "bert-b", &(struct whole_edit){.add = "qa_outputs.weight", .rows = 2});
  is_the_same(p, "bert-a",
              &(struct whole_edit){.rename = "encoder.layer.1.output.LayerNorm.weight",
                                   .to = "encoder.layer.1.output.LayerNorm.gamma"});
  is_the_same(p, "bert-a",
              &(struct whole_edit){.rename = "encoder.layer.1.output.LayerNorm.bias",
                                   .to = "encoder.layer.1.output.LayerNorm.beta"});
  is_the_same(p, "d2l-a",
              &(struct whole_edit){.add = "encoder.pos_encoding.P", .rows = 9, .columns = 32});
  is_the_same(p, "bart-b", &(struct whole_edit){.rename = "model.", .to = ""});
  is_the_same(p, "bart-b",
              &(struct whole_edit){.rename = "model.shared", .to = "model.encoder.embed_tokens"});
  is_the_same(p, "bart-b", &(struct whole_edit){.add = "model.encoder.version", .rows = 1});
  is_the_same(p, "t5-b", &(struct whole_edit){.drop = "decoder."});
  is_the_same(p, "t5-v11", &(struct whole_edit){.rename = "shared", .to = "encoder.embed_tokens"});
  is_the_same(p, "gpt2-a",
              &(struct whole_edit){.add = "transformer.h.1.attn.masked_bias", .rows = 1});
  is_the_same(p, "gpt2-a", &(struct whole_edit){.rename = "transformer.", .to = ""});
  is_the_same(p, "llama-b", &(struct whole_edit){.rename = "model.", .to = ""});
  is_the_same(p, "llama-b",
              &(struct whole_edit){.add = "model.layers.1.self_attn.rotary_emb.inv_freq",
                                   .rows = 4});
  is_the_same(p, "torch-encoder-a",
              &(struct whole_edit){.rename = "layers.", .to = "encoder.layers."});
  is_the_same(p, "torch-encoder-a",
              &(struct whole_edit){.rename = "layers.", .to = "net.encoder.layers."});
  is_the_same(
      p, "torch-post",
      &(struct whole_edit){.within = "embedding.", .as = "encoder.embedding.", .both = true});
}

/* Models of one's own need no config.json. */
static void a_definition_alone_is_enough(void **state) {
  const struct place *p = *state;
  whole_place_tensors(p, "torch-encoder-b", NULL);
  struct model *m = whole_place_load(p, ",\"heads\":3,\"norm\":\"pre\",\"activation\":\"gelu\"");
  check_answers(m, "torch-encoder-b");
  model_free(m);
  whole_place_tensors(p, "d2l-a", NULL);
  m = whole_place_load(p, ",\"heads\":4");
  check_answers(m, "d2l-a");
  model_free(m);
  whole_place_refused(p, "", "heads: required: neither a tensor nor a config.json contains it");
}

static void what_is_left_aside_is_counted(void **unused) {
  (void)unused;
  struct model *m = load_golden("bert-b");
  assert_int_equal(m->whole->aside, 8);
  model_free(m);
}

static void the_kind_follows_the_tensors(void **state) {
  const struct place *p = *state;
  whole_place_tensors(p, "t5-b", &(struct whole_edit){.drop = "decoder."});
  whole_place_config(p, "t5-b", "{}");
  struct model *m = whole_place_load(p, "");
  assert_int_equal(m->kind, MODEL_ENCODER);
  model_free(m);
  whole_place_tensors(p, "t5-b", NULL);
  m = whole_place_load(p, ",\"kind\":\"encoder\"");
  assert_int_equal(m->kind, MODEL_ENCODER);
  model_free(m);
}

/* --- what is said --- */

static void noted(const struct place *p, const char *more, const char *note) {
  struct model *m = whole_place_load(p, more);
  if (m->notes.count != (note ? 1 : 0)) fail_msg("%s: %zu notes", more, m->notes.count);
  if (note && !strstr(m->notes.text[0], note))
    fail_msg("\"%s\" does not say \"%s\"", m->notes.text[0], note);
  model_free(m);
}

static void a_definition_goes_before_and_differences_are_told(void **state) {
  const struct place *p = *state;
  whole_place_tensors(p, "bert-a", NULL);
  whole_place_config(p, "bert-a", "{}");
  noted(p, ",\"heads\":4,\"norm_eps\":1e-12,\"activation\":\"gelu\",\"pool\":\"cls\"", NULL);
  noted(p, ",\"heads\":2", "config.json: num_attention_heads is 4, but here heads is 2");
  noted(p, ",\"activation\":\"relu\"",
        "config.json: hidden_act is \"gelu\", but here activation is \"relu\"");
  noted(p, ",\"encoder\":{\"heads\":2}",
        "config.json: num_attention_heads is 4, but here encoder: heads is 2");
  whole_place_config(p, "bert-a", "{\"layer_norm_eps\":\"-\",\"num_hidden_layers\":\"-\"}");
  noted(p, ",\"norm_eps\":1e-5", "the family's norm_eps is 1e-12, but here it is 1e-5");
  noted(p, ",\"layers\":3,\"encoder\":{\"layers\":2}", "2 of the 3 layers in the file are used");
  noted(p, ",\"max_positions\":9", "the table has 32 positions, but here max_positions is 9");
  struct model *m =
      whole_place_load(p, ",\"max_positions\":9,\"end\":[3,4],\"pad\":null,"
                          "\"pool\":\"pooler\",\"normalize\":true,\"weights\":\"float32\"");
  assert_int_equal(m->whole->positions, 9);
  assert_int_equal(m->whole->token.ends, 2);
  assert_int_equal(m->whole->token.end[1], 4);
  assert_int_equal(m->whole->token.pad, -1);
  assert_int_equal(m->whole->pool, STACK_POOL_POOLER);
  assert_true(m->whole->normalize);
  model_free(m);
}

/* A config.json of ours, too, may say it of the encoder alone; a definition goes before either. */
static void an_encoder_has_sizes_of_its_own(void **state) {
  const struct place *p = *state;
  whole_place_tensors(p, "torch-encoder-b", NULL);
  whole_place_config(p, "torch-encoder-b", "{\"heads\":2,\"encoder\":{\"heads\":3}}");
  struct model *m = whole_place_load(p, "");
  check_answers(m, "torch-encoder-b");
  model_free(m);
  noted(p, ",\"encoder\":{\"heads\":6}",
        "config.json: encoder: heads is 3, but here encoder: heads is 6");
  m = whole_place_load(p, ",\"heads\":4");
  assert_int_equal(m->notes.count, 2);
  assert_string_equal(m->notes.text[0], "config.json: heads is 2, but here heads is 4");
  assert_string_equal(m->notes.text[1], "config.json: encoder: heads is 3, but here heads is 4");
  model_free(m);
  whole_place_config(p, "torch-encoder-b", "{\"heads\":2,\"encoder\":{\"heads\":5}}");
  whole_place_refused(p, "", "config.json: encoder: heads: 5 do not match the 24 rows");
}

/* Marian's stacks may have a table each: the encoder's is meant then, whatever the others hold. */
static void tables_may_be_apart(void **state) {
  static const char own[] = "model.encoder.embed_tokens.weight";
  static const char apart[] = "{\"share_encoder_decoder_embeddings\":false}";
  const struct place *p = *state;
  whole_place_tensors(p, "marian-a",
                      &(struct whole_edit){.rename = "model.shared",
                                           .to = "model.encoder.embed_tokens",
                                           .add = "model.decoder.embed_tokens.weight",
                                           .rows = 100,
                                           .columns = 32});
  whole_place_config(p, "marian-a", apart);
  struct model *m = whole_place_load(p, "");
  check_answers(m, "marian-a");
  model_free(m);
  whole_place_config(p, "marian-a", "{}");
  whole_place_refused(p, "", "tensor \"model.decoder.embed_tokens.weight\" differs from");
  whole_place_tensors(p, "marian-a",
                      &(struct whole_edit){.rename = "model.shared",
                                           .to = "model.decoder.embed_tokens"});
  whole_place_config(p, "marian-a", apart);
  char detail[120];
  snprintf(detail, sizeof detail, "there is no tensor \"%s\"", own);
  whole_place_refused(p, "", detail);
  whole_place_tensors(p, "bart-b", NULL); /* whose type has no such key */
  whole_place_config(p, "bart-b", apart);
  m = whole_place_load(p, "");
  model_free(m);
}

static void missing_keys_are_the_librarys(void **state) {
  const struct place *p = *state;
  whole_place_tensors(p, "bart-b", NULL);
  whole_place_config(p, "bart-b",
                     "{\"forced_eos_token_id\":\"-\",\"decoder_start_token_id\":\"-\","
                     "\"eos_token_id\":null,\"encoder_layers\":\"-\",\"scale_embedding\":\"-\"}");
  struct model *m = whole_place_load(p, "");
  assert_int_equal(m->whole->token.begin, 0); /* bos_token_id */
  assert_int_equal(m->whole->token.forced_end, 2);
  assert_int_equal(m->whole->token.ends, 0); /* null is none */
  assert_int_equal(m->whole->parts, 8);
  assert_true(stack_form(whole_reader(m->whole))->embedding.scale == 1);
  model_free(m);
  whole_place_write(p, "generation_config.json",
                    "{\"decoder_start_token_id\":7,\"eos_token_id\":[8,9],\"pad_token_id\":3}");
  m = whole_place_load(p, "");
  assert_int_equal(m->whole->token.begin, 7);
  assert_int_equal(m->whole->token.ends, 2);
  assert_int_equal(m->whole->token.pad, 3);
  model_free(m);
  whole_place_config(p, "bart-b", "{\"encoder_attention_heads\":\"-\"}");
  whole_place_refused(p, "", "heads: 16 do not match the 24 rows of the query weights");
}

/* Rotary positions for longer texts: as Llama 3.1 says them, and the simple way. */
static void rotary_positions_may_be_stretched(void **state) {
  const struct place *p = *state;
  whole_place_tensors(p, "llama-b", NULL);
  whole_place_config(
      p, "llama-b",
      "{\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,"
      "\"high_freq_factor\":4,\"original_max_position_embeddings\":8192}}");
  struct model *m = whole_place_load(p, "");
  const struct layer_stretch *s = &stack_form(whole_reader(m->whole))->kind->self.rope_stretch;
  assert_true(s->factor == 8 && s->low == 1 && s->high == 4 && s->positions == 8192);
  model_free(m);
  whole_place_config(p, "llama-b", "{\"rope_scaling\":{\"type\":\"linear\",\"factor\":2.5}}");
  m = whole_place_load(p, "");
  s = &stack_form(whole_reader(m->whole))->kind->self.rope_stretch;
  assert_true(s->factor == 2.5 && s->positions == 0);
  model_free(m);
}

/* What generation_config.json says of generating, and what a definition says instead. */
static void a_file_says_how_to_go_on(void **state) {
  const struct place *p = *state;
  whole_place_tensors(p, "gpt2-a", NULL);
  whole_place_config(p, "gpt2-a", "{}");
  struct model *m = whole_place_load(p, "");
  assert_int_equal(m->whole->max_tokens, 64);
  assert_true(m->whole->choice.temperature == 0 && m->whole->choice.top_p == 1);
  assert_int_equal(m->whole->choice.ends, 1);
  assert_int_equal(m->whole->choice.end[0], 0);
  assert_int_equal(m->whole->choice.forced_end, -1);
  model_free(m);
  whole_place_write(p, "generation_config.json",
                    "{\"max_new_tokens\":7,\"min_new_tokens\":2,\"temperature\":0.7,\"top_k\":50,"
                    "\"top_p\":0.9,\"repetition_penalty\":1.2,\"no_repeat_ngram_size\":3,"
                    "\"suppress_tokens\":[5,6],\"bad_words_ids\":[[7],[8,9]],\"num_beams\":4,"
                    "\"eos_token_id\":[1,2,99999],\"forced_eos_token_id\":2}");
  m = whole_place_load(p, "");
  const struct stack_choice *c = &m->whole->choice;
  assert_int_equal(m->whole->max_tokens, 7);
  assert_true(c->temperature == 0 && c->top_k == 0 && c->top_p == 1); /* nothing is drawn */
  assert_true(c->repetition_penalty == 1.2 && c->no_repeat_ngram == 3 && c->min_tokens == 2);
  assert_int_equal(c->banned_count, 3);
  assert_true(c->banned[0] == 5 && c->banned[1] == 6 && c->banned[2] == 7);
  assert_int_equal(c->ends, 2); /* one is beyond the vocabulary */
  assert_int_equal(c->forced_end, 2);
  model_free(m);
  whole_place_write(p, "generation_config.json",
                    "{\"do_sample\":true,\"top_k\":50,\"max_new_tokens\":7,\"min_p\":0.25}");
  m = whole_place_load(p, ",\"generate\":{\"top_k\":3,\"presence_penalty\":0.5}");
  assert_true(m->whole->choice.temperature == 1 && m->whole->choice.min_p == 0.25);
  assert_true(m->whole->choice.presence_penalty == 0.5);
  assert_int_equal(m->whole->choice.top_k, 3);
  assert_int_equal(m->whole->max_tokens, 7);
  model_free(m);
}

/* A table that is stored counts before the one that would be computed; M2M100 has it, too. */
static void stored_positions_count(void **state) {
  const struct place *p = *state;
  whole_place_tensors(p, "marian-a",
                      &(struct whole_edit){.add = "model.encoder.embed_positions.weight",
                                           .rows = 40,
                                           .columns = 32});
  whole_place_config(p, "marian-a", "{}");
  struct model *m = whole_place_load(p, "");
  assert_int_equal(m->whole->positions, 40);
  assert_int_equal(stack_form(whole_reader(m->whole))->embedding.positions, POSITIONS_LEARNED);
  model_free(m);
  whole_place_config(p, "marian-a", "{\"max_position_embeddings\":41}");
  whole_place_refused(p, "", "41, but tensor");
}

static void add_torch_layer(struct made *m) {
  made_add(m, "layers.0.self_attn.in_proj_weight", 12, 4);
  made_add(m, "layers.0.self_attn.out_proj.weight", 4, 4);
  made_add(m, "layers.0.linear1.weight", 6, 4);
  made_add(m, "layers.0.linear2.weight", 4, 6);
  made_add(m, "layers.0.norm1.weight", 4, 0);
  made_add(m, "layers.0.norm2.weight", 4, 0);
}

/* Layers 0 and 1 of the first model are one group, 2 and 3 the other; layers 0, 2 and 4 of the
 * second one are the same. */
static void layers_may_share_parameters(void **state) {
  const struct place *p = *state;
  struct model *m = load_golden("albert-a");
  const struct whole_part *part = m->whole->part;
  uint64_t parameters = 0;
  assert_ptr_equal(part[0].model.layer, part[1].model.layer);
  assert_ptr_equal(part[2].model.layer, part[3].model.layer);
  assert_ptr_not_equal(part[1].model.layer, part[2].model.layer);
  for (size_t i = 0; i < m->whole->blocks; i++) parameters += m->whole->block[i].parameters;
  assert_int_equal(parameters, m->parameters);
  model_free(m);
  m = load_golden("albert-inner");
  part = m->whole->part;
  assert_ptr_equal(part[0].model.layer, part[4].model.layer);
  assert_ptr_equal(part[1].model.layer, part[3].model.layer);
  assert_ptr_not_equal(part[0].model.layer, part[1].model.layer);
  model_free(m);
  whole_place_tensors(p, "albert-inner", NULL);
  whole_place_config(p, "albert-inner", "{\"num_hidden_layers\":\"-\"}");
  m = whole_place_load(p, "");
  assert_int_equal(m->whole->parts, 24);
  const size_t bytes = stack_bytes(whole_reader(m->whole));
  model_free(m);
  m = whole_place_load(p, ",\"layers\":1");
  assert_int_equal(m->whole->parts, 2);
  assert_int_equal(stack_bytes(whole_reader(m->whole)), bytes);
  model_free(m);
}

/* Published folders: keys that change nothing, a table of positions that is not used, and of files
 * that transformers wrote the size of a head. */
static void published_debertas_are_taken(void **state) {
  const struct place *p = *state;
  whole_place_tensors(p, "deberta-v3-a",
                      &(struct whole_edit){.add = "embeddings.position_embeddings.weight",
                                           .rows = 64,
                                           .columns = 24});
  whole_place_config(p, "deberta-v3-a",
                     "{\"legacy\":true,\"attention_head_size\":8,\"conv_kernel_size\":0,"
                     "\"pos_att_type\":\"C2P | p2c\",\"max_relative_positions\":0}");
  struct model *m = whole_place_load(p, "");
  const struct layer_shape *s = &m->whole->part[0].model.shape;
  assert_true(s->position_keys && s->position_queries);
  assert_int_equal(s->position_span, 8);
  assert_int_equal(s->position_reach, 64);
  assert_int_equal(m->whole->aside, 1);
  check_answers(m, "deberta-v3-a");
  model_free(m);
}

/* A table of distances counts where nothing else is said; else it is left aside. */
static void stored_distances_count(void **state) {
  const struct place *p = *state;
  whole_place_tensors(
      p, "torch-encoder-b",
      &(struct whole_edit){.add = "relative_bias.weight", .rows = 32, .columns = 3});
  whole_place_config(p, "torch-encoder-b", "{\"positions\":\"-\"}");
  struct model *m = whole_place_load(p, "");
  assert_int_equal(m->whole->part[2].model.shape.relative_buckets, 32);
  assert_int_equal(m->whole->aside, 0);
  model_free(m);
  m = whole_place_load(p, ",\"positions\":\"none\"");
  assert_int_equal(m->whole->part[2].model.shape.relative_buckets, 0);
  assert_int_equal(m->whole->aside, 1);
  check_answers(m, "torch-encoder-b");
  model_free(m);
  struct made both = {0};
  add_torch_layer(&both);
  made_add(&both, "relative_bias.weight", 32, 2);
  made_add(&both, "positions.weight", 8, 4);
  write_made(p, &both);
  whole_place_write(p, "config.json", NULL);
  whole_place_refused(p, ",\"heads\":2",
                      "positions: required: the file has tables for learned and for relative ones");
  m = whole_place_load(p, ",\"heads\":2,\"positions\":[\"relative\",\"learned\"]");
  assert_int_equal(m->whole->part[0].model.shape.relative_buckets, 32);
  assert_int_equal(m->whole->positions, 8);
  assert_int_equal(m->whole->aside, 0);
  model_free(m);
}

/* The kin of BART differ in norms and positions alone. */
static void kin_of_bart(void **state) {
  const struct place *p = *state;
  static const struct {
    const char *type;
    enum norm_place place;
    enum positions positions;
    size_t first;
    const char *drop;
    bool last;
  } kin[] = {{"mbart", NORM_PRE, POSITIONS_LEARNED, 2, NULL, true},
             {"m2m_100", NORM_PRE, POSITIONS_HALVES_WIDE, 2, ".embed_positions", true},
             {"pegasus", NORM_PRE, POSITIONS_HALVES, 0, ".embed_positions", true},
             {"marian", NORM_POST, POSITIONS_HALVES, 0, ".embed_positions", false}};
  for (size_t i = 0; i < sizeof kin / sizeof *kin; i++) {
    char change[64], definition[512];
    struct whole_edit edit = {.drop = kin[i].drop,
                              .within = ".layernorm_embedding",
                              .as = kin[i].last ? ".layer_norm" : "_other",
                              .both = i == 0};
    whole_place_tensors(p, "bart-b", &edit);
    snprintf(change, sizeof change, "{\"model_type\":\"%s\"}", kin[i].type);
    whole_place_config(p, "bart-b", change);
    struct whole_read m;
    whole_place_definition(p, "", definition);
    whole_read(&m, json_of(definition), "/");
    assert_int_equal(m.form.place, kin[i].place);
    assert_int_equal(m.form.embedding.positions, kin[i].positions);
    assert_int_equal(m.form.embedding.first_position, kin[i].first);
    assert_int_equal(m.form.embedding.norm.factor != NULL, i == 0);
    assert_int_equal(m.form.last.factor != NULL, kin[i].last);
    const struct stack_form *decoder = &m.decoder;
    assert_string_equal(decoder->name, "decoder");
    assert_int_equal(decoder->place, kin[i].place);
    assert_int_equal(decoder->embedding.positions, kin[i].positions);
    assert_int_equal(decoder->embedding.first_position, kin[i].first);
    assert_int_equal(decoder->embedding.norm.factor != NULL, i == 0);
    assert_int_equal(decoder->last.factor != NULL, kin[i].last);
    assert_true(decoder->output.matrix.bias && decoder->output.tied);
    whole_read_free(&m);
  }
}

/* Encoders whose first layers' input a request brings. */
static void whisper(void **state) {
  const struct place *p = *state;
  whole_place_tensors(p, "bart-b",
                      &(struct whole_edit){.rename = "model.encoder.layernorm_embedding",
                                           .to = "model.encoder.layer_norm"});
  whole_place_config(p, "bart-b", "{\"model_type\":\"whisper\"}");
  struct model *m = whole_place_load(p, "");
  const struct stack_form *f = stack_form(whole_reader(m->whole));
  assert_string_equal(m->whole->family, "whisper");
  assert_int_equal(m->kind, MODEL_ENCODER); /* its decoder is not served */
  assert_int_equal(m->whole->vocabulary, 0);
  assert_int_equal(f->place, NORM_PRE);
  assert_false(f->last_aside);
  model_free(m);
}

static void add_matrix(struct made *m, const char *name, size_t rows, size_t columns) {
  add_named(m, rows, columns, "vision_model.%s.weight", name);
  add_named(m, rows, 0, "vision_model.%s.bias", name);
}

static void clip(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  for (size_t i = 0; i < 4; i++) {
    static const char *const names[] = {"q", "k", "v", "out"};
    char name[64];
    snprintf(name, sizeof name, "encoder.layers.0.self_attn.%s_proj", names[i]);
    add_matrix(&m, name, 4, 4);
  }
  add_matrix(&m, "encoder.layers.0.mlp.fc1", 6, 4);
  add_matrix(&m, "encoder.layers.0.mlp.fc2", 4, 6);
  add_matrix(&m, "encoder.layers.0.layer_norm1", 4, 0);
  add_matrix(&m, "encoder.layers.0.layer_norm2", 4, 0);
  add_matrix(&m, "post_layernorm", 4, 0);
  add_matrix(&m, "pre_layrnorm", 4, 0);
  made_add(&m, "text_model.encoder.layers.0.self_attn.q_proj.weight", 6, 6);
  write_made(p, &m);
  whole_place_write(p, "config.json",
                    "{\"model_type\":\"clip\",\"vision_config\":{\"num_attention_heads\":2,"
                    "\"hidden_size\":4,\"layer_norm_eps\":1e-3}}");
  struct model *model = whole_place_load(p, "");
  const struct stack_form *f = stack_form(model->whole->encoder);
  assert_string_equal(model->whole->family, "clip");
  assert_int_equal(f->kind->self.heads, 2);
  assert_int_equal(f->kind->activation, ACTIVATION_QUICK_GELU);
  assert_true(f->epsilon == 1e-3f && f->last_aside);
  model_free(model);
  whole_place_write(p, "config.json",
                    "{\"model_type\":\"clip\",\"vision_config\":{\"num_attention_heads\":2},"
                    "\"quantization_config\":{\"bits\":4}}");
  whole_place_refused(p, "", "config.json: quantization_config: has an unsupported value");
}

/* The embedding of a module whose member nn.TransformerEncoder is; its own last norm is not the
 * module's. */
static void a_table_may_lie_outside(void **state) {
  const struct place *p = *state;
  struct whole_read m;
  char definition[512];
  whole_place_tensors(p, "torch-encoder-a",
                      &(struct whole_edit){.rename = "layers.",
                                           .to = "net.layers.",
                                           .add = "embedding.weight",
                                           .rows = 9,
                                           .columns = 32});
  whole_place_config(p, "torch-encoder-a", "{\"positions\":\"-\"}");
  whole_place_definition(p, "", definition);
  whole_read(&m, json_of(definition), "/");
  assert_int_equal(m.form.embedding.tokens, 9);
  assert_int_equal(m.form.embedding.positions, POSITIONS_INTERLEAVED);
  assert_true(m.form.embedding.scale == sqrtf(32));
  whole_read_free(&m);
  whole_place_tensors(p, "torch-encoder-a",
                      &(struct whole_edit){.rename = "layers.",
                                           .to = "net.layers.",
                                           .add = "norm.weight",
                                           .rows = 32});
  whole_read(&m, json_of(definition), "/");
  assert_null(m.form.last.factor);
  assert_null(m.form.embedding.token);
  whole_read_free(&m);
}

int main(void) {
#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, whole_place_enter, whole_place_leave)
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(golden_models_are_what_they_were),
      cmocka_unit_test(digests_are_of_the_tensors_by_name),
      cmocka_unit_test(a_registry_holds_both),
      cmocka_unit_test(a_whole_model_may_be_the_default),
      cmocka_unit_test(what_will_be_read_is_measured),
      IN_PLACE(names_come_and_go),
      IN_PLACE(a_definition_alone_is_enough),
      cmocka_unit_test(what_is_left_aside_is_counted),
      IN_PLACE(the_kind_follows_the_tensors),
      IN_PLACE(a_definition_goes_before_and_differences_are_told),
      IN_PLACE(an_encoder_has_sizes_of_its_own),
      IN_PLACE(tables_may_be_apart),
      IN_PLACE(missing_keys_are_the_librarys),
      IN_PLACE(rotary_positions_may_be_stretched),
      IN_PLACE(a_file_says_how_to_go_on),
      IN_PLACE(stored_positions_count),
      IN_PLACE(layers_may_share_parameters),
      IN_PLACE(published_debertas_are_taken),
      IN_PLACE(stored_distances_count),
      IN_PLACE(kin_of_bart),
      IN_PLACE(whisper),
      IN_PLACE(clip),
      IN_PLACE(a_table_may_lie_outside),
  };
  return cmocka_run_group_tests(tests, blas_start, NULL);
}
