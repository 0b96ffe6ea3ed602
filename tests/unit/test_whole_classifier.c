/* test_whole_classifier: encoders with a classifier: which tensors it is, how its classes are
 * called, and what is refused. */
#include "tests/support/whole_place.h"

#include <math.h>

#include "core/reference/stack_ref.h"
#include "tests/support/whole_read.h"

/* --- folders --- */

/* A golden model, and the layers of a classifier of it, whose names stand behind no prefix. */
struct head {
  const char *golden;
  struct whole_more more[WHOLE_MORE_MOST];
  bool pooler, relu;
};

static const struct head bert = {
    "bert-a", {{"classifier.weight", 3, 32}, {"classifier.bias", 3, 0}}, true, false};
static const struct head roberta = {"roberta-b",
                                    {{"classifier.dense.weight", 24, 24},
                                     {"classifier.dense.bias", 24, 0},
                                     {"classifier.out_proj.weight", 3, 24},
                                     {"classifier.out_proj.bias", 3, 0}},
                                    false,
                                    false};
static const struct head distilbert = {"distilbert-b",
                                       {{"pre_classifier.weight", 24, 24},
                                        {"pre_classifier.bias", 24, 0},
                                        {"classifier.weight", 3, 24},
                                        {"classifier.bias", 3, 0}},
                                       false,
                                       true};

/* Without the layer's part of this name; NULL: all are there. */
static void place_head(const struct place *p, const struct head *h, const char *without,
                       const char *change) {
  struct whole_edit edit = {0};
  size_t count = 0;
  for (size_t i = 0; i < WHOLE_MORE_MOST && h->more[i].name; i++)
    if (!without || strcmp(h->more[i].name, without) != 0) edit.more[count++] = h->more[i];
  whole_place_tensors(p, h->golden, &edit);
  whole_place_config(p, h->golden, change);
}

#define OF_ITEMS "\"architectures\":[\"XForSequenceClassification\"]"

/* --- the layers --- */

/* Two tokens through the model's classifier, and through its twin. */
static void check_scores(const struct model *m, const struct stack_form *form) {
  static const int32_t tokens[2] = {5, 7};
  const struct stack *s = whole_reader(m->whole);
  struct item item = {.q = 2, .k = 2};
  struct error e = {0};
  struct arena a;
  double scores[64];
  arena_init(&a, NULL);
  void *scratch = arena_alloc(&a, stack_scratch_bytes(s), 1, &e);
  struct stack_run *r = stack_run_new(s, &a, &e);
  r->geometry.items = 1, r->geometry.item = &item;
  r->geometry.q_rows = r->geometry.k_rows = 2;
  r->tokens = tokens;
  r->vectors = STACK_VECTORS_FIRST, r->after = STACK_AFTER_CLASSES;
  assert_int_equal(stack_prepare(s, r, &a, &e), STATUS_OK);
  run_compute(&r->run, 1e7, scratch);
  assert_int_equal(run_fault(&r->run, &e), STATUS_OK);
  const float *mask[8] = {NULL};
  const struct ref_text text = {.n = 2, .token = tokens, .head_mask = mask};
  const size_t d = form->width;
  const struct ref_hidden hidden = {.state = arena_alloc(&a, (form->layers + 1) * 2 * d,
                                                         sizeof(double), &e),
                                    .outputs = arena_alloc(&a, 2 * d, sizeof(double), &e)};
  assert_int_equal(stack_ref(form, &text, &hidden, &e), STATUS_OK);
  const struct ref_pooling how = {.vectors = STACK_VECTORS_FIRST, .after = STACK_AFTER_CLASSES};
  assert_int_equal(stack_ref_pool(form, &how, 2, hidden.outputs, scores, &e), STATUS_OK);
  assert_int_equal(r->output_size, form->classifier.count);
  for (size_t i = 0; i < r->output_size; i++)
    assert_true(fabs(scores[i] - r->outputs[i]) <= 1e-4 * (1 + fabs(scores[i])));
  arena_free(&a);
}

static void check_head(const struct place *p, const struct head *h) {
  char definition[512];
  struct whole_read read;
  place_head(p, h, NULL, "{" OF_ITEMS ",\"id2label\":{\"0\":\"no\",\"2\":\"yes\",\"1\":\"äh\"}}");
  struct model *m = whole_place_load(p, "");
  const struct stack_classifier *c = &stack_form(whole_reader(m->whole))->classifier;
  assert_int_equal(m->whole->classes, 3);
  assert_int_equal(c->count, 3);
  assert_true(c->pooler == h->pooler && c->vectors == STACK_VECTORS_FIRST);
  assert_true(h->relu ? !c->tanh && c->activation == ACTIVATION_RELU : c->tanh);
  assert_string_equal(m->whole->label[0], "no");
  assert_string_equal(m->whole->label[1], "äh");
  assert_string_equal(m->whole->label[2], "yes");
  assert_int_equal(m->whole->function, STACK_FUNCTION_SOFTMAX);
  assert_int_equal(m->notes.count, 0);
  whole_place_definition(p, "", definition);
  whole_read(&read, json_of(definition), "/");
  check_scores(m, &read.form);
  whole_read_free(&read);
  model_free(m);
}

static void every_family_has_its_layers(void **state) {
  check_head(*state, &bert);
  check_head(*state, &roberta);
  check_head(*state, &distilbert);
}

/* A model of one's own has the names of RoBERTa's, and says how classes are called. */
static void models_of_ones_own_have_one(void **state) {
  const struct place *p = *state;
  static const struct head own = {"torch-encoder-b",
                                  {{"classifier.dense.weight", 24, 24},
                                   {"classifier.out_proj.weight", 2, 24},
                                   {"classifier.out_proj.bias", 2, 0}},
                                  false,
                                  false};
  place_head(p, &own, NULL, "{\"labels\":[\"a\",\"b\"],\"function\":\"none\"}");
  struct model *m = whole_place_load(p, "");
  assert_string_equal(m->whole->label[1], "b");
  assert_int_equal(m->whole->function, STACK_FUNCTION_NONE);
  model_free(m);
  m = whole_place_load(p, ",\"labels\":[\"c\",\"c\"],\"function\":\"sigmoid\",\"classes\":2");
  assert_string_equal(m->whole->label[1], "c");
  assert_int_equal(m->whole->function, STACK_FUNCTION_SIGMOID);
  assert_int_equal(m->notes.count, 2);
  assert_string_equal(m->notes.text[0],
                      "config.json: labels is [\"a\",\"b\"], but here labels is [\"c\",\"c\"]");
  model_free(m);
  place_head(p, &own, NULL, "{\"labels\":[\"a\"]}");
  whole_place_refused(p, "", "config.json: labels: 1 names of 2 classes");
}

/* --- what is left aside --- */

static void is_left(const struct place *p, const struct head *h, const char *without,
                    const char *change, const char *note) {
  place_head(p, h, without, change);
  struct model *m = whole_place_load(p, "");
  assert_int_equal(m->whole->classes, 0);
  assert_null(m->whole->label);
  assert_int_equal(m->notes.count, note ? 1 : 0);
  if (note) assert_string_equal(m->notes.text[0], note);
  model_free(m);
}

static void other_heads_are_left_aside(void **state) {
  const struct place *p = *state;
  static const char none[] = "config.json: architectures names a classifier, but there are no "
                             "tensors of one: /classify is not available";
  static const struct head bare = {"bert-a", {{0}}, false, false};
  static const char words[] = "{\"architectures\":[\"BertForNextSentencePrediction\"],"
                              "\"id2label\":{\"x\":3},\"problem_type\":5}";
  is_left(p, &bert, NULL, words, NULL);
  is_left(p, &roberta, NULL, words, NULL);
  is_left(p, &bare, NULL, "{\"architectures\":[\"XForTokenClassification\"]}",
          "config.json: architectures names a classifier, but there are no tensors of one: "
          "/classify_tokens is not available");
  is_left(p, &bert, NULL, "{\"architectures\":[\"XForQuestionAnswering\"]}",
          "config.json: architectures names a classifier, but there are no tensors of one: "
          "/question is not available");
  is_left(p, &roberta, "classifier.dense.weight", "{\"architectures\":\"-\"}", NULL);
  is_left(p, &distilbert, "pre_classifier.weight", "{\"architectures\":\"-\"}", NULL);
  is_left(p, &bare, NULL, "{" OF_ITEMS "}", none);
  is_left(p, &bare, NULL, "{}", NULL);
  /* A pooler that is not there cannot stand before the classes. */
  struct whole_edit edit = {.drop = "pooler", .more = {{"classifier.weight", 3, 32}}};
  whole_place_tensors(p, "bert-a", &edit);
  whole_place_config(p, "bert-a", "{\"architectures\":\"-\"}");
  struct model *m = whole_place_load(p, "");
  assert_int_equal(m->whole->classes, 0);
  assert_int_equal(m->whole->aside, 1);
  model_free(m);
  whole_place_config(p, "bert-a", "{" OF_ITEMS "}");
  whole_place_refused(p, "", "there is no tensor \"pooler.dense.weight\" of the classifier");
}

/* The same tensors are a classifier of tokens where config.json or the definition says so. */
static void a_head_may_be_of_tokens_or_of_spans(void **state) {
  const struct place *p = *state;
  static const struct head questions = {
      "bert-a", {{"qa_outputs.weight", 2, 32}, {"qa_outputs.bias", 2, 0}}, false, false};
  static const struct head three = {
      "bert-a", {{"qa_outputs.weight", 3, 32}, {"qa_outputs.bias", 3, 0}}, false, false};
  static const char of_tokens[] = "{\"architectures\":[\"XForTokenClassification\"],"
                                  "\"problem_type\":\"multi_label_classification\"}";
  place_head(p, &bert, NULL, of_tokens);
  struct model *m = whole_place_load(p, "");
  const struct stack_classifier *c = &stack_form(whole_reader(m->whole))->classifier;
  assert_true(m->whole->head == WHOLE_HEAD_TOKENS &&
              whole_classes(m->whole, WHOLE_HEAD_TOKENS) == 3);
  assert_int_equal(whole_classes(m->whole, WHOLE_HEAD_CLASSES), 0);
  assert_true(c->vectors == STACK_VECTORS_EACH && !c->pooler);
  assert_int_equal(m->whole->function, STACK_FUNCTION_SOFTMAX); /* problem_type is about items */
  model_free(m);
  m = whole_place_load(p, ",\"task\":\"classify\"");
  assert_int_equal(m->whole->head, WHOLE_HEAD_CLASSES);
  model_free(m);
  place_head(p, &bert, NULL, "{\"architectures\":\"-\"}");
  m = whole_place_load(p, ",\"task\":\"classify_tokens\",\"function\":\"none\"");
  assert_true(m->whole->head == WHOLE_HEAD_TOKENS && m->whole->function == STACK_FUNCTION_NONE);
  model_free(m);
  place_head(p, &questions, NULL, "{\"architectures\":[\"XForQuestionAnswering\"]}");
  m = whole_place_load(p, "");
  assert_true(whole_classes(m->whole, WHOLE_HEAD_SPANS) == 2 && !m->whole->label);
  model_free(m);
  whole_place_refused(p, ",\"labels\":[\"a\",\"b\"]",
                      "labels: the model has no classes: it answers questions");
  whole_place_refused(p, ",\"task\":\"tag\"",
                      "task: \"tag\" is not one of classify, classify_tokens, question");
  place_head(p, &three, NULL, "{\"architectures\":[\"XForQuestionAnswering\"]}");
  whole_place_refused(p, "", "tensor \"qa_outputs.weight\" has 3 rows, but must have 2");
}

/* A decoder scores its last row, and has no language modeling head beside its classes. */
static void decoders_have_classes_of_their_last_row(void **state) {
  const struct place *p = *state;
  static const struct head scores = {"qwen2-a", {{"score.weight", 3, 32}}, false, false};
  place_head(p, &scores, NULL, "{" OF_ITEMS ",\"tie_word_embeddings\":true}");
  struct model *m = whole_place_load(p, "");
  const struct stack_classifier *c = &stack_form(whole_reader(m->whole))->classifier;
  assert_int_equal(m->whole->classes, 3);
  assert_true(c->vectors == STACK_VECTORS_LAST && !c->pooler && c->count == 3);
  model_free(m);
  place_head(p, &scores, NULL, "{" OF_ITEMS ",\"classifier_pooling\":\"sum\"}");
  whole_place_refused(p, "", "config.json: classifier_pooling: \"sum\" is not supported");
  place_head(p, &scores, NULL, "{" OF_ITEMS ",\"classifier_pooling\":\"late\"}");
  whole_place_refused(p, "", "classifier_pooling: \"late\" is not supported; supported: cls, mean");
  place_head(p, &scores, NULL, "{" OF_ITEMS ",\"classifier_pooling\":\"mean\"}");
  m = whole_place_load(p, "");
  assert_int_equal(stack_form(whole_reader(m->whole))->classifier.vectors, STACK_VECTORS_MEAN);
  model_free(m);
}

/* Without a word of config.json the tensors tell it, if all are there. */
static void tensors_alone_tell_it(void **state) {
  const struct place *p = *state;
  place_head(p, &bert, NULL, "{\"architectures\":\"-\"}");
  struct model *m = whole_place_load(p, "");
  assert_int_equal(m->whole->classes, 3);
  assert_string_equal(m->whole->label[2], "LABEL_2");
  model_free(m);
}

/* --- what is refused --- */

static void parts_may_not_be_missing(void **state) {
  const struct place *p = *state;
  static const struct {
    const struct head *head;
    const char *without;
  } all[] = {{&bert, "classifier.bias"},
             {&roberta, "classifier.dense.weight"},
             {&roberta, "classifier.dense.bias"},
             {&roberta, "classifier.out_proj.weight"},
             {&roberta, "classifier.out_proj.bias"},
             {&distilbert, "pre_classifier.weight"},
             {&distilbert, "classifier.weight"}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    char detail[120];
    place_head(p, all[i].head, all[i].without, "{" OF_ITEMS "}");
    snprintf(detail, sizeof detail, "there is no tensor \"%s\" of the classifier", all[i].without);
    whole_place_refused(p, "", detail);
  }
}

static void sizes_must_agree(void **state) {
  const struct place *p = *state;
  static const struct head wide = {
      "bert-a", {{"classifier.weight", 3, 31}, {"classifier.bias", 3, 0}}, true, false};
  static const struct head first = {"distilbert-b",
                                    {{"pre_classifier.weight", 23, 24},
                                     {"pre_classifier.bias", 23, 0},
                                     {"classifier.weight", 3, 24},
                                     {"classifier.bias", 3, 0}},
                                    false,
                                    true};
  static const struct head flat = {
      "bert-a", {{"classifier.weight", 3, 0}, {"classifier.bias", 3, 0}}, true, false};
  place_head(p, &wide, NULL, "{" OF_ITEMS "}");
  whole_place_refused(p, "", "\"classifier.weight\" has 3 times 31 numbers here, not 3 times 32");
  place_head(p, &first, NULL, "{" OF_ITEMS "}");
  whole_place_refused(p, "", "\"pre_classifier.weight\" has 23 times 24 numbers here");
  place_head(p, &flat, NULL, "{" OF_ITEMS "}");
  whole_place_refused(p, "", "\"classifier.weight\" has 1 dimensions, but must have 2");
}

static void what_is_said_of_classes_must_fit(void **state) {
  const struct place *p = *state;
  static const char *const names[] = {"[]", "{\"0\":\"a\"}",
                                      "{\"0\":\"a\",\"1\":\"b\",\"2\":\"c\",\"3\":\"d\"}"};
  char change[200];
  for (size_t i = 0; i < 3; i++) {
    snprintf(change, sizeof change, "{" OF_ITEMS ",\"id2label\":%s}", names[i]);
    place_head(p, &bert, NULL, change);
    whole_place_refused(p, "", "config.json: id2label: needs an object with the names of all 3");
  }
  place_head(p, &bert, NULL,
             "{" OF_ITEMS
             ",\"id2label\":{\"0\":\"a\",\"1\":1,\"2\":\"c\"},\"problem_type\":\"x\"}");
  whole_place_refused(p, "", "config.json: id2label: needs a string \"1\", the name of that class");
  whole_place_refused(p, ",\"labels\":[\"a\",\"b\",\"c\"]",
                      "config.json: problem_type: is not one of");
  model_free(whole_place_load(p, ",\"labels\":[\"a\",\"b\",\"c\"],\"function\":\"none\""));
  whole_place_refused(p, ",\"labels\":[\"a\",\"b\"]", "labels: 2 names of 3 classes");
  whole_place_refused(
      p, ",\"classes\":2",
      "classes: 2 in the configuration, but tensor \"classifier.weight\" implies 3");
  whole_place_tensors(p, "bert-a", NULL);
  whole_place_refused(p, ",\"labels\":[\"a\"]", "labels: the model has no classifier");
  whole_place_refused(p, ",\"classes\":1", "classes: the model has no classifier");
  whole_place_refused(p, ",\"function\":\"none\"", "function: the model has no classifier");
}

/* --- what becomes of the scores --- */

static void function_is(const struct place *p, size_t classes, const char *problem,
                        enum stack_function function) {
  char change[200];
  const struct whole_edit edit = {
      .more = {{"classifier.weight", classes, 32}, {"classifier.bias", classes, 0}}};
  whole_place_tensors(p, "bert-a", &edit);
  snprintf(change, sizeof change, "{" OF_ITEMS ",\"problem_type\":%s}", problem);
  whole_place_config(p, "bert-a", change);
  struct model *m = whole_place_load(p, "");
  if (m->whole->function != function)
    fail_msg("%zu classes, %s: %s", classes, problem, whole_function_names[m->whole->function]);
  model_free(m);
}

/* An activation of sentence-transformers goes before the problem, and after the definition. */
static void activations_tell_the_function(void **state) {
  const struct place *p = *state;
  static const struct {
    const char *said;
    enum stack_function is;
  } rows[] = {
      {"\"sentence_transformers\":{\"activation_fn\":\"torch.nn.modules.linear.Identity\"}",
       STACK_FUNCTION_NONE},
      {"\"sentence_transformers\":{\"activation_fn\":\"torch.nn.modules.activation.Sigmoid\"}",
       STACK_FUNCTION_SIGMOID},
      {"\"sbert_ce_default_activation_function\":\"torch.nn.modules.linear.Identity\"",
       STACK_FUNCTION_NONE},
      {"\"sentence_transformers\":{\"activation_fn\":null},"
       "\"sbert_ce_default_activation_function\":\"torch.nn.modules.linear.Identity\"",
       STACK_FUNCTION_NONE},
      {"\"sentence_transformers\":{\"version\":\"5.4.0\"}", STACK_FUNCTION_SOFTMAX},
      {"\"sentence_transformers\":{\"activation_fn\":null}", STACK_FUNCTION_SOFTMAX}};
  const struct whole_edit edit = {
      .more = {{"classifier.weight", 2, 32}, {"classifier.bias", 2, 0}}};
  char change[300];
  whole_place_tensors(p, "bert-a", &edit);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    snprintf(change, sizeof change, "{" OF_ITEMS ",\"problem_type\":null,%s}", rows[i].said);
    whole_place_config(p, "bert-a", change);
    struct model *m = whole_place_load(p, "");
    assert_int_equal(m->whole->function, rows[i].is);
    model_free(m);
    m = whole_place_load(p, ",\"function\":\"softmax\"");
    assert_int_equal(m->whole->function, STACK_FUNCTION_SOFTMAX);
    model_free(m);
  }
  whole_place_config(p, "bert-a",
                     "{" OF_ITEMS
                     ",\"sentence_transformers\":{\"activation_fn\":\"torch.nn.ReLU\"}}");
  whole_place_refused(p, "", "config.json: activation_fn: \"torch.nn.ReLU\" is not supported");
  whole_place_config(p, "bert-a", "{" OF_ITEMS ",\"sentence_transformers\":{\"activation_fn\":1}}");
  whole_place_refused(p, "", "config.json: activation_fn: \"\" is not supported");
}

static void problems_tell_the_function(void **state) {
  const struct place *p = *state;
  function_is(p, 2, "null", STACK_FUNCTION_SOFTMAX);
  function_is(p, 1, "null", STACK_FUNCTION_SIGMOID);
  function_is(p, 2, "\"single_label_classification\"", STACK_FUNCTION_SOFTMAX);
  function_is(p, 1, "\"single_label_classification\"", STACK_FUNCTION_SIGMOID);
  function_is(p, 2, "\"multi_label_classification\"", STACK_FUNCTION_SIGMOID);
  function_is(p, 1, "\"regression\"", STACK_FUNCTION_NONE);
  function_is(p, 2, "\"regression\"", STACK_FUNCTION_NONE);
}

/* --- drawn ones --- */

#define DRAWN                                                                        \
  "{\"transformer\":{\"random\":{\"seed\":1}},\"layers\":1,\"width\":6,\"heads\":2," \
  "\"feed_forward\":4,\"vocabulary\":9"
#define ENCODER DRAWN ",\"kind\":\"encoder\""

static void a_classifier_may_be_drawn(void **unused) {
  (void)unused;
  struct whole_read read;
  struct model *bare = load_well(ENCODER "}", ".");
  struct model *m = load_well(ENCODER ",\"classes\":4}", ".");
  assert_int_equal(m->whole->classes, 4);
  assert_string_equal(m->whole->label[3], "LABEL_3");
  assert_int_equal(m->parameters, bare->parameters + 6 * 6 + 6 + 4 * 6 + 4);
  assert_string_not_equal(m->digest, bare->digest);
  whole_read(&read, json_of(ENCODER ",\"classes\":4}"), ".");
  check_scores(m, &read.form);
  whole_read_free(&read);
  model_free(m);
  model_free(bare);
  m = load_well(ENCODER ",\"labels\":[\"x\"]}", ".");
  assert_int_equal(m->whole->classes, 1);
  assert_int_equal(m->whole->function, STACK_FUNCTION_SIGMOID);
  model_free(m);
}

static void definitions_are_refused(void **unused) {
  (void)unused;
  ill(ENCODER ",\"classes\":0}", "classes: 0 is outside 1 to 65536");
  ill(ENCODER ",\"classes\":2,\"labels\":[\"a\"]}", "labels: 1 names of 2 classes");
  ill(ENCODER ",\"labels\":[]}", "labels: needs a list of 1 to 65536 strings");
  ill(ENCODER ",\"labels\":[1]}", "labels: needs a list of 1 to 65536 strings");
  ill(ENCODER ",\"labels\":\"a\"}", "labels: needs a list of 1 to 65536 strings");
  ill(ENCODER ",\"classes\":2,\"function\":\"tanh\"}",
      "function: \"tanh\" is not one of none, softmax, sigmoid");
  ill(ENCODER ",\"function\":\"none\"}", "function: the model has no classifier");
  ill(DRAWN ",\"kind\":\"decoder\",\"classes\":2}", "classes: the model has no classifier");
  ill(DRAWN ",\"kind\":\"seq2seq\",\"labels\":[\"a\"]}", "labels: the model has no classifier");
  ill(ENCODER ",\"id2label\":{}}", "unknown key \"id2label\"; here it is \"labels\"");
  ill(ENCODER ",\"num_labels\":2}", "unknown key \"num_labels\"; here it is \"classes\"");
  ill(ENCODER ",\"problem_type\":2}", "unknown key \"problem_type\"; here it is \"function\"");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_family_has_its_layers),
      cmocka_unit_test(models_of_ones_own_have_one),
      cmocka_unit_test(other_heads_are_left_aside),
      cmocka_unit_test(a_head_may_be_of_tokens_or_of_spans),
      cmocka_unit_test(decoders_have_classes_of_their_last_row),
      cmocka_unit_test(tensors_alone_tell_it),
      cmocka_unit_test(parts_may_not_be_missing),
      cmocka_unit_test(sizes_must_agree),
      cmocka_unit_test(what_is_said_of_classes_must_fit),
      cmocka_unit_test(problems_tell_the_function),
      cmocka_unit_test(activations_tell_the_function),
      cmocka_unit_test(a_classifier_may_be_drawn),
      cmocka_unit_test(definitions_are_refused),
  };
  return cmocka_run_group_tests(tests, whole_place_enter, whole_place_leave);
}
