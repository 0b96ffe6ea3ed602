/* test_score: the scores and the ways to form heads that a definition may ask for, with weights at
 * random and from checkpoints; what is refused, and how. No layer is run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/kernel/gemm.h"
#include "server/describe/description.h"
#include "tests/support/blas_start.h"
#include "tests/support/model_load.h"

static int enter(void **state) { return place_make(state, "w.safetensors"); }

/* --- without a checkpoint --- */

static void assert_score(const struct layer_shape *s, enum score score, double scale,
                         size_t key_head_size, size_t score_size) {
  assert_int_equal(s->score, score);
  assert_true(s->scale == (float)scale);
  assert_int_equal(s->key_head_size, key_head_size);
  assert_int_equal(s->score_size, score_size);
}

static void pooling_takes_keys_as_the_score_compares_them(void **state) {
  (void)state;
  struct model *m = load_well("{\"projection\":\"none\",\"query_size\":8,\"heads\":2,"
                              "\"score\":\"dot\",\"value_size\":6}",
                              ".");
  assert_shape(&m->shape, 2, 2, 4, 3, (size_t[]){8, 8, 6, 6});
  assert_score(&m->shape, SCORE_DOT, 1, 4, 0);
  assert_string_equal(m->score, "dot");
  assert_string_equal(m->source, "none");
  assert_int_equal(m->parameters, 0);
  model_free(m);
  m = load_well("{" RANDOM ",\"projection\":\"none\",\"query_size\":20,\"key_size\":2,"
                "\"value_size\":4,\"score\":\"additive\",\"score_size\":8,\"hidden\":20}",
                ".");
  assert_shape(&m->shape, 1, 1, 20, 4, (size_t[]){20, 2, 4, 4});
  assert_score(&m->shape, SCORE_ADDITIVE, 1, 2, 8);
  assert_string_equal(m->score, "additive");
  assert_string_equal(m->source, "random");
  model_free(m);
  m = load_well("{" RANDOM ",\"projection\":\"none\",\"query_size\":20,\"heads\":4,"
                "\"kv_heads\":2,\"score\":\"additive\"}",
                ".");
  assert_shape(&m->shape, 4, 2, 5, 5, (size_t[]){20, 10, 10, 20});
  assert_score(&m->shape, SCORE_ADDITIVE, 1, 5, 5);
  model_free(m);
  m = load_well("{" RANDOM ",\"projection\":\"none\",\"query_size\":6,\"heads\":2,"
                "\"key_size\":10,\"score\":\"bilinear\",\"output_projection\":true}",
                ".");
  assert_shape(&m->shape, 2, 2, 3, 3, (size_t[]){6, 10, 6, 6});
  assert_score(&m->shape, SCORE_BILINEAR, 1, 5, 0);
  assert_int_equal(m->parameters, 3 * 5 + 36);
  model_free(m);
}

static void projected_heads_may_have_any_score(void **state) {
  (void)state;
#define HEADS "{" RANDOM ",\"query_size\":32,\"heads\":2,"
  static const struct {
    const char *definition;
    enum score score;
    double scale;
    size_t score_size;
    bool sigmoid;
  } cases[] = {
      {HEADS "\"score\":\"scaled_dot\"}", SCORE_DOT, 0.25, 0, false},
      {HEADS "\"score\":\"scaled_dot\",\"scale\":2}", SCORE_DOT, 2, 0, false},
      {HEADS "\"score\":\"dot\"}", SCORE_DOT, 1, 0, false},
      {HEADS "\"score\":\"additive\"}", SCORE_ADDITIVE, 1, 16, false},
      {HEADS "\"score\":\"additive\",\"score_size\":3}", SCORE_ADDITIVE, 1, 3, false},
      {HEADS "\"score\":\"bilinear\"}", SCORE_BILINEAR, 1, 0, false},
      {HEADS "\"weighting\":\"softmax\"}", SCORE_DOT, 0.25, 0, false},
      {HEADS "\"weighting\":\"sigmoid\"}", SCORE_DOT, 0.25, 0, true},
      {HEADS "\"weighting\":\"sigmoid\",\"score\":\"bilinear\"}", SCORE_BILINEAR, 1, 0, true},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct model *m = load_well(cases[i].definition, ".");
    assert_shape(&m->shape, 2, 2, 16, 16, (size_t[]){32, 32, 32, 32});
    assert_score(&m->shape, cases[i].score, cases[i].scale, 16, cases[i].score_size);
    assert_int_equal(m->shape.sigmoid, cases[i].sigmoid);
    assert_string_equal(m->weighting, cases[i].sigmoid ? "sigmoid" : "softmax");
    assert_false(m->shape.grouped);
    model_free(m);
  }
}

static void a_matrix_is(const struct parameters_matrix *m, size_t out, size_t in) {
  assert_non_null(m->weight);
  assert_int_equal(m->out, out);
  assert_int_equal(m->in, in);
}

static void groups_see_their_slice_of_the_columns(void **state) {
  (void)state;
  struct parameters p = parameters_of("{" RANDOM ",\"query_size\":12,\"heads\":4,\"kv_heads\":2,"
                                      "\"key_size\":10,\"hidden\":8,\"output_size\":5,"
                                      "\"projection\":\"grouped\",\"score\":\"bilinear\"}",
                                      NULL);
  assert_shape(&p.shape, 4, 2, 2, 2, (size_t[]){12, 10, 12, 5});
  assert_score(&p.shape, SCORE_BILINEAR, 1, 2, 0);
  assert_true(p.shape.grouped);
  a_matrix_is(&p.matrix[ROLE_QUERY], 8, 3);
  a_matrix_is(&p.matrix[ROLE_KEY], 4, 5);
  a_matrix_is(&p.matrix[ROLE_VALUE], 4, 6);
  a_matrix_is(&p.matrix[ROLE_OUTPUT], 5, 8);
  a_matrix_is(&p.matrix[ROLE_SCORE_WEIGHT], 2, 2);
  assert_null(p.matrix[ROLE_SCORE_QUERY].weight);
  parameters_free(&p);
}

static void describes(const char *definition, const char *key, json_int_t number) {
  struct model *m = load_well(definition, ".");
  size_t length;
  char *text = description_model(m, &length);
  assert_non_null(text);
  assert_int_equal(strlen(text), length);
  json_t *json = json_of(text);
  const json_t *value = json_object_get(json, key);
  if (number >= 0) {
    assert_true(json_is_integer(value));
    assert_int_equal(json_integer_value(value), number);
  } else {
    assert_null(value);
  }
  json_decref(json);
  free(text);
  model_free(m);
}

static void the_size_of_a_score_is_described_where_there_is_one(void **state) {
  (void)state;
  describes(HEADS "\"score\":\"additive\",\"score_size\":3}", "score_size", 3);
  describes(HEADS "\"score\":\"additive\"}", "score_size", 16);
  describes(HEADS "\"score\":\"bilinear\"}", "score_size", -1);
  describes(HEADS "\"score\":\"bilinear\"}", "hidden", 32);
  describes("{" RANDOM ",\"projection\":\"none\",\"query_size\":20,\"key_size\":2,"
            "\"score\":\"additive\"}",
            "key_size", 2);
}

/* --- what a definition may not say --- */

static void scores_without_sense_are_refused_by_key(void **state) {
  (void)state;
#define NONE "\"projection\":\"none\","
  ill(HEADS "\"score\":\"scaled\"}",
      "score: \"scaled\" is not one of scaled_dot, dot, additive, bilinear");
  ill(HEADS "\"score\":null}", "score: needs a string");
  ill(HEADS "\"weighting\":\"softmin\"}", "weighting: \"softmin\" is not one of softmax, sigmoid");
  ill(HEADS "\"projection\":\"group\"}",
      "projection: \"group\" is not one of linear, none, grouped");
  ill(HEADS "\"score\":\"dot\",\"scale\":1}", "scale: does not apply with score dot");
  ill(HEADS "\"score\":\"additive\",\"scale\":1}", "scale: does not apply with score additive");
  ill(HEADS "\"score\":\"bilinear\",\"scale\":1}", "scale: does not apply with score bilinear");
  ill(HEADS "\"score_size\":8}", "score_size: does not apply with score scaled_dot");
  ill(HEADS "\"score\":\"bilinear\",\"score_size\":8}", "score_size: does not apply with score b");
  ill(HEADS "\"score\":\"additive\",\"score_size\":0}", "score_size: 0 is outside 1 to 1048576");
  ill(HEADS "\"score\":\"additive\",\"score_size\":\"8\"}", "score_size: needs an integer");
  ill("{" NONE "\"query_size\":4,\"score\":\"additive\"}",
      "needs a checkpoint, or random, for the parameters of score additive");
  ill("{" NONE "\"query_size\":4,\"score\":\"bilinear\"}",
      "needs a checkpoint, or random, for the parameters of score bilinear");
  ill("{" RANDOM "," NONE "\"score\":\"additive\"}", "query_size: required with projection none");
  ill("{" NONE "\"query_size\":4,\"score\":\"dot\",\"key_size\":5}",
      "key_size: 5 in the definition, but it must be 4");
  ill("{" RANDOM "," NONE "\"query_size\":4,\"heads\":2,\"score\":\"additive\",\"key_size\":5}",
      "heads: 2 do not divide the 5 columns of the keys");
  ill("{" RANDOM "," NONE "\"query_size\":8,\"heads\":4,\"kv_heads\":2,\"score\":\"bilinear\","
      "\"key_size\":5}",
      "kv_heads: 2 do not divide the 5 columns of the keys");
  ill("{" RANDOM "," NONE "\"query_size\":4,\"score\":\"additive\",\"hidden\":5}",
      "hidden: 5 in the definition, but it must be 4");
  ill("{" RANDOM "," NONE "\"query_size\":4,\"score\":\"additive\",\"bias\":true}",
      "bias: true, but there is none");
}

static void groups_that_do_not_fit_are_refused_by_key(void **state) {
  (void)state;
#define GROUPED "{" RANDOM ",\"projection\":\"grouped\","
  ill(GROUPED "\"query_size\":4}", "heads: required with projection grouped");
  ill(GROUPED "\"heads\":2}", "query_size: required without a checkpoint");
  ill(GROUPED "\"heads\":3,\"query_size\":8}",
      "query_size: the 3 groups of the heads do not divide 8");
  ill(GROUPED "\"heads\":4,\"kv_heads\":2,\"query_size\":8,\"key_size\":7}",
      "key_size: the 2 groups of the heads do not divide 7");
  ill(GROUPED "\"heads\":4,\"query_size\":8,\"value_size\":6}",
      "value_size: the 4 groups of the heads do not divide 6");
  ill(GROUPED "\"heads\":4,\"query_size\":8,\"hidden\":6}",
      "heads: 4 do not divide the hidden size 6");
  ill("{\"projection\":\"grouped\",\"heads\":2,\"query_size\":4}",
      "needs a checkpoint, or random, for its projections");
}

static void tensors_name_only_what_is_used(void **state) {
  (void)state;
#define NAMED(role) "\"checkpoint\":\"x\",\"heads\":2,\"tensors\":{\"" role "\":\"w\"}"
  ill("{" NAMED("score.quer") "}", "unknown role \"score.quer\" (did you mean \"score.query\"?)");
  ill("{" NAMED("score.query") "}", "tensors: score.query does not apply with score scaled_dot");
  ill("{" NAMED("score.vector") ",\"score\":\"bilinear\"}",
      "tensors: score.vector does not apply with score bilinear");
  ill("{" NAMED("score.weight") ",\"score\":\"additive\"}",
      "tensors: score.weight does not apply with score additive");
  ill("{" NAMED("key") ",\"projection\":\"none\"}",
      "tensors: key does not apply with projection none");
  ill("{" NAMED("output") ",\"output_projection\":false}",
      "tensors: output does not apply without an output projection");
  ill("{\"checkpoint\":\"x\",\"score\":\"bilinear\"," NONE "\"tensors\":{\"score.weight\":1}}",
      "tensors: score.weight needs the name of a tensor");
}

/* --- from a checkpoint --- */

#define ADDITIVE ",\"score\":\"additive\""
#define BILINEAR ",\"score\":\"bilinear\""
#define POOL     "{\"checkpoint\":\"w.safetensors\",\"projection\":\"none\""

/* The parameters of an additive score of 3 numbers, for heads of 2. */
static void add_additive(struct made *m, const char *const names[3]) {
  made_add(m, names[0], 3, 2);
  made_add(m, names[1], 3, 2);
  made_add(m, names[2], 1, 3);
}

static const char *const score[] = {"score.query", "score.key", "score.vector"};

static void sizes_are(const struct model *m, size_t score_size, size_t parameters) {
  assert_int_equal(m->shape.score_size, score_size);
  assert_int_equal(m->parameters, parameters);
}

static void scores_have_plain_names_with_or_without_an_end(void **state) {
  const struct place *p = *state;
  static const char *const ends[] = {"score.query.weight", "score.key.weight",
                                     "score.vector.weight"};
  const char *const *const names[] = {score, ends};
  for (size_t i = 0; i < 2; i++) {
    struct made m = {0};
    add_roles(&m, "", plain, ".weight");
    add_additive(&m, names[i]);
    made_add(&m, i ? "score.weight" : "score.weight.weight", 2, 2);
    write_made(p, &m);
    struct model *one = load_well(W ADDITIVE ",\"score_size\":3}", p->folder);
    assert_string_equal(one->layout, "plain");
    assert_false(one->bias);
    sizes_are(one, 3, 64 + 15);
    model_free(one);
    one = load_well(W BILINEAR "}", p->folder);
    sizes_are(one, 0, 64 + 4);
    model_free(one);
    one = load_well(W "}", p->folder);
    sizes_are(one, 0, 64);
    model_free(one);
    load_ill(W ADDITIVE ",\"score_size\":2}", p->folder,
             "score_size: 2 in the definition, but it must be 3");
  }
}

static void a_vector_may_be_a_row(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  made_add(&m, "score.query", 3, 2);
  made_add(&m, "score.key", 3, 5);
  made_add(&m, "score.vector", 3, 0);
  write_made(p, &m);
  struct model *flat = load_well(POOL ADDITIVE "}", p->folder);
  made_add(&m, "score.query", 3, 2);
  made_add(&m, "score.key", 3, 5);
  made_add(&m, "score.vector", 1, 3);
  write_made(p, &m);
  struct model *row = load_well(POOL ADDITIVE "}", p->folder);
  assert_string_equal(flat->digest, row->digest);
  model_free(flat);
  model_free(row);
}

static void missing_parameters_of_a_score_are_named(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  add_roles(&m, "", plain, ".weight");
  made_add(&m, "score.query", 3, 2);
  write_made(p, &m);
  load_ill(W ADDITIVE "}", p->folder,
           "has no tensor \"score.key\" (did you mean \"score.query\"?)");
  load_ill(W BILINEAR "}", p->folder, "has no tensor \"score.weight\" (did you mean");
  load_ill(POOL ADDITIVE "}", p->folder, "fit none of plain, torch, d2l; name them with");
  load_ill(POOL BILINEAR "}", p->folder, "fit none of plain, torch, d2l");
}

static void parameters_of_a_score_have_one_shape(void **state) {
  const struct place *p = *state;
  static const struct {
    size_t query[2], key[2], vector[2];
    const char *detail;
  } cases[] = {
      {{3, 4}, {3, 2}, {1, 3}, "tensor \"score.query\" is [3, 4], but must be [3, 2]"},
      {{3, 2}, {3, 4}, {1, 3}, "tensor \"score.key\" is [3, 4], but must be [3, 2]"},
      {{3, 2}, {4, 2}, {1, 3}, "tensor \"score.key\" is [4, 2], but must be [3, 2]"},
      {{3, 2}, {3, 2}, {1, 4}, "tensor \"score.vector\" is [1, 4], but must be [1, 3]"},
      {{3, 2}, {3, 2}, {3, 1}, "tensor \"score.vector\" is [3, 1], but must be [1, 3]"},
      {{3, 2}, {3, 2}, {4, 0}, "tensor \"score.vector\" is [4], but must be [3]"},
      {{6, 0}, {3, 2}, {1, 3}, "tensor \"score.query\" has 1 dimensions, not 2"},
      {{3, 2}, {0, 2}, {1, 3}, "tensor \"score.key\" holds no numbers"},
  };
  struct made m = {0};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    add_roles(&m, "", plain, ".weight");
    made_add(&m, "score.query", cases[i].query[0], cases[i].query[1]);
    made_add(&m, "score.key", cases[i].key[0], cases[i].key[1]);
    made_add(&m, "score.vector", cases[i].vector[0], cases[i].vector[1]);
    write_made(p, &m);
    load_ill(W ADDITIVE "}", p->folder, cases[i].detail);
  }
  add_roles(&m, "", plain, ".weight");
  made_add_bytes(&m, "score.vector", "F32", "[1,1,1]", "\0\0\0", 4);
  made_add(&m, "score.query", 1, 2);
  made_add(&m, "score.key", 1, 2);
  made_add(&m, "score.weight", 3, 2);
  write_made(p, &m);
  load_ill(W ADDITIVE "}", p->folder, "tensor \"score.vector\" has 3 dimensions, not 2");
  load_ill(W BILINEAR "}", p->folder, "tensor \"score.weight\" is [3, 2], but must be [2, 2]");
}

static void a_score_has_no_bias(void **state) {
  const struct place *p = *state;
  static const char *const cases[][2] = {
      {"score.weight", "score.weight.bias"},
      {"score.weight", "score.bias"},
      {"score.weight.weight", "score.weight.bias"},
  };
  struct made m = {0};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    made_add(&m, cases[i][0], 2, 3);
    made_add(&m, cases[i][1], 1, 0);
    write_made(p, &m);
    char detail[128];
    snprintf(detail, sizeof detail, "\"%s\": the parameters of a score have no bias", cases[i][1]);
    load_ill(POOL BILINEAR "}", p->folder, detail);
  }
}

static void pooling_has_the_sizes_of_its_score(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  made_add(&m, "score.query", 3, 4);
  made_add(&m, "score.key", 3, 5);
  made_add(&m, "score.vector", 3, 0);
  made_add(&m, "score.weight", 5, 4);
  write_made(p, &m);
  static const char *const whole[] = {POOL ADDITIVE, POOL BILINEAR};
  for (size_t i = 0; i < 2; i++) {
    char definition[256];
    snprintf(definition, sizeof definition, "%s,\"heads\":4,\"kv_heads\":2}", whole[i]);
    struct model *one = load_well(definition, p->folder);
    assert_shape(&one->shape, 4, 2, 4, 4, (size_t[]){16, 10, 8, 16});
    assert_int_equal(one->shape.key_head_size, 5);
    assert_true(one->shape.scale == 1);
    model_free(one);
    snprintf(definition, sizeof definition, "%s,\"query_size\":4,\"key_size\":5,\"value_size\":7}",
             whole[i]);
    one = load_well(definition, p->folder);
    assert_shape(&one->shape, 1, 1, 4, 7, (size_t[]){4, 5, 7, 7});
    model_free(one);
    snprintf(definition, sizeof definition, "%s,\"query_size\":5}", whole[i]);
    load_ill(definition, p->folder, "4], but must be [");
    snprintf(definition, sizeof definition, "%s,\"key_size\":6}", whole[i]);
    load_ill(definition, p->folder,
             i ? "tensor \"score.weight\" is [5, 4], but must be [6, 4]"
               : "tensor \"score.key\" is [3, 5], but must be [3, 6]");
  }
}

static void keys_may_have_heads_of_another_size_where_the_score_bears_it(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  made_add(&m, "query.weight", 4, 5);
  made_add(&m, "key.weight", 6, 5);
  made_add(&m, "value.weight", 4, 5);
  made_add(&m, "output.weight", 5, 4);
  made_add(&m, "score.query", 7, 2);
  made_add(&m, "score.key", 7, 3);
  made_add(&m, "score.vector", 7, 0);
  made_add(&m, "score.weight", 3, 2);
  write_made(p, &m);
  static const char *const definitions[] = {W ADDITIVE "}", W BILINEAR "}"};
  for (size_t i = 0; i < 2; i++) {
    struct parameters one = parameters_of(definitions[i], p->file);
    assert_shape(&one.shape, 2, 2, 2, 2, (size_t[]){5, 5, 5, 5});
    assert_int_equal(one.shape.key_head_size, 3);
    parameters_free(&one);
  }
  load_ill(W "}", p->folder, "keys of 6 columns are not 2 heads of 2, as queries have");
  load_ill(W ",\"score\":\"dot\"}", p->folder, "keys of 6 columns are not 2 heads of 2");
  load_ill(W BILINEAR ",\"kv_heads\":1,\"output_projection\":false}", p->folder,
           "tensor \"score.weight\" is [3, 2], but must be [6, 2]");
}

static void additive_attention_of_d2l_is_found(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  add_additive(&m, (const char *const[]){"net.attention.W_q.weight", "net.attention.W_k.weight",
                                         "net.attention.w_v.weight"});
  write_made(p, &m);
  layout_is(p, POOL ADDITIVE "}", "d2l");
  layout_is(p, POOL ADDITIVE ",\"layout\":\"d2l\",\"prefix\":\"net.attention.\"}", "d2l");
  load_ill(POOL BILINEAR "}", p->folder, "fit none of plain, torch, d2l");
  load_ill(POOL ADDITIVE ",\"output_projection\":true}", p->folder,
           "fit none of plain, torch, d2l");
  load_ill(W ADDITIVE "}", p->folder,
           "has no tensor \"net.attention.W_v.weight\", but \"w_v.weight\": with projection none");
  add_additive(&m, (const char *const[]){"W_q.weight", "W_k.weight", "w_v.weight"});
  made_add(&m, "W_o.weight", 7, 2);
  made_add(&m, "W_o.bias", 7, 0);
  made_add(&m, "W_k.bias", 3, 0);
  write_made(p, &m);
  load_ill(POOL ADDITIVE "}", p->folder,
           "tensor \"W_k.bias\": the parameters of a score have no bias");
  add_additive(&m, (const char *const[]){"W_q.weight", "W_k.weight", "w_v.weight"});
  made_add(&m, "W_o.weight", 7, 2);
  made_add(&m, "W_o.bias", 7, 0);
  write_made(p, &m);
  struct model *one = load_well(POOL ADDITIVE ",\"output_projection\":true}", p->folder);
  assert_shape(&one->shape, 1, 1, 2, 2, (size_t[]){2, 2, 2, 7});
  assert_true(one->bias);
  sizes_are(one, 3, 15 + 21);
  model_free(one);
}

static void other_layouts_lend_plain_names_to_a_score(void **state) {
  const struct place *p = *state;
  struct made m = {0};
  static const char *const behind[] = {"a.score.query", "a.score.key", "a.score.vector"};
  add_roles(&m, "a.", d2l, ".weight");
  add_additive(&m, behind);
  write_made(p, &m);
  layout_is(p, W ADDITIVE "}", "d2l");
  load_ill(W BILINEAR "}", p->folder, "has no tensor \"a.score.weight\"");
  made_add(&m, "a.in_proj_weight", 12, 4);
  made_add(&m, "a.out_proj.weight", 4, 4);
  made_add(&m, "a.score.weight", 2, 2);
  write_made(p, &m);
  layout_is(p, W BILINEAR "}", "torch");
  load_ill(W ADDITIVE "}", p->folder, "has no tensor \"a.score.query\"");
}

static void tensors_name_the_parameters_of_a_score(void **state) {
  const struct place *p = *state;
#define TENSORS ",\"tensors\":{\"score.query\":\"x.wq\",\"score.key\":\"x.wk.weight\","
  struct made m = {0};
  add_additive(&m, (const char *const[]){"x.wq.weight", "x.wk.weight", "x.v"});
  write_made(p, &m);
  layout_is(p, POOL ADDITIVE TENSORS "\"score.vector\":\"x.v\"}}", "tensors");
  load_ill(POOL ADDITIVE TENSORS "\"score.vector\":\"x.w\"}}", p->folder,
           "has no tensor \"x.w\" (did you mean \"x.wq.weight\"?)");
  load_ill(POOL ADDITIVE ",\"tensors\":{\"score.query\":\"x.wq\"}}", p->folder,
           "tensors: the role \"score.key\" is missing");
  add_additive(&m, (const char *const[]){"x.wq.weight", "x.wk.weight", "x.v"});
  made_add(&m, "x.wk.bias", 3, 0);
  write_made(p, &m);
  load_ill(POOL ADDITIVE TENSORS "\"score.vector\":\"x.v\"}}", p->folder,
           "tensor \"x.wk.bias\": the parameters of a score have no bias");
}

int main(void) {
#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, enter, place_remove)
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pooling_takes_keys_as_the_score_compares_them),
      cmocka_unit_test(projected_heads_may_have_any_score),
      cmocka_unit_test(groups_see_their_slice_of_the_columns),
      cmocka_unit_test(the_size_of_a_score_is_described_where_there_is_one),
      cmocka_unit_test(scores_without_sense_are_refused_by_key),
      cmocka_unit_test(groups_that_do_not_fit_are_refused_by_key),
      cmocka_unit_test(tensors_name_only_what_is_used),
      IN_PLACE(scores_have_plain_names_with_or_without_an_end),
      IN_PLACE(a_vector_may_be_a_row),
      IN_PLACE(missing_parameters_of_a_score_are_named),
      IN_PLACE(parameters_of_a_score_have_one_shape),
      IN_PLACE(a_score_has_no_bias),
      IN_PLACE(pooling_has_the_sizes_of_its_score),
      IN_PLACE(keys_may_have_heads_of_another_size_where_the_score_bears_it),
      IN_PLACE(additive_attention_of_d2l_is_found),
      IN_PLACE(other_layouts_lend_plain_names_to_a_score),
      IN_PLACE(tensors_name_the_parameters_of_a_score),
  };
  return cmocka_run_group_tests(tests, blas_start, NULL);
}
